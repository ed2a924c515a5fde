"""Words in their sentences, and in corpora."""

from typing import Any

from fastapi import APIRouter

from elmokit.answers import plain
from elmokit.elmo import Elmo
from elmokit.embedder import Layers
from elmokit.errors import DataError
from elmokit.lexicon.concordance import Line
from elmokit.lexicon.neighbors import NearOccurrence, word_neighbors
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.lexicon.ranks import rank_words
from elmokit.lexicon.settings import SenseSettings
from elmokit.lexicon.substitution import substitutes as find_substitutes
from elmokit.serve.embedding_routes import embed, with_offsets
from elmokit.serve.refusals import JSON
from elmokit.serve.requests import FLOAT_BYTES, Served, Taken, answer, responses
from elmokit.serve.schemas import (
    ConcordanceRequest,
    CosinesRequest,
    NeighborsRequest,
    SensesRequest,
    SubstitutesRequest,
    SurprisalRequest,
)
from elmokit.serve.service import Service
from elmokit.serve.studies import Lines, OpenCorpus
from elmokit.text.brackets import BracketedWord, has_brackets, read_brackets
from elmokit.text.corpus import Context
from elmokit.text.tokenizers import Tokenizer

router = APIRouter(tags=["Words"], responses=responses())
Object = dict[str, Any]


@router.post("/substitutes", response_model=Object)
async def substitutes(body: SubstitutesRequest, service: Served) -> JSON:
    """What could stand in the place of the word in brackets, or at `position`."""
    elmo = service.model(body.model).elmo
    query = read_query(body.text, body.position, elmo.tokenizer)
    service.check_tokens(len(query.context.tokens))

    def find() -> Any:
        return plain(find_substitutes(elmo, query, k=body.k, view=body.view, direction=body.direction))

    return JSON(await service.workers.run(find))


@router.post("/surprisal", response_model=Object)
async def surprisal(body: SurprisalRequest, service: Served) -> JSON:
    """How surprising each word is, in bits: forwards, backwards, and from both sides; and its rank among all words."""
    model = service.model(body.model)
    [tokens] = await service.tokenize(model, [body.text])
    return JSON(await service.workers.run(_surprisal, model.elmo, tokens))


def _surprisal(elmo: Elmo, tokens: Any) -> Object:
    ranked = rank_words(elmo, [token.text for token in tokens])
    rows = zip(ranked.words, with_offsets(tokens), strict=True)
    found = [plain(one) | {"start": where["start"], "stop": where["stop"]} for one, where in rows]
    return {"words": found, "end": ranked.end, "begin": ranked.begin}


@router.post("/cosines", response_model=Object)
async def cosines(body: CosinesRequest, service: Served, share: Taken) -> JSON:
    """The cosine of each word of one sentence with each of another, by layer; "all" gives each and the average."""
    model = service.model(body.model)
    tokens = await service.tokenize(model, [body.first, body.second])
    layers = (*range(model.elmo.layer_count), "average") if body.layers == "all" else (body.layers,)
    count = len(tokens[0]) * len(tokens[1]) * len(layers)
    share.take(FLOAT_BYTES["float"] * count)
    first, second = await embed(service, share, model, tokens, body.layers, values=0, encoding="float")

    def write() -> Object:
        pairs = zip(by_layer(first, body.layers), by_layer(second, body.layers), strict=True)
        found = [(unit_vectors(one) @ unit_vectors(other).T).tolist() for one, other in pairs]
        words = {"first": with_offsets(tokens[0]), "second": with_offsets(tokens[1])}
        return words | {"cosines": dict(zip(map(str, layers), found, strict=True))}

    return await answer(count, write)


def by_layer(vectors: Any, layers: Layers) -> list[Any]:
    """(tokens, width) of each layer asked for, and of the average where all are."""
    return [*vectors, vectors.mean(axis=0)] if layers == "all" else [vectors]


@router.get("/corpora", response_model=list[Object])
async def corpora(service: Served) -> JSON:
    """The corpora, and how far the building of their indexes has come."""
    return JSON([one.status() for one in service.corpora.values()])


@router.post("/neighbors", response_model=Object)
async def neighbors(body: NeighborsRequest, service: Served) -> JSON:
    """The words nearest to a word; or to a word in its sentence the nearest occurrences, and the nearest words.

    With static vectors, their neighbours of the word stand beside them.
    """
    corpus = service.corpus(body.corpus).ready()
    return JSON(await service.workers.run(_neighbors, service, corpus, body))


