"""How static vectors are trained; a field's docstring is the command line's help."""

from dataclasses import dataclass

from elmokit.config import Tokenization, check_above_zero, check_at_least
from elmokit.text.languages import check_language
from elmokit.text.layout import Lines


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How text is read, and which of its words have vectors."""

    tokenizer: Tokenization = "auto"
    """How text is split into tokens; auto is by jieba for text that is mostly Han, else words and punctuation."""
    lower_case: bool = False
    """Lower-case every word."""
    punctuation: bool = True
    """Keep tokens without any letter or digit."""
    lines: Lines = "auto"
    """What a line is: part of a wrapped text, whose paragraphs end at blank lines, or a paragraph; auto sees it from
    each text."""
    split: bool = False
    """Split paragraphs into sentences, so that no window reaches from one into the next."""
    min_count: int = 5
    """How often a word must occur; rarer words are left out of the text."""
    vocab_size: int | None = None
    """The most words to have, the most frequent first; all unless given."""
    field: str = "text"
    """Where the text stands in the objects of a .jsonl file."""
    encoding: str = "utf-8"
    """What text is decoded by unless it begins with a byte order mark: gb18030, big5, latin-1 …; auto guesses."""
    language: str = "auto"
    """The language's code, which decides where sentences end: de, hi, ja …; auto sees each paragraph's script."""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "min_count", "vocab_size")
        check_language(self.language)


@dataclass(frozen=True, kw_only=True)
class SkipGramSettings:
    """Skip-gram with negative sampling."""

    dimensions: int = 100
    """Width of a vector."""
    window: int = 5
    """Words on either side that are predicted, at most; the number is drawn anew for every word."""
    negatives: int = 5
    """Words drawn against each word that is predicted."""
    subsampling: float = 1e-3
    """Words above this share of the text are passed over now and then; 0 for never."""
    learning_rate: float = 0.025
    """Step size at the start; it falls to nearly nothing."""
    epochs: int = 5
    """Passes over the text."""
    threads: int = 2
    """Threads that train; with one, the same seed gives the same vectors."""
    seed: int = 1
    """What the random numbers start from."""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "dimensions", "window", "negatives", "epochs", "threads")
        check_at_least(self, 0, "subsampling", "seed")
        check_above_zero(self, "learning_rate")


@dataclass(frozen=True, kw_only=True)
class GloveSettings:
    """GloVe: J = Σ f(X_ij) (v_i·u_j + b_i + c_j − log X_ij)², f(x) = (x/x_max)^alpha below x_max, else 1."""

    dimensions: int = 100
    """Width of a vector."""
    window: int = 10
    """How far apart two words may stand to be counted, by the inverse of their distance."""
    symmetric: bool = True
    """Count a pair in both orders; else X_ij counts j after i alone."""
    x_max: float = 100.0
    """The count from which on a pair has its full weight."""
    alpha: float = 0.75
    """How fast the weight of rarer pairs falls."""
    learning_rate: float = 0.1
    """AdaGrad's step size at the start."""
    epochs: int = 15
    """Passes over the counts."""
    add_contexts: bool = True
    """Give v + u; else v, the vectors of the words as such."""
    threads: int = 2
    """Threads that count and train; with one, the same seed gives the same vectors."""
    seed: int = 1
    """What the random numbers start from."""
    memory_mb: float = 1000
    """Memory for counting, about; what does not fit waits in temporary files."""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "dimensions", "window", "epochs", "threads")
        check_at_least(self, 0, "alpha", "seed")
        check_above_zero(self, "x_max", "learning_rate", "memory_mb")
