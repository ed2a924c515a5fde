"""Options that several commands share; a field's docstring is its help."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.config import TokenizerName, set_value
from elmokit.errors import ConfigError
from elmokit.text.layout import Lines

if TYPE_CHECKING:
    from elmokit.elmo import Elmo
    from elmokit.embedder import Layers
    from elmokit.text.corpus import TextCorpus
    from elmokit.text.tokenizers import Tokenizer

TEXTS = "Text (.txt, .jsonl, .fasta, plain or .gz, .xz, .zst), a folder of it, or - for standard input."
Bracketed = Annotated[
    str, Parameter(name="SENTENCE", allow_leading_hyphen=True, help="A sentence with a word in brackets, [ ] or 【 】.")
]
Count = Annotated[int, Parameter(name=["-k", "--count"], help="How many are shown, the best first.")]
Json = Annotated[bool, Parameter(negative="", help="Print JSON.")]
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
        return {"lines": self.meaning, "encoding": self.encoding, "language": self.language}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model reads, and how."""

    model: Annotated[str, Parameter(alias="-m")]
    """A model's name, folder, file or address."""
    tokenizer: TokenizerName | None = None
    """How text is split into tokens; as the model was trained unless given."""
    json: Json = False

    def load(self) -> tuple["Elmo", "Tokenizer"]:
        """The model, and the tokenizer of the text that it reads."""
        from elmokit.elmo import load
        from elmokit.text.tokenizers import get_tokenizer

        elmo = load(self.model)
        return elmo, get_tokenizer(self.tokenizer) if self.tokenizer else elmo.tokenizer


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StudyOptions(ModelOptions, TextOptions):
    """Which model reads text, and how."""

    layer: Annotated[str, Parameter(name=["--layer", "--layers"])] = "average"
    """average, top, or a layer's number; 0 is the context-free token vector."""

    @property
    def layers(self) -> "Layers":
        return int(self.layer) if self.layer.isdecimal() else self.layer  # type: ignore[return-value]

    def open(self, paths: Sequence[Path], tokenizer: "Tokenizer") -> "TextCorpus":
        from elmokit.text.corpus import open_corpus

        return open_corpus(paths, tokenizer, **self.reading)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CorpusOptions(StudyOptions):
    """Which model reads which corpus, and how."""

    corpus: Annotated[list[Path], Parameter(negative="", allow_leading_hyphen=True, help=f"{TEXTS} May be repeated.")]


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
