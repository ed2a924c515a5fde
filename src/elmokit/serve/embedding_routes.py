"""Vectors, by OpenAI's names and by those of text-embeddings-inference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter

from elmokit.embedder import Layers, Vectors, pooled
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.serve.budget import Share
from elmokit.serve.refusals import JSON, RefusedError
from elmokit.serve.requests import FLOAT_BYTES, Served, Taken, answer, as_numbers, responses
from elmokit.serve.schemas import (
    EmbedAllRequest,
    Embeddings,
    EmbeddingsRequest,
    EmbedRequest,
    OpenAIError,
    SimilarityRequest,
    Texts,
    Token,
    TokenizeRequest,
    WordVectors,
)
from elmokit.serve.service import ServedModel, Service
from elmokit.text import tokenizers
from elmokit.text.vocabulary import BOS, EOS

openai = APIRouter(prefix="/v1", tags=["OpenAI's names"], responses=responses(OpenAIError))
tei = APIRouter(tags=["text-embeddings-inference's names"], responses=responses())


@openai.post("/embeddings", response_model=Embeddings)
async def embeddings(body: EmbeddingsRequest, service: Served, share: Taken) -> JSON:
    """A vector for each text: the mean of its tokens' vectors, as `Elmo.sentence_vectors` gives it."""
    model = service.model(body.model)
    if body.dimensions not in (None, model.elmo.width):
        raise RefusedError(422, f"dimensions is {body.dimensions}: the vectors of {model.name} have {model.elmo.width}")
    tokens = await service.tokenize(model, as_list(body.input))
    vectors = await embed(service, share, model, tokens, body.layers, values=len(tokens), encoding=body.encoding_format)
    found = pooled(vectors, body.pooling, model.elmo.width)
    count = sum(map(len, tokens))

    def write() -> dict[str, Any]:
        numbers = [as_numbers(one, body.encoding_format) for one in found]
        data = [{"object": "embedding", "embedding": one, "index": index} for index, one in enumerate(numbers)]
        usage = {"prompt_tokens": count, "total_tokens": count}
        return {"object": "list", "data": data, "model": model.name, "usage": usage}

    return await answer(found.size if body.encoding_format == "float" else 0, write)


@openai.get("/models")
async def models(service: Served) -> dict[str, Any]:
    """The models that are served."""
    found = [{"id": name, "object": "model", "created": 0, "owned_by": "elmokit"} for name in service.models]
    return {"object": "list", "data": found}


@tei.post("/embed", response_model=list[list[float]])
async def embed_texts(body: EmbedRequest, service: Served, share: Taken) -> JSON:
    """A vector for each text, of length 1 unless `normalize` is false."""
    model = service.model(body.model)
    tokens = await service.tokenize(model, as_list(body.inputs), truncate=bool(body.truncate))
    vectors = await embed(service, share, model, tokens, body.layers, values=len(tokens), encoding="float")
    found = pooled(vectors, body.pooling, model.elmo.width)
    return await answer(found.size, (unit_vectors(found) if body.normalize else found).tolist)


WordVectorLists = list[WordVectors] | list[list[list[float]]] | list[list[list[list[float]]]]


@tei.post("/embed_all", response_model=WordVectorLists)
async def embed_words(body: EmbedAllRequest, service: Served, share: Taken) -> JSON:
    """A vector for each word of each text, as `Elmo.embed` gives them: (tokens, width), or for `layers` "all" (layers,
    tokens, width).

    With `tokens`, and always in base64, each text has an object with its tokens and their offsets.
    """
    model, encoding = service.model(body.model), body.encoding_format
    tokens = await service.tokenize(model, as_list(body.inputs), truncate=bool(body.truncate))
    layers = model.elmo.layer_count if body.layers == "all" else 1
    count = layers * sum(map(len, tokens))
    vectors = await embed(service, share, model, tokens, body.layers, values=count, encoding=encoding)

    def write() -> list[Any]:
        numbers = [as_numbers(one, encoding) for one in vectors]
        if not body.tokens and encoding == "float":
            return numbers
        rows = zip(tokens, vectors, numbers, strict=True)
        return [{"tokens": with_offsets(some), "shape": one.shape, "embedding": values} for some, one, values in rows]

    return await answer(count * model.elmo.width if encoding == "float" else 0, write)


@tei.post("/tokenize", response_model=list[list[Token]])
async def tokenize(body: TokenizeRequest, service: Served, share: Taken) -> JSON:
    """The tokens of each text and where they stand; `id` is that of the vocabulary, 0 for a model without one."""
    model = service.model(body.model)
    tokens = await service.tokenize(model, as_list(body.inputs))
    share.take(200 * sum(map(len, tokens)))
    return JSON([_described(model, some, special=body.add_special_tokens) for some in tokens])


@tei.post("/similarity", response_model=list[float])
async def similarity(body: SimilarityRequest, service: Served, share: Taken) -> JSON:
    """The cosine of a sentence's vector with that of each other sentence; 0 for one without tokens."""
    model = service.model(body.model)
    tokens = await service.tokenize(model, [body.inputs.source_sentence, *body.inputs.sentences])
    vectors = await embed(service, share, model, tokens, body.layers, values=0, encoding="float")
    source, *others = unit_vectors(pooled(vectors, "mean", model.elmo.width).astype(np.float64))
    return JSON([float(source @ other) for other in others])


async def embed(
    service: Service,
    share: Share,
    model: ServedModel,
    tokens: Sequence[Sequence[tokenizers.Token]],
    layers: Layers,
    *,
    values: int,
    encoding: str,
) -> list[Vectors]:
    """What `Elmo.embed` gives, together with other requests; `values` are the vectors that the answer will hold."""
    most = model.elmo.layer_count if layers == "all" else 1
    floats = 4 * most * sum(map(len, tokens)) + FLOAT_BYTES[encoding] * values
    share.take(floats * model.elmo.width)
    words = [[token.text for token in some] for some in tokens]
    return await model.batcher.embed_async(words, layers=layers, timeout=service.limits.timeout)


def as_list(texts: Texts) -> list[str]:
    """A text in place of a list is one text."""
    return [texts] if isinstance(texts, str) else texts


def with_offsets(tokens: Sequence[tokenizers.Token]) -> list[dict[str, Any]]:
    """Tokens by text-embeddings-inference's names."""
    return [{"text": text, "start": start, "stop": end} for text, start, end in tokens]


def _described(model: ServedModel, tokens: Sequence[tokenizers.Token], *, special: bool) -> list[dict[str, Any]]:
    known = model.elmo.vocabulary
    words = [token.text for token in tokens]
    ids = known.encode([BOS, *words, EOS]).tolist() if known else [0] * (len(words) + 2)
    found = [
        {"id": number} | one | {"special": False} for number, one in zip(ids[1:-1], with_offsets(tokens), strict=True)
    ]
    if not special:
        return found
    bounds = [
        {"id": number, "text": word, "special": True, "start": None, "stop": None}
        for number, word in ((ids[0], BOS), (ids[-1], EOS))
    ]
    return [bounds[0], *found, bounds[1]]
