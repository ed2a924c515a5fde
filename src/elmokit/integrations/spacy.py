"""spaCy: the component `elmo`, which gives tokens their contextual vectors, and a layer for components that learn.

spaCy imports its entry points whenever a pipeline is made: the model and all that it needs wait until a text comes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

import elmokit
from elmokit.bundled import bundled_names
from elmokit.embedder import Layers, Vectors
from elmokit.errors import ConfigError, DataError, MissingExtraError

try:
    import srsly
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token
    from spacy.util import minibatch
    from thinc.api import Linear, Model, chain, with_array
    from thinc.shims import Shim
    from thinc.types import Floats2d
except ImportError:
    raise MissingExtraError("the component of spaCy needs it", "spacy") from None

if TYPE_CHECKING:
    from elmokit.elmo import Elmo

BATCH = 128  # documents embedded together
MODEL = "elmo_model"  # the key in a document's user_data under which its model's digest stands
COMPONENTS: "WeakValueDictionary[str, ElmoComponent]" = WeakValueDictionary()
"""Those in use, by the digest of their model: documents, which may come from another process, find them here."""


class StoredModel:
    """A model that is loaded by its name when it is first needed, unless it was read from a pipeline's files."""

    def __init__(self, name: str, precision: Any) -> None:
        self.name, self.precision = name, precision

    @cached_property
    def elmo(self) -> "Elmo":
        return elmokit.load(self.name, precision=self.precision)

    def to_disk(self, folder: Path) -> None:
        """Write the model itself, so that the pipeline is complete wherever it goes."""
        self.elmo.save(folder, overwrite=True)

    def from_disk(self, folder: Path) -> None:
        """Read what `to_disk` wrote."""
        self.elmo = elmokit.load(folder, precision=self.precision)

    def to_bytes(self) -> bytes:
        """The files that `to_disk` writes, in one."""
        with TemporaryDirectory(prefix="elmokit-") as folder:
            self.to_disk(Path(folder, "model"))
            files = {path.name: path.read_bytes() for path in Path(folder, "model").iterdir()}
        content: bytes = srsly.msgpack_dumps(files)
        return content

    def from_bytes(self, content: bytes) -> None:
        """Read what `to_bytes` gave."""
        with TemporaryDirectory(prefix="elmokit-") as folder:
            for name, part in srsly.msgpack_loads(content).items():
                Path(folder, Path(name).name).write_bytes(part)
            self.from_disk(Path(folder))


