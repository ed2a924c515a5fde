"""`elmokit static`: one vector a word, trained and measured."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter, validators

from elmokit.static.settings import GloveSettings, SkipGramSettings, TextSettings

if TYPE_CHECKING:
    from elmokit.static.corpus import Text
    from elmokit.static.embedders import OneHot, StaticVectors
    from elmokit.static.evaluation import Result
    from elmokit.static.glove import Epoch
    from elmokit.static.threads import Progress

Stage = Callable[[str], "Progress"]
FLAT = Parameter(name="*")
SECONDS_BETWEEN_LINES = 10.0

static = App(name="static", help="Vectors of the older kind, one a word: train them, measure them.")
train = App(name="train", help="Train static vectors on text.")
static.command(train)


@train.command(name="one-hot")
def one_hot(
    *corpus: Annotated[Path, Parameter(name="CORPUS")],
    output: Annotated[Path, Parameter(alias="-o")],
    text: Annotated[TextSettings, FLAT] = TextSettings(),  # noqa: B008
    header: bool = True,
    workers: int | None = None,
) -> None:
    """Give every word of a text a dimension of its own.

    Example: elmokit static train one-hot novel.txt -o one-hot.safetensors --min-count 1

    Parameters
    ----------
    corpus
        Files (.txt, .jsonl, plain or .gz or .xz) or folders of them, with a paragraph a line.
    output
        Where the vectors go: .safetensors holds the words alone, .txt, .vec (also .gz) and .bin every zero.
    header
        Begin a text file with its words and width, as word2vec does; GloVe does not.
    workers
        Processes that cut the text; as many as there are cores unless given.
    """
    from elmokit.static.embedders import OneHot

    _train(corpus, output, text, lambda read, _folder, _stage: OneHot(read.words), header=header, workers=workers)


@train.command(name="skip-gram")
def skip_gram(
    *corpus: Annotated[Path, Parameter(name="CORPUS")],
    output: Annotated[Path, Parameter(alias="-o")],
    settings: Annotated[SkipGramSettings, FLAT] = SkipGramSettings(),  # noqa: B008
    text: Annotated[TextSettings, FLAT] = TextSettings(),  # noqa: B008
    header: bool = True,
    workers: int | None = None,
) -> None:
    """Train skip-gram with negative sampling, by gensim.

    Example: elmokit static train skip-gram novel.txt -o vectors.txt --lower-case

    Parameters
    ----------
    corpus
        Files (.txt, .jsonl, plain or .gz or .xz) or folders of them, with a paragraph a line.
    output
        Where the vectors go: .txt, .vec (also .gz), .bin or .safetensors.
    header
        Begin a text file with its words and width, as word2vec does; GloVe does not.
    workers
        Processes that cut the text; as many as there are cores unless given.
    """
    from elmokit.static.skip_gram import train_skip_gram

    _train(
        corpus,
        output,
        text,
        lambda read, _folder, stage: train_skip_gram(read, settings, progress=stage("training")),
        header=header,
        workers=workers,
    )


@train.command
def glove(
    *corpus: Annotated[Path, Parameter(name="CORPUS")],
    output: Annotated[Path, Parameter(alias="-o")],
    settings: Annotated[GloveSettings, FLAT] = GloveSettings(),  # noqa: B008
    text: Annotated[TextSettings, FLAT] = TextSettings(),  # noqa: B008
    header: bool = True,
    workers: int | None = None,
) -> None:
    """Train GloVe: count which words stand near each other, then fit vectors to the logarithms of the counts.

    Example: elmokit static train glove novel.txt -o vectors.txt --lower-case --x-max 10

    Parameters
    ----------
    corpus
        Files (.txt, .jsonl, plain or .gz or .xz) or folders of them, with a paragraph a line.
    output
        Where the vectors go: .txt, .vec (also .gz), .bin or .safetensors.
    header
        Begin a text file with its words and width, as word2vec does; GloVe does not.
    workers
        Processes that cut the text; as many as there are cores unless given.
    """
    from elmokit.static.glove import train_glove

    def work(read: "Text", folder: Path, stage: Stage) -> "StaticVectors":
        return train_glove(read, folder, settings, report=_report, stage=stage)

    _train(corpus, output, text, work, header=header, workers=workers)


def _report(epoch: "Epoch") -> None:
    print(f"epoch {epoch.number}: J {epoch.loss:,.1f}, mean cost on the way {epoch.cost:.6f}", file=sys.stderr)


def _train(
    corpus: Sequence[Path],
    output: Path,
    settings: TextSettings,
    work: "Callable[[Text, Path, Stage], StaticVectors | OneHot]",
    *,
    header: bool,
    workers: int | None,
) -> None:
    """Read the text, do the work, write the vectors."""
    from elmokit.static.corpus import read_text, work_folder
    from elmokit.static.files import check_output

    check_output(output)
    with work_folder() as folder, _stages() as stage:
        text = read_text(corpus, folder, settings, workers=workers, progress=stage("reading"))
        print(f"{text.tokens:,} tokens, {len(text.words):,} words", file=sys.stderr)
        vectors = work(text, folder, stage)
    vectors.save(output, header=header)
    print(f"{output}: {len(vectors.words):,} vectors of width {vectors.width:,}")


@contextmanager
def _stages() -> Iterator[Stage]:
    """For each stage of the work a bar for a person, or plain lines for a log."""
    if not sys.stderr.isatty():
        yield _lines
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True)) as bars:

        def stage(name: str) -> "Progress":
            bar = bars.add_task(name)

            def progress(done: int, total: int) -> None:
                bars.update(bar, completed=done, total=total)

            return progress

        yield stage


def _lines(name: str) -> "Progress":
    start = last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            print(f"{name}: {done / total:.0%} after {now - start:,.0f} s", file=sys.stderr, flush=True)

    return progress


@static.command
def evaluate(
    *files: Annotated[Path, Parameter(name="FILES")],
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    method: Literal["add", "mul"] = "add",
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    lower_case: bool = True,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Measure how well vectors agree with people, on word similarity and analogy sets.

    Example: elmokit static evaluate vectors.txt EN-MEN-TR-3k.txt questions-words.txt

    Parameters
    ----------
    files
        The vectors and then the sets: WordSim-353, SimLex-999, MEN and such, questions-words, CA8, SCWS. With a model
        in their place, the sets alone.
    model
        An ELMo model to measure instead, layer by layer, on words in context (SCWS).
    method
        How analogies are solved: add (3CosAdd) or mul (3CosMul).
    limit
        Seek answers to analogies among so many words, the first ones of the file; all unless given.
    lower_case
        Take the lower-case form of a word that has no vector.
    json_
        Give the results as JSON.
    """
    results = _measure_model(model, files) if model else _measure_vectors(files, method, limit, lower_case=lower_case)
    if json_:
        print(json.dumps([asdict(result) for result in results], ensure_ascii=False, indent=1))
    else:
        print(_table(results))


