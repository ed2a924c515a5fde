"""What requests hold. Those of other services ignore what is not known here; our own refuse it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from elmokit.config import MOST_LAYERS
from elmokit.lexicon.settings import Direction

LayerNumber = Annotated[int, Field(ge=0, le=MOST_LAYERS)]
Layer = Annotated[Literal["average", "top"] | LayerNumber, Field(description="The mean of all, the last, or a number.")]
Layers = Annotated[Literal["average", "top", "all"] | LayerNumber, Field(description="As in `Elmo.embed`.")]
Encoding = Annotated[
    Literal["float", "base64"],
    Field(description="Numbers, or base64 of little-endian 32-bit floats: a fifth the size."),
]
Pooling = Literal["mean", "max"]
Texts = str | list[str]
Count = Annotated[int, Field(ge=1, le=1000)]
Model = Annotated[str | None, Field(description="A name of `GET /info`; the first unless given.")]
Position = Annotated[
    int | None, Field(ge=0, description="Which token is meant, counted from 0, where no brackets say it.")
]


class Theirs(BaseModel):
    """A request of another service."""

    model_config = ConfigDict(strict=True)


class Ours(BaseModel):
    """A request of our own."""

    model_config = ConfigDict(strict=True, extra="forbid")


class EmbeddingsRequest(Theirs):
    """OpenAI's."""

    input: Texts
    model: Model = None
    encoding_format: Encoding = "float"
    dimensions: int | None = None
    user: str | None = None
    layers: Layer = "average"
    pooling: Pooling = "mean"


class EmbedRequest(Theirs):
    """text-embeddings-inference's."""

    inputs: Texts
    model: Model = None
    normalize: bool = True
    truncate: bool | None = False
    layers: Layer = "average"
    pooling: Pooling = "mean"


class EmbedAllRequest(Theirs):
    """text-embeddings-inference's, and what it lacks."""

    inputs: Texts
    model: Model = None
    truncate: bool | None = False
    layers: Layers = "average"
    tokens: Annotated[bool, Field(description="Give objects with the tokens and their offsets.")] = False
    encoding_format: Encoding = "float"


class TokenizeRequest(Theirs):
    """text-embeddings-inference's."""

    inputs: Texts
    model: Model = None
    add_special_tokens: bool = True


class SimilarityInput(Theirs):
    """One sentence, and those that it is compared with."""

    source_sentence: str
    sentences: list[str]


class SimilarityRequest(Theirs):
    """text-embeddings-inference's."""

    inputs: SimilarityInput
    parameters: dict[str, Any] | None = None
    model: Model = None
    layers: Layer = "average"


class SubstitutesRequest(Ours):
    """A word in its sentence."""

    text: Annotated[str, Field(examples=["He sat on the [bank] of the river"])]
    position: Position = None
    k: Count = 10
    direction: Direction = "both"
    model: Model = None


class SurprisalRequest(Ours):
    """A sentence."""

    text: str
    model: Model = None


class CosinesRequest(Ours):
    """Two sentences."""

    first: str
    second: str
    layers: Layers = "average"
    model: Model = None


class NeighborsRequest(Ours):
    """A word, or a word in its sentence."""

    query: Annotated[str, Field(examples=["bank", "He sat on the [bank] of the river"])]
    position: Position = None
    corpus: str | None = None
    k: Count = 10
    layers: Annotated[Layer | None, Field(description="That of the index unless given.")] = None
    min_count: Annotated[int, Field(ge=1)] = 5
    any_word: bool = False
    token: str | None = None
    document: str | None = None


class SensesRequest(Ours):
    """A word of a corpus, and how its senses are found."""

    word: str
    corpus: str | None = None
    layers: Layer = "top"
    by: Literal["around", "word"] = "around"
    limit: Annotated[int, Field(ge=1)] = 1000
    count: Annotated[int | None, Field(ge=1, le=50)] = None
    most: Annotated[int, Field(ge=1, le=50)] = 5
    least_silhouette: float = 0.1
    examples: Annotated[int, Field(ge=0, le=100)] = 3
    keywords: Annotated[int, Field(ge=0, le=100)] = 8
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0


class ConcordanceRequest(SensesRequest):
    """A word of a corpus, and what is shown of its lines."""

    reach: Annotated[int, Field(ge=0, le=1000, description="Characters on either side.")] = 80
    senses: Annotated[bool, Field(description="Find the senses, and where each line lies in the plane.")] = True


class TaskRequest(Ours):
    """Texts, lists of tokens, or objects as `elmokit task predict` reads them."""

    inputs: str | list[str | list[str] | dict[str, Any]]


class Error(BaseModel):
    """Why a request was not answered."""

    error: str
    error_type: str


class OpenAIError(BaseModel):
    """Why a request was not answered, as OpenAI's clients read it."""

    error: dict[str, Any]


class Token(BaseModel):
    """text-embeddings-inference's: `text` is inputs[start:stop], normalised as the tokenizer does."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class WordVectors(BaseModel):
    """The vectors of a text's tokens."""

    tokens: list[dict[str, Any]]
    shape: list[int]
    embedding: str | list[Any]


class Embedding(BaseModel):
    """OpenAI's."""

    object: Literal["embedding"]
    embedding: str | list[float]
    index: int


class Embeddings(BaseModel):
    """OpenAI's."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: dict[str, int]
