"""What requests hold. Those of other services ignore what is not known here; our own refuse it."""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from elmokit.config import MOST_LAYERS
from elmokit.embedder import Pooling
from elmokit.lexicon.settings import Direction, SenseBy, View

T = TypeVar("T")
LAYER_NUMBER = "Layer number"


def writable(given: T) -> T:
    """Refuse halves of surrogate pairs, which JSON can name and UTF-8 cannot write."""
    try:
        msgspec.json.encode(given)
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair, which is no character") from None
    return given


Text = Annotated[str, AfterValidator(writable)]
LayerNumber = Annotated[int, Field(ge=0, le=MOST_LAYERS, title=LAYER_NUMBER)]
Layer = Annotated[Literal["average", "top"] | LayerNumber, Field(description="The mean of all, the last, or a number.")]
Layers = Annotated[Literal["average", "top", "all"] | LayerNumber, Field(description="As in `Elmo.embed`.")]
Encoding = Annotated[
    Literal["float", "base64"],
    Field(description="Numbers, or base64 of little-endian 32-bit floats: a fifth the size."),
]
Texts = Text | list[Text]
Count = Annotated[int, Field(ge=1, le=1000)]
Model = Annotated[Text | None, Field(description="A name of `GET /info`; the first unless given.")]
Position = Annotated[
    int | None, Field(ge=0, description="Which token is meant, counted from 0, where no brackets say it.")
]


class Theirs(BaseModel):
    """A request of another service."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="before")
    @classmethod
    def whole_numbers(cls, values: Any) -> Any:
        """JSON has one kind of number: 2.0 is 2."""
        if not isinstance(values, dict):
            return values
        whole = {name: int(one) for name, one in values.items() if isinstance(one, float) and one.is_integer()}
        return values | whole


class Ours(Theirs):
    """A request of our own."""

    model_config = ConfigDict(extra="forbid")


class EmbeddingsRequest(Theirs):
    """OpenAI's."""

    input: Texts
    model: Model = None
    encoding_format: Encoding = "float"
    dimensions: int | None = None
    user: Text | None = None
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

    source_sentence: Text
    sentences: list[Text]


class SimilarityRequest(Theirs):
    """text-embeddings-inference's."""

    inputs: SimilarityInput
    parameters: dict[str, Any] | None = None
    model: Model = None
    layers: Layer = "average"


class SubstitutesRequest(Ours):
    """A word in its sentence."""

    text: Annotated[Text, Field(examples=["He sat on the [bank] of the river"])]
    position: Position = None
    k: Count = 10
    view: Annotated[View, Field(description="By the word itself, or by those around it alone.")] = "means-the-same"
    direction: Direction = "both"
    model: Model = None


class SurprisalRequest(Ours):
    """A sentence."""

    text: Text
    model: Model = None


class CosinesRequest(Ours):
    """Two sentences."""

    first: Text
    second: Text
    layers: Layers = "average"
    model: Model = None


class NeighborsRequest(Ours):
    """A word, or a word in its sentence."""

    query: Annotated[Text, Field(examples=["bank", "He sat on the [bank] of the river"])]
    position: Position = None
    corpus: Text | None = None
    k: Count = 10
    layers: Annotated[Layer | None, Field(description="That of the index unless given.")] = None
    min_count: Annotated[int, Field(ge=1)] = 5
    any_word: bool = False
    token: Text | None = None
    document: Text | None = None


class SensesRequest(Ours):
    """A word of a corpus, and how its senses are found."""

    word: Text
    corpus: Text | None = None
    layers: Layer = "top"
    by: SenseBy = "around"
    limit: Annotated[int, Field(ge=1)] = 1000
    count: Annotated[int | None, Field(ge=1, le=50)] = None
    most: Annotated[int, Field(ge=1, le=50)] = 5
    least_silhouette: float | None = None
    examples: Annotated[int, Field(ge=0, le=100)] = 3
    keywords: Annotated[int, Field(ge=0, le=100)] = 8
    seed: Annotated[int, Field(ge=0, lt=1 << 53)] = 0


class ConcordanceRequest(SensesRequest):
    """A word of a corpus, and what is shown of its lines."""

    reach: Annotated[int, Field(ge=0, le=1000, description="Characters on either side.")] = 80
    senses: Annotated[bool, Field(description="Find the senses, and where each line lies in the plane.")] = True


class TaskRequest(Ours):
    """Texts, lists of tokens, or objects as `elmokit task predict` reads them."""

    inputs: Annotated[str | list[str | list[str] | dict[str, Any]], AfterValidator(writable)]


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