def _neighbors(service: Service, corpus: OpenCorpus, body: NeighborsRequest) -> Object:
    query = None
    found: Object
    if body.position is not None or has_brackets(body.query) or len(body.query.split()) > 1:
        query = read_query(body.query, body.position, corpus.tokenizer)
        service.check_tokens(len(query.context.tokens))
        layers = corpus.layer if body.layers is None else body.layers
        chosen = body.model_dump(include={"k", "any_word", "token", "document"})
        near = corpus.context_neighbors(query, layers=layers, limit=service.limits.lines, **chosen)
        words = corpus.words_near(query, k=body.k, min_count=body.min_count)
        found = {"neighbors": list(map(in_sentence, near)), "words": plain(words), "layer": layers}
    else:
        found = {"neighbors": plain(corpus.word_neighbors(body.query, k=body.k, min_count=body.min_count))}
    if service.static is not None:
        word = query.word if query else body.query
        rows = service.static.rows([word])
        known = service.static.words[rows[0]] if rows[0] >= 0 else None
        found["static"] = plain(word_neighbors(known, service.static, k=body.k)) if known else []
    return found


def in_sentence(near: NearOccurrence) -> Object:
    """An occurrence, its cosine, and the sentence's parts before and after the word."""
    left, _, right = near.occurrence.context.around(near.occurrence.position)
    found: Object = plain(near)
    return found | {"left": left, "right": right}


@router.post("/senses", response_model=Object)
async def senses(body: SensesRequest, service: Served) -> JSON:
    """The occurrences of a word, grouped into senses, as `elmokit senses --json` has them, with their points."""
    lines = await _lines(body, service)

    def write() -> Object:
        return {**plain(lines.senses), "points": lines.points.tolist()}

    return await answer(len(lines.sentences) * 100, write)


@router.post("/concordance", response_model=Object)
async def concordance(body: ConcordanceRequest, service: Served, share: Taken) -> JSON:
    """The lines in which a word stands, as `elmokit concordance --json` has them, each with its point in the plane."""
    share.take(min(body.limit, service.limits.lines) * (8 * body.reach + 500))
    lines = await _lines(body, service, group=body.senses)
    return await answer(len(lines.sentences) * 100, lambda: _concordance(lines, body))


async def _lines(body: SensesRequest, service: Service, *, group: bool = True) -> Lines:
    corpus = service.corpus(body.corpus).ready()
    corpus.check_word(body.word)
    corpus.elmo.embed([], layers=body.layers)  # refuses a layer that there is not
    fields = {"count", "most", "least_silhouette", "examples", "keywords"}
    settings = SenseSettings(**body.model_dump(include=fields)) if group else None
    limit = min(body.limit, service.limits.lines)
    return await service.workers.run(
        lambda: corpus.lines(body.word, layers=body.layers, limit=limit, by=body.by, settings=settings, seed=body.seed)
    )


def _concordance(lines: Lines, body: ConcordanceRequest) -> Object:
    found = lines.senses
    rows = zip(found.occurrences, lines.sentences, found.labels.tolist(), lines.points.tolist(), strict=True)
    shown = []
    for one, number, sense, point in rows:
        where = one.context.document, number, one.position, *one.context.around(one.position, reach=body.reach)
        line = Line(*where, sense=sense + 1 if body.senses else None, metadata=one.context.metadata)
        x, y = point if body.senses else (None, None)
        shown.append(line._asdict() | {"x": x, "y": y})
    groups = [{"count": one.count, "share": one.share, "keywords": plain(one.words)} for one in found.senses]
    total = {"word": body.word, "count": lines.documents.total(), "documents": dict(lines.documents.most_common())}
    claim = {"silhouette": found.silhouette, "apart": found.apart, "confidence": found.confidence}
    return total | claim | {"senses": groups if body.senses else [], "lines": shown}


def read_query(text: str, position: int | None, tokenizer: Tokenizer) -> BracketedWord:
    """The word in brackets, or the token at a position of a text whose brackets mean nothing."""
    if position is None:
        return read_brackets(text, tokenizer)
    tokens = tokenizer(text)
    if position >= len(tokens):
        raise DataError(f"there is no token {position}: the text has {len(tokens)}, counted from 0")
    return BracketedWord(Context(text, tokens, ""), position)
