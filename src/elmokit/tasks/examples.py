"""What the tasks learn from: examples that know the file and line they came from."""

from dataclasses import dataclass
from typing import NamedTuple

from elmokit.errors import DataError
from elmokit.text.sentences import Span


class Place(NamedTuple):
    """Where an example stands."""

    path: str
    """The file, as it was named."""
    line: int
    """Counted from 1."""
    item: str = ""
    """What is meant of the line, where that says more: "question 'q1'"."""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.path, f"line {self.line}", self.item)))

    def error(self, what: str) -> DataError:
        return DataError(f"{self}: {what}")


NOWHERE = Place("", 0)


class LabelledSpan(NamedTuple):
    """Tokens start to end, the latter not included, and what they are."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence with a tag for each token."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    path: str
    lines: tuple[int, ...]
    """Of each token."""

    def place(self, position: int = 0) -> Place:
        """Where a token stands; line 0 if it was not read from a file."""
        return Place(self.path, self.lines[position] if self.lines else 0)


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text, or the tokens of a sentence, and its class."""

    text: str | tuple[str, ...]
    label: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts and how they relate: premise, hypothesis, entailment."""

    first: str
    second: str
    label: str
    place: Place = NOWHERE


class Answer(NamedTuple):
    """A piece of a context: context[start:end] == text."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a context, and the answers people marked in it."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    place: Place = NOWHERE


class Frame(NamedTuple):
    """A predicate and the roles around it."""

    predicate: int
    """Its token."""
    spans: tuple[LabelledSpan, ...]
    """In order and without overlap; the predicate is "V" (and "C-V")."""


@dataclass(frozen=True, slots=True)
class RoleSentence:
    """A sentence and its predicates, which may be none."""

    tokens: tuple[str, ...]
    frames: tuple[Frame, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class CoreferenceDocument:
    """The sentences of a document and which mentions in it are the same; tokens are counted through all sentences."""

    name: str
    sentences: tuple[tuple[str, ...], ...]
    clusters: tuple[tuple[Span, ...], ...]
    """Mentions in order; a cluster of one is a singleton."""
    place: Place = NOWHERE


class SenseInstance(NamedTuple):
    """Tokens start to end, the latter not included, that have a sense in WordNet."""

    id: str
    lemma: str
    pos: str
    """NOUN, VERB, ADJ or ADV."""
    start: int
    end: int
    keys: tuple[str, ...]
    """The gold sense keys; none if the gold is not known."""


@dataclass(frozen=True, slots=True)
class SenseSentence:
    """A sentence and those of its words whose senses are asked for."""

    tokens: tuple[str, ...]
    instances: tuple[SenseInstance, ...]
    place: Place = NOWHERE
