"""`elmokit demo`: what contextual vectors tell that static ones cannot, and how a model is made."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.errors import DataError
from elmokit.translation import in_chinese, translate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from elmokit.elmo import Elmo
    from elmokit.lexicon.substitution import Substitutes
    from elmokit.progress import Progress
    from elmokit.text.brackets import BracketedWord

    Guess = tuple[BracketedWord, Substitutes]

Language = Literal["en", "zh", "both"]
PACKAGED = Path(__file__).parent / "samples"
IN_REPOSITORY = Path(__file__).parents[3] / "samples"
BAR = 40  # characters of the longest bar
SHOWN = 2  # sentences of a sense in the terminal; the page has all
GUESSES = 6
SAME_OR_NOT = ("same sense", "different senses")
NEAREST = "nearest neighbour shares the sense"
ABOUT_SENSES = """\
One word in two senses, four sentences each: the mean cosine of its vectors in two sentences, and for how many of them
the nearest neighbour shares the sense. Layer 0 knows the word alone, as static vectors do, and cannot tell; the layers
above it have read the sentence."""
ABOUT_GUESSES = "Guess: what could stand in the gap? The model sees the words before and after it."
ABOUT_LEARNING = """\
A new and tiny one reads a short text again and again, and guesses every word twice: from the words before it, and from
those after it."""
ABOUT_PERPLEXITY = "Perplexity: among how many words it wavers, on lines kept from it. Less is better."
YOUR_TEXT = "The same with a text of yours: elmokit pretrain TEXT -o my-model --recipe novel"
TRAINING = {  # what is changed in the recipe `tiny`
    "model.words.dim": "32",
    "training.batch": "32",
    "training.unroll": "20",
    "training.dropout": "0.3",
    "training.epochs": "8",
    "training.evaluate_steps": "40",
}


@dataclass(frozen=True)
class Uses:
    """A word in sentences of two senses."""

    sentences: "Sequence[BracketedWord]"
    senses: "NDArray[np.integer]"  # (N,) which of the two each sentence has
    vectors: "NDArray[np.float32]"  # (L, N, D) the word's, of length 1

    @property
    def word(self) -> str:
        return self.sentences[0].word

    @property
    def cosines(self) -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
        """The mean cosine of two uses in the same sense, and in different senses, (L,) each."""
        import numpy as np

        cosines = self.vectors @ self.vectors.swapaxes(1, 2)  # (L, N, N)
        same = self.senses[:, None] == self.senses
        return cosines[:, same & ~np.eye(len(same), dtype=bool)].mean(axis=1), cosines[:, ~same].mean(axis=1)

    @property
    def nearest(self) -> "NDArray[np.integer]":
        """For how many uses the nearest other one has the same sense, (L,)."""
        import numpy as np

        cosines = self.vectors @ self.vectors.swapaxes(1, 2) - 9 * np.eye(len(self.senses))  # (L, N, N)
        return np.asarray((self.senses[cosines.argmax(axis=2)] == self.senses).sum(axis=1))


def demo(*, lang: Language = "both", page: Annotated[Path, Parameter(alias="-o")] = Path("demo.html")) -> None:
    """See what contextual vectors tell that static ones cannot, and a model learn: in seconds, without a network.

    Example: elmokit demo --lang zh

    Parameters
    ----------
    lang
        en, zh or both.
    page
        An .html file to be written, with the plots.
    """
    from elmokit.cli.demo_page import draw
    from elmokit.elmo import load
    from elmokit.files import replacing, writing

    uses: list[Uses] = []
    guesses: list[Guess] = []
    with replacing(page) as partial:
        own = "zh" if in_chinese() else "en"
        names = (own, *({"en", "zh"} - {own})) if lang == "both" else (lang,)
        for name in names:
            teach(read_lessons()[name], load(name), uses, guesses)
        points = learn(find_sample(f"{names[0]}.txt"))
        with writing(page):
            partial.write_text(draw(uses, guesses, points), encoding="utf-8")
    print(translate(f"{page}: all this with plots; open it in a browser"))


def read_lessons() -> dict[str, Any]:
    """The sentences by language."""
    return tomllib.loads(find_sample("demo.toml").read_text(encoding="utf-8"))


def find_sample(name: str) -> Path:
    """The file of a sample text."""
    for folder in (PACKAGED, IN_REPOSITORY):
        if (path := folder / name).exists():
            return path
    raise DataError(f"the sample text {name} is missing: install elmokit again")


def teach(lesson: Mapping[str, Any], elmo: "Elmo", uses: list[Uses], guesses: "list[Guess]") -> None:
    """Show what a model makes of words in two senses, and what it expects in a gap; keep both for the page."""
    from elmokit.lexicon.substitution import substitutes
    from elmokit.text.brackets import read_brackets

    _head(lesson["title"])
    print(translate(ABOUT_SENSES), end="\n\n", flush=True)
    for senses in lesson["words"].values():
        uses.append(compare(senses, elmo))
        _show(uses[-1].word, cosine_table(uses[-1]))
    print(translate(ABOUT_GUESSES), end="\n\n")
    for sentence in lesson["guesses"]:
        query = read_brackets(sentence, elmo.tokenizer)
        guesses.append((query, substitutes(elmo, query, k=GUESSES, view="fits")))
        candidates = (f"{one.word} {one.probability:.0%}" for one in guesses[-1][1].candidates)
        _show(blank(query), ["  ".join(candidates)])


def compare(senses: Sequence[Sequence[str]], elmo: "Elmo") -> Uses:
    """The vectors of a word in brackets in sentences of each sense."""
    import numpy as np

    from elmokit.lexicon.occurrences import unit_vectors
    from elmokit.text.brackets import read_brackets

    uses = [read_brackets(sentence, elmo.tokenizer) for sense in senses for sentence in sense]
    layers = elmo.embed([use.context.words for use in uses], layers="all")
    vectors = [found[:, use.position] for found, use in zip(layers, uses, strict=True)]  # (L, D) each
    numbers = [number for number, sense in enumerate(senses) for _ in sense]
    return Uses(uses, np.array(numbers), unit_vectors(np.stack(vectors, axis=1)))


def cosine_table(uses: Uses) -> Iterator[str]:
    """Some sentences of each sense, and the cosines by layer."""
    for sense in sorted(set(uses.senses.tolist())):
        for index in (uses.senses == sense).nonzero()[0][:SHOWN]:
            yield f"{sense + 1}  {uses.sentences[index].context.text}"
    heads = ["static", *(f"layer {number}" for number in range(1, len(uses.vectors)))]
    of = translate("{count} of {total}")
    counts = (of.format(count=count, total=len(uses.senses)) for count in uses.nearest[1:])
    yield _row("", heads)
    for name, cosines in zip(SAME_OR_NOT, uses.cosines, strict=True):
        yield _row(name, (f"{cosine:.2f}" for cosine in cosines))
    yield _row(NEAREST, ("–", *counts))


def _row(name: str, cells: Iterable[str]) -> str:
    """A name and what stands beside it, in columns of the same width whatever the script."""
    from rich.cells import cell_len

    width = 2 + max(cell_len(translate(label)) for label in (*SAME_OR_NOT, NEAREST))
    first, *others = (translate(text) for text in (name, *cells))
    return first + " " * (width - cell_len(first)) + "".join(" " * (9 - cell_len(cell)) + cell for cell in others)


def blank(query: "BracketedWord") -> str:
    """The sentence with a gap for the word in brackets."""
    before, _, after = query.context.around(query.position)
    return f"{before}____{after}"


def learn(sample: Path) -> dict[int, float]:
    """Train a tiny model for some seconds, and show how its held-out perplexity falls, by step."""
    from elmokit.pretrain.recipe import read_recipe, set_value
    from elmokit.pretrain.run import pretrain
    from elmokit.progress.drawing import watched

    _head("A model of your own")
    print(translate(ABOUT_LEARNING), flush=True)
    values = read_recipe("tiny")
    chinese = {"model.characters.alphabet": "unicode", "model.tokenizer": "jieba"} if sample.stem == "zh" else {}
    for name, value in (TRAINING | chinese).items():
        set_value(values, name, value)
    with TemporaryDirectory(prefix="elmokit-demo-") as temporary:
        folder = Path(temporary, "model")
        with watched(sample.name) as progress:
            recorder = Recorder(folder, progress)
            pretrain([sample], folder, values, progress=recorder)
        lines = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        points = recorder.points | {line["step"]: line["perplexity"]["average"] for line in lines}
    print()
    _show(translate(ABOUT_PERPLEXITY), curve(points))
    print(translate(YOUR_TEXT), end="\n\n")
    return points


class Recorder:
    """Measures the model as it is before it has read anything, and passes on what moves a bar."""

    def __init__(self, folder: Path, progress: "Progress") -> None:
        self.folder, self.progress = folder, progress
        self.points: dict[int, float] = {}

    def message(self, text: str, /) -> None: ...

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        """After the first step the folder still holds the model from before it."""
        from elmokit.elmo import load
        from elmokit.pretrain.corpus import read_corpus
        from elmokit.pretrain.evaluation import perplexity, sentences_of

        if stage == "training" and not self.points:
            corpus = read_corpus(self.folder / "corpus")
            self.points[0] = perplexity(load(self.folder), sentences_of(corpus.valid.ids, corpus.words)).average
        self.progress.update(stage, done, total, unit=unit, note=note)


def curve(points: Mapping[int, float]) -> Iterator[str]:
    """A bar for each measurement."""
    largest = max(points.values())
    for step, perplexity in points.items():
        bar = "█" * max(1, round(BAR * perplexity / largest))
        yield translate("after {step} steps  {perplexity}  {bar}").format(
            step=f"{step:>5,}", perplexity=f"{perplexity:>7,.1f}", bar=bar
        )


def _head(title: str) -> None:
    from rich.cells import cell_len

    print(translate(title), "=" * cell_len(translate(title)), "", sep="\n")


def _show(heading: str, lines: Iterable[str]) -> None:
    print("\n".join([heading, "", *(f"  {line}".rstrip() for line in lines), ""]), flush=True)
