"""Options that several commands share; a field's docstring is its help."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.config import Tokenization, TokenizerName, set_value
from elmokit.errors import ConfigError, DataError
from elmokit.text.layout import Lines

if TYPE_CHECKING:
    from elmokit.elmo import Elmo
    from elmokit.embedder import Layers
    from elmokit.text.corpus import TextCorpus
    from elmokit.text.documents import Paths
    from elmokit.text.tokenizers import Tokenizer

logger = logging.getLogger(__name__)

TEXTS = "Text (.txt, .jsonl, .fasta, plain or .gz, .xz, .zst), a folder of it, or - for standard input."
Bracketed = Annotated[
    str, Parameter(name="SENTENCE", allow_leading_hyphen=True, help="A sentence with a word in brackets, [ ] or 【 】.")
]
Count = Annotated[int, Parameter(name=["-k", "--count"], help="How many are shown, the best first.")]
Json = Annotated[bool, Parameter(negative="", help="Print JSON.")]
AllowNonfinite = Annotated[
    bool, Parameter(negative="", help="Read a model even if weights are NaN or infinite, to look at it.")
]
Seed = Annotated[int, Parameter(help="What is drawn at random is a function of it.")]


def _check_source(_: Any, path: Path) -> None:
    if str(path).startswith("-") and str(path) != "-":
        raise ConfigError(f"unknown option {path}: see --help for those there are")


Source = Annotated[Path, Parameter(allow_leading_hyphen=True, validator=_check_source)]
"""A text file or a folder of them, or - for standard input."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text lies in its files."""

    lines: Lines = "auto"
    """What a line is: part of a wrapped text, whose paragraphs end at blank lines, one of the paragraphs, or one of the
    sentences; auto sees from each text whether it is wrapped."""
    split: Annotated[bool | None, Parameter(show=False)] = None
    """The older name: --no-split is --lines sentences."""
    encoding: str = "utf-8"
    """What text is decoded by unless it begins with a byte order mark: gb18030, big5, shift_jis, latin-1 …; auto
    guesses."""
    language: str = "auto"
    """The language's code, which decides where sentences end: de, hi, ja …; auto sees each paragraph's script."""

    @property
    def meaning(self) -> Lines:
        return "sentences" if self.split is False else self.lines

    @property
    def reading(self) -> dict[str, Any]:
        """How a corpus is opened."""
        return self.files | {"language": self.language}

    @property
    def files(self) -> dict[str, Any]:
        """How texts are opened."""
        return {"lines": self.meaning, "encoding": self.encoding}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TokenOptions:
    """How text is split into tokens: as the model was trained, but for what is given."""

    tokenizer: TokenizerName | None = None
    """What splits text into tokens: white space, words, Chinese words by jieba, or characters; auto is jieba for text
    that is mostly Han, else words. The model's own unless given."""
    normalize: Literal["none", "nfkc"] | None = None
    """nfkc: full-width letters and digits, ligatures and the like are read as ordinary ones."""
    hmm: bool | None = None
    """jieba: guess the words that its dictionary lacks by its hidden Markov model."""
    dictionary: Path | None = None
    """jieba: a file of more words, one per line, such as the names in a novel."""
    simplify: bool | None = None
    """Read traditional Chinese characters as simplified ones, by OpenCC."""

    def over(self, given: Tokenization) -> Tokenization:
        """The tokenizer with what the options say."""
        from elmokit.text.tokenizers import with_settings

        words = self.dictionary and read_words(self.dictionary)
        settings = {"normalize": self.normalize, "hmm": self.hmm, "dictionary": words, "simplify": self.simplify}
        if all(value is None for value in settings.values()):
            return self.tokenizer or given
        return with_settings(given, name=self.tokenizer, **settings)


def read_words(path: Path) -> tuple[str, ...]:
    """The first field of each line, as jieba's own dictionaries have it: word, count, part of speech."""
    try:
        lines = path.expanduser().read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise DataError(f"{path}: the list of words cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: the list of words is not UTF-8: save it so, one word per line") from None
    return tuple(line.split()[0] for line in lines if line.strip())


MODEL = """A bundled model (en, zh), another's name (see elmokit models), a model's folder, file or address; zh for text
that is mostly Han, else en, unless given."""


def model_for(model: str | None, text: str) -> str:
    """The model that was named, or the bundled one for a text, which the logger is told."""
    if model:
        return model
    from elmokit.text.tokenizers import is_mostly_han

    chosen = "zh" if is_mostly_han(text) else "en"
    logger.info("model %s, unless --model names another", chosen)
    return chosen


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions(TokenOptions):
    """Which model reads, and how."""

    model: Annotated[str | None, Parameter(alias="-m", help=MODEL)] = None
    json: Json = False

    def load(self, text: str, **settings: Any) -> tuple["Elmo", "Tokenizer"]:
        """The model for a text, and the tokenizer that it is read with."""
        from elmokit.elmo import load
        from elmokit.text.tokenizers import get_tokenizer

        elmo = load(model_for(self.model, text), **settings)
        return elmo, get_tokenizer(self.over(elmo.config.tokenizer))


METADATA = """A .csv or .tsv table with a column `document`, the name of a file or an object in it, and others such as
date or author, which are shown and written with what is found there."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StudyOptions(ModelOptions, TextOptions):
    """Which model reads text, and how."""

    metadata: Annotated[Path | None, Parameter(help=METADATA)] = None
    layer: Annotated[str, Parameter(name=["--layer", "--layers"])] = "average"
    """average, top, or a layer's number; 0 is the context-free token vector."""

    @property
    def layers(self) -> "Layers":
        return int(self.layer) if self.layer.isdecimal() else self.layer  # type: ignore[return-value]

    def open(self, *groups: "Paths", **settings: Any) -> tuple["Elmo", list["TextCorpus"]]:
        """The model for these texts, and each group of them as a corpus."""
        from elmokit.text.corpus import beginning, open_corpus
        from elmokit.text.documents import open_texts

        texts = [open_texts(paths, **self.files) for paths in groups]
        elmo, tokenizer = self.load("\n".join(map(beginning, texts)), **settings)
        return elmo, [open_corpus(files, tokenizer, language=self.language, metadata=self.metadata) for files in texts]

    def read(self, paths: "Paths") -> "TextCorpus":
        """The texts as a corpus without a model, split into words as the bundled ones do it."""
        from elmokit.text.corpus import open_corpus

        return open_corpus(paths, self.over("auto"), **self.reading, metadata=self.metadata)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CorpusOptions(StudyOptions):
    """Which model reads which corpus, and how."""

    corpus: Annotated[list[Path], Parameter(allow_leading_hyphen=True, help=f"{TEXTS} May be repeated.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SenseOptions(CorpusOptions):
    """The same, by the layer that tells senses apart best."""

    layer: Annotated[str, Parameter(name=["--layer", "--layers"])] = "top"
    """average, top, or a layer's number; 0 is the context-free token vector."""


def set_values(values: dict[str, Any], settings: Sequence[str] | None, *, example: str) -> dict[str, Any]:
    """The values with those of --set put in, each written as name=value."""
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: write it as name=value, such as {example}")
        set_value(values, name, value)
    return values