def _measure_vectors(
    files: Sequence[Path], method: Literal["add", "mul"], limit: int | None, *, lower_case: bool
) -> list["Result"]:
    from elmokit.errors import ConfigError

    if len(files) < 2:
        raise ConfigError("name the vectors, then at least one set to measure them on")
    from elmokit.static.datasets import read_dataset
    from elmokit.static.embedders import StaticVectors
    from elmokit.static.evaluation import evaluate

    datasets = [read_dataset(file) for file in files[1:]]
    vectors = StaticVectors.load(files[0], lower_case=lower_case)
    return [result for dataset in datasets for result in evaluate(vectors, dataset, method=method, limit=limit)]


def _measure_model(model: str, files: Sequence[Path]) -> list["Result"]:
    from elmokit.elmo import load
    from elmokit.static.datasets import read_dataset
    from elmokit.static.evaluation import evaluate_in_context

    datasets = [read_dataset(file) for file in files]
    elmo = load(model)
    return [result for dataset in datasets for result in evaluate_in_context(elmo, dataset)]


def _table(results: Sequence["Result"]) -> str:
    rows = [("set", "part", "measure", "value", "found", "of")]
    for one in results:
        value = "–" if one.value is None else f"{one.value:.3f}"
        rows.append((one.dataset, one.part, one.measure, value, f"{one.found:,}", f"{one.total:,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