class ElmoComponent:
    """Fills `doc.tensor`, a row per token, and has tokens, spans and documents answer with these vectors.

    Sentences are embedded one by one where their bounds are known, else the whole document as one. White space, which
    the model has never seen, has zeros.
    """

    def __init__(self, model: StoredModel, *, layers: Layers = "average") -> None:
        self.model, self.layers = model, layers
        self._all_layers: WeakKeyDictionary[Doc, Vectors] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(ElmoComponent, layers=self.layers), (self.model,)

    def __call__(self, doc: Doc) -> Doc:
        self._fill([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = BATCH) -> Iterator[Doc]:
        """The same of many documents, in batches."""
        for docs in minibatch(stream, batch_size):
            self._fill(docs)
            yield from docs

    def layers_of(self, doc: Doc) -> Vectors:
        """Every layer of every token, (L, T, D), computed when first asked for and kept as long as the document."""
        if doc not in self._all_layers:
            [self._all_layers[doc]] = embed_documents(self.model.elmo, [doc], "all")
        return self._all_layers[doc]

    def _fill(self, docs: Sequence[Doc]) -> None:
        elmo = self.model.elmo
        COMPONENTS[elmo.digest] = self
        for doc, vectors in zip(docs, embed_documents(elmo, docs, self.layers), strict=True):
            doc.tensor, doc.user_data[MODEL] = vectors, elmo.digest
            doc.user_hooks |= {"vector": mean_vector, "has_vector": has_vector, "similarity": similarity}
            doc.user_span_hooks |= {"vector": mean_vector, "has_vector": has_vector, "similarity": similarity}
            doc.user_token_hooks |= {"vector": token_vector, "has_vector": has_vector, "similarity": similarity}

    def to_disk(self, path: Path | str, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002  (spaCy's signature)
        """Write the model into a folder."""
        self.model.to_disk(Path(path))

    def from_disk(self, path: Path | str, *, exclude: Iterable[str] = ()) -> "ElmoComponent":  # noqa: ARG002
        """Take the model in a folder."""
        self.model.from_disk(Path(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:  # noqa: ARG002
        """The model in one piece."""
        return self.model.to_bytes()

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> "ElmoComponent":  # noqa: ARG002
        """Take a model in one piece."""
        self.model.from_bytes(content)
        return self


@Language.factory(  # type: ignore[untyped-decorator]
    "elmo",
    assigns=["doc.tensor", "token._.elmo_layers"],
    default_config={"model": None, "layers": "average", "precision": "fp32"},
)
def make_elmo(nlp: Language, name: str, model: str | None, layers: int | str, precision: str) -> ElmoComponent:
    """The component; without a model's name or path it takes the bundled model of the pipeline's language."""
    if layers == "all":
        raise ConfigError(f"{name}: a token has one vector in doc.tensor: token._.elmo_layers has those of all layers")
    if model is None and nlp.lang not in bundled_names():
        known = f"bundled are {', '.join(bundled_names())}; name another: config={{'model': …}}"
        raise ConfigError(f"{name}: no model for the language {nlp.lang!r} comes with elmokit: {known}")
    if not Token.has_extension("elmo_layers"):
        Token.set_extension("elmo_layers", getter=token_layers)
    return ElmoComponent(StoredModel(model or nlp.lang, precision), layers=layers)  # type: ignore[arg-type]


def embed_documents(elmo: "Elmo", docs: Sequence[Doc], layers: Layers) -> list[Vectors]:
    """The vectors of each document, (T, D), or (L, T, D) for all layers."""
    depth = (elmo.layer_count,) if layers == "all" else ()
    found = [np.zeros((*depth, len(doc), elmo.width), dtype=np.float32) for doc in docs]
    parts = [(number, words) for number, doc in enumerate(docs) for words in words_by_sentence(doc)]
    sentences = [[docs[number][index].text for index in words] for number, words in parts]
    for (number, words), vectors in zip(parts, elmo.embed_stream(sentences, layers=layers), strict=True):
        found[number][..., words, :] = vectors
    return found


def words_by_sentence(doc: Doc) -> list[list[int]]:
    """The indices of a document's tokens but for white space, sentence by sentence where the bounds are known."""
    sentences = doc.sents if doc.has_annotation("SENT_START") else [doc]
    return [[token.i for token in sentence if not token.is_space] for sentence in sentences]


def mean_vector(tokens: Doc | Span) -> Vectors:
    """The mean of the vectors of a document or span, white space left out; zeros if nothing is left."""
    doc = tokens if isinstance(tokens, Doc) else tokens.doc
    words = [token.i for token in tokens if not token.is_space]
    return np.asarray(doc.tensor[words].mean(axis=0) if words else np.zeros(doc.tensor.shape[1], np.float32))


def token_vector(token: Token) -> Vectors:
    """Its row."""
    return np.asarray(token.doc.tensor[token.i])


def has_vector(tokens: Doc | Span | Token) -> bool:
    """Whether there is anything but white space."""
    return not tokens.is_space if isinstance(tokens, Token) else any(not token.is_space for token in tokens)


def similarity(one: Any, other: Any) -> float:
    """The cosine of two vectors; 0 where one of them is zero."""
    lengths = float(np.linalg.norm(one.vector) * np.linalg.norm(other.vector))
    return float(np.dot(one.vector, other.vector)) / lengths if lengths else 0.0


def token_layers(token: Token) -> Vectors:
    """Every layer of a token, (L, D): `token._.elmo_layers`."""
    component = COMPONENTS.get(token.doc.user_data.get(MODEL, ""))
    if component is None:
        raise DataError(f"no layers of {token.text!r} are known: run its document through a pipeline with 'elmo' first")
    return component.layers_of(token.doc)[:, token.i]


class ElmoShim(Shim):  # type: ignore[misc]
    """The model behind a layer of thinc's: frozen, and stored with the layer."""

    def __init__(self, model: StoredModel) -> None:
        super().__init__(model)

    @property
    def elmo(self) -> "Elmo":
        model: StoredModel = self._model
        return model.elmo

    def finish_update(self, optimizer: Any) -> None:
        """Nothing: it does not learn."""

    def to_bytes(self) -> bytes:
        content: bytes = self._model.to_bytes()
        return content

    def from_bytes(self, data: bytes) -> "ElmoShim":
        self._model.from_bytes(data)
        return self


def elmo_tok2vec(
    model: str, layers: Layers = "average", width: int | None = None, precision: str = "fp32"
) -> Model[list[Doc], list[Floats2d]]:
    """The architecture `elmokit.ElmoTok2Vec.v1`: documents → vectors that do not learn, by a projection that does.

    With `layers="all"` the layers of a token stand side by side, and the projection to `width` mixes them. Without a
    width the vectors are handed on as they are.
    """
    shim = ElmoShim(StoredModel(model, precision))
    frozen: Any = Model("elmo", forward, init=initialize, dims={"nO": None}, attrs={"layers": layers}, shims=[shim])
    return frozen if width is None else chain(frozen, with_array(Linear(nO=width)))


def forward(model: Any, docs: list[Doc], is_train: bool) -> tuple[list[Floats2d], Callable[[Any], list[Doc]]]:  # noqa: ARG001
    """The vectors of each document, (T, D) or (T, L D); no gradient goes further down."""
    found = embed_documents(model.shims[0].elmo, docs, model.attrs["layers"])
    if model.attrs["layers"] == "all":
        found = [vectors.swapaxes(0, 1).reshape(vectors.shape[1], -1) for vectors in found]  # (T, L D)
    return [model.ops.asarray2f(vectors) for vectors in found], lambda gradients: []  # noqa: ARG005


def initialize(model: Any, X: Any = None, Y: Any = None) -> None:  # noqa: ARG001, N803  (thinc's signature)
    """The width is known when the model is loaded."""
    elmo = model.shims[0].elmo
    model.set_dim("nO", elmo.width * (elmo.layer_count if model.attrs["layers"] == "all" else 1))
