"""`elmokit demo`: small models from nothing to meaning, in less than a minute."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from elmokit.errors import DataError, OutputError

if TYPE_CHECKING:
    from elmokit.elmo import Elmo
    from elmokit.pretrain.perplexity import Perplexity
    from elmokit.pretrain.run import Preflight, Reporter
    from elmokit.pretrain.trainer import Progress

PACKAGED = Path(__file__).parent / "samples"
IN_REPOSITORY = Path(__file__).parents[3] / "samples"
BAR = 40  # characters of the longest bar
INDENT = "  "


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What is shown for a language."""

    title: str
    """The language's name."""
    sample: str
    """The file of its text."""
    settings: Mapping[str, str]
    """What is changed in the recipe `tiny`."""
    words: tuple[str, ...]
    """Words whose nearest words are shown."""
    word: str
    """A word with two meanings."""
    uses: tuple[str, str, str]
    """Sentences with that word: two with one meaning, the last with the other."""


SETTINGS = {
    "training.batch": "32",
    "training.unroll": "20",
    "training.dropout": "0.3",
    "training.epochs": "22",
    "training.evaluate_steps": "50",
}
LESSONS = {
    "en": Lesson(
        title="English",
        sample="en.txt",
        settings=SETTINGS | {"model.words.dim": "32"},
        words=("river", "winter", "Tom", "plays"),
        word="bank",
        uses=(
            "The dog sat on the bank of the river.",
            "We sat on the bank and looked at the water.",
            "The bank gave the farmer some money.",
        ),
    ),
    "zh": Lesson(
        title="Chinese",
        sample="zh.txt",
        settings=SETTINGS
        | {
            "model.characters.alphabet": "unicode",
            "model.tokenizer": "jieba" if find_spec("rjieba") else "characters",
        },
        words=("奶奶", "小雨", "书", "打"),
        word="花",
        uses=("河边的花很好看。", "山上的花又红又香。", "舅舅花了三百块钱。"),
    ),
}


def demo(*, lang: Literal["en", "zh", "both"] = "both", keep: Path | None = None) -> None:
    """Train two small models, English and Chinese, and see what they learn: in a minute, without a network.

    Example: elmokit demo --lang zh --keep my-first-models

    Parameters
    ----------
    lang
        en, zh or both.
    keep
        A new folder for the models; they are thrown away unless given.
    """
    from contextlib import nullcontext
    from tempfile import TemporaryDirectory

    from elmokit.checkpoints.folders import new_folder

    if keep and keep.exists():
        raise OutputError(f"{keep} is there already: name a new folder to keep the models in")
    with TemporaryDirectory(prefix="elmokit-demo-") as folder, new_folder(keep) if keep else nullcontext() as kept:
        for name, lesson in LESSONS.items():
            if lang in (name, "both"):
                elmo = teach(lesson, Path(folder, name))
                if kept:
                    elmo.save(kept / name)
    if keep:
        print(f"{keep}: a folder for each model; try elmokit info on one of them")


def teach(lesson: Lesson, folder: Path) -> "Elmo":
    """Train a model in the folder, and show what it has learned."""
    from elmokit.elmo import load

    sample = find_sample(lesson.sample)
    print(f"{lesson.title}\n{'=' * len(lesson.title)}\n")
    print("A new model reads a short text again and again.")
    print("It guesses every word twice: from the words before it, and from those after it.", flush=True)
    points = train(sample, folder, lesson.settings)
    print()
    _show("Perplexity: among how many words it wavers, on lines kept from it. Less is better.", curve(points))
    elmo = load(folder)
    _show("Vectors: each word of a sentence has one in every layer.", shapes(elmo, lesson.uses[0]))
    _show("Neighbours: the words that the model takes to be most alike.", neighbors(elmo, sample, lesson.words))
    _show(
        f"Context: the cosine of {lesson.word!r} in two sentences. Layer 0 sees the word alone, the others what is\n"
        "around it; so small a model hears more of the grammar there than of the meaning.",
        contexts(elmo, lesson.word, lesson.uses),
    )
    return elmo


def find_sample(name: str) -> Path:
    """The file of a sample text."""
    for folder in (PACKAGED, IN_REPOSITORY):
        if (path := folder / name).exists():
            return path
    raise DataError(f"the sample text {name} is missing: install elmokit again")


def train(sample: Path, folder: Path, settings: Mapping[str, str]) -> dict[int, float]:
    """Train by the recipe `tiny` with some settings changed; held-out perplexity by step."""
    from elmokit.cli.pretrain import BarReporter, LineReporter
    from elmokit.pretrain.recipe import make_recipe, read_recipe, set_value
    from elmokit.pretrain.run import pretrain

    values = read_recipe("tiny")
    for name, value in settings.items():
        set_value(values, name, value)
    with BarReporter() if sys.stderr.isatty() else LineReporter() as reporter:
        recorder = Recorder(folder, reporter)
        pretrain([sample], folder, make_recipe(values), recorder)
    return recorder.points


class Recorder:
    """Keeps the measurements, with one from before the first step, and passes on what moves a bar."""

    def __init__(self, folder: Path, reporter: "Reporter") -> None:
        self.folder = folder
        self.points: dict[int, float] = {}
        self.reading, self.progress = reporter.reading, reporter.progress

    def preflight(self, facts: "Preflight") -> None:
        """Measure the model as it is before it has read anything."""
        from elmokit.elmo import load
        from elmokit.pretrain.perplexity import perplexity, sentences_of

        held_out = sentences_of(facts.corpus.valid.ids, facts.corpus.words)
        self.points[0] = perplexity(load(self.folder), held_out).average

    def measured(self, progress: "Progress", held_out: "Perplexity") -> None:
        """Keep a measurement."""
        self.points[progress.step] = held_out.average

    def saved(self, step: int) -> None:
        """Let it pass."""


def curve(points: Mapping[int, float]) -> Iterator[str]:
    """A bar for each measurement."""
    largest = max(points.values())
    for step, perplexity in points.items():
        bar = "█" * max(1, round(BAR * perplexity / largest))
        yield f"after {step:>5,} steps  {perplexity:>7,.1f}  {bar}"


def shapes(elmo: "Elmo", sentence: str) -> Iterator[str]:
    """How many vectors a sentence has, and how wide they are."""
    [tokens] = elmo.tokenize([sentence])
    layers, count, width = elmo.embed([tokens], layers="all")[0].shape
    yield " | ".join(tokens)
    yield f"{count} words × {layers} layers, {width} numbers each"


def neighbors(elmo: "Elmo", sample: Path, words: Iterable[str]) -> Iterator[str]:
    """The words whose mean vectors in the sample are nearest, with their cosines."""
    from elmokit.lexicon.corpus import open_corpus
    from elmokit.lexicon.neighbors import word_neighbors
    from elmokit.lexicon.occurrences import type_vectors

    vectors = type_vectors(open_corpus([sample], elmo.tokenizer), elmo, layers="top")
    known = [word for word in words if word in vectors.words]
    for word in known:
        near = "  ".join(f"{other.word} {other.cosine:.2f}" for other in word_neighbors(word, vectors, k=5))
        yield f"{_padded(word, 8)}{near}"


def contexts(elmo: "Elmo", word: str, uses: tuple[str, str, str]) -> Iterator[str]:
    """The cosines, by layer, of a word in two like sentences and in two unlike ones."""
    import numpy as np

    from elmokit.lexicon.occurrences import unit_vectors

    tokens = elmo.tokenize(uses)
    layers = elmo.embed(tokens, layers="all")
    first, like, unlike = (
        unit_vectors(vectors[:, sentence.index(word)]) for vectors, sentence in zip(layers, tokens, strict=True)
    )  # (L, D) each
    yield from (f"{letter}  {use}" for letter, use in zip("ABC", uses, strict=True))
    yield " " * 24 + "".join(f"layer {number:<5}" for number in range(elmo.layer_count))
    for pair, other in {"A and B, like": like, "A and C, unlike": unlike}.items():
        yield f"{pair:<24}" + "".join(f"{cosine:<11.2f}" for cosine in np.sum(first * other, axis=-1))


def _show(heading: str, lines: Iterable[str]) -> None:
    print("\n".join([heading, "", *(f"{INDENT}{line}".rstrip() for line in lines), ""]), flush=True)


def _padded(text: str, width: int) -> str:
    """Filled up with blanks as a terminal counts: Chinese characters are two wide."""
    from rich.cells import cell_len

    return text + " " * max(1, width - cell_len(text))
