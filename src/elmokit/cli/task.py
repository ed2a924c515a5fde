"""`elmokit task`: from labelled data to answers."""

import json as json_format
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from elmokit.cli.options import TokenOptions, model_for, set_values
from elmokit.cli.output import print_json
from elmokit.errors import ConfigError, DataError, MissingExtraError
from elmokit.progress.drawing import watched
from elmokit.tasks.task import FitSettings, InputSettings
from elmokit.text.layout import Lines
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.embedder import Embedder
    from elmokit.tasks import Predictor

FLAT = Parameter(name="*", negative_iterable=())
Folder = Annotated[Path, Parameter(name="DIR", help="The folder of the trained task.")]
Data = Annotated[Path, Parameter(name="FILE", help="The labelled data.")]
Flag = Annotated[bool, Parameter(negative="")]
Encoding = Annotated[
    str | None,
    Parameter(help="What files are decoded by: gb18030, big5, latin-1 …; auto guesses; UTF-8 unless given."),
]
task = App(name="task", help="Learn from labelled data, on top of any vectors, and answer: tags, classes and more.")


@FLAT
@dataclass(frozen=True, kw_only=True)
class Vectors:
    """What a task learns on top of; a trained one finds it again, unless it moved."""

    model: Annotated[list[str] | None, Parameter(alias="-m")] = None
    """An ELMo model whose layers are mixed: a bundled model (en, zh), a folder, a file or an address; zh or en by the
    training text unless any vectors are given. A trained task finds its own, unless it moved. May be repeated."""
    static: list[Path] | None = None
    """Static vectors beside it, or alone; of a trained task all vectors are named, or none. May be repeated."""
    lower_case: bool = True
    """Take the lower-case form of a word that has no static vector; of a trained task, as it was in training."""

    def load(self, train: Path | None = None) -> "Iterator[tuple[str | Path, Embedder]]":
        """The embedders and where they are from, each loaded when it is asked for; to train, there must be one."""
        from elmokit.elmo import load
        from elmokit.static.embedders import StaticVectors

        for static in self.static or []:
            yield static, StaticVectors.load(static, lower_case=self.lower_case)
        bundled = [model_for(None, _beginning(train))] if train and not (self.model or self.static) else []
        for model in self.model or bundled:
            yield model, load(model)

    def load_task(self, folder: Path) -> "Predictor":
        from elmokit.tasks import load

        return load(folder, embedders=[embedder for _, embedder in self.load()] or None)


def _beginning(data: Path) -> str:
    from elmokit.text.documents import TextFile

    return TextFile(data.expanduser(), field=None).head()


@FLAT
@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where a table has its texts and labels."""

    text_column: list[str] | None = None
    """The column or field of the texts, by its name or its number from 1; twice for pairs. Found by itself unless
    given."""
    label_column: str | None = None
    """The column or field of the labels, likewise."""

    def settings(self) -> dict[str, Any]:
        """The task's settings of the same meaning, which count from 0."""
        texts = self.text_column or []
        if len(texts) > 2:
            raise ConfigError(f"--text-column is given {len(texts)} times: a task reads one text, or a pair")
        given = zip(("first", "second") if len(texts) == 2 else ("text",), texts, strict=False)
        label = {} if self.label_column is None else {"label": _column(self.label_column)}
        return {name: _column(column) for name, column in given} | label


def _column(given: str) -> str | int:
    if given == "0":
        raise ConfigError("column 0: columns count from 1")
    return int(given) - 1 if given.isdecimal() else given


def _share(_type: Any, tokens: Sequence[Any]) -> float:
    text = tokens[0].value
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ConfigError(f"--sample {text}: write it as 0.01 or 1%") from None


@FLAT
@dataclass(frozen=True, kw_only=True)
class RunOptions(TokenOptions):
    """What else can be said of a run."""

    sample: Annotated[float | None, Parameter(converter=_share)] = None
    """Learn from a share of the training data alone: 0.01 or 1%."""
    cache_folder: Path | None = None
    """Where frozen layers are kept for other runs on the same data; else they go when training ends."""
    encoding: Encoding = None
    resume: Flag = False
    """Go on with the run in the output folder, after its last whole epoch."""
    bundle: Flag = False
    """Copy the models and vectors into the folder, so that it can be moved anywhere."""


class _Given:
    """Settings that remember which of them were given: what was not is for the task to say."""

    given: dict[str, Any]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        vars(self)["given"] = given


class _Inputs(_Given, InputSettings): ...


class _Training(_Given, FitSettings): ...


@task.command
def train(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    train: Path,
    dev: Path,
    output: Annotated[Path, Parameter(alias="-o")],
    vectors: Vectors = Vectors(),
    columns: Columns = Columns(),
    set_: Annotated[list[str] | None, Parameter(name=["--set", "-s"])] = None,
    inputs: Annotated[_Inputs, FLAT] = _Inputs(),  # noqa: B008
    training: Annotated[_Training, FLAT] = _Training(),  # noqa: B008
    run: RunOptions = RunOptions(),
) -> None:
    """Train a task and keep what does best on the dev data.

    Example: elmokit task train tagging --train train.conll --dev dev.conll -o ner

    Parameters
    ----------
    name
        tagging (entities, parts of speech, chunks), classify (classes of texts), pairs (how two texts relate), span_qa
        (answers in a text), srl (who did what to whom), coref (which mentions are the same), wsd (senses of words; -s
        senses=FILE lists those of each lemma, -s layer=top) or probe (what each layer knows).
    train
        The labelled data to learn from.
    dev
        The labelled data that decides when to stop and what to keep.
    output
        The folder of the trained task.
    set_
        A setting of the task: hidden=300, column=xpos. May be repeated.
    """
    from elmokit.tasks import train as train_task
    from elmokit.tasks.loop import write_plots

    tokens = {field.name for field in fields(TokenOptions)}
    given = {key: value for key, value in vars(run).items() if value is not None and value is not False}
    options = {key: value for key, value in given.items() if key not in tokens}
    if any(getattr(run, name) is not None for name in tokens):
        options["tokenizer"] = run.over("auto")
    options |= {
        **inputs.given,
        **training.given,
        "settings": set_values(columns.settings(), set_, example="hidden=300"),
    }
    try:
        with watched(str(train)) as progress:
            embedders = vectors.load(train)
            train_task(name, train=train, dev=dev, folder=output, embedders=embedders, progress=progress, **options)
            if reported := (output / "report.json").exists():  # senses have no epochs to report
                try:
                    write_plots(output)
                except MissingExtraError as error:
                    progress.message(str(error))
    except KeyboardInterrupt:
        if (output / "task.json").exists():
            message = f"{output} holds all whole epochs: the same command with --resume goes on from there"
            print(translate(message), file=sys.stderr)
        raise
    print(translate(f"{output}: trained; report.json tells how" if reported else f"{output}: trained"))


@task.command
def evaluate(
    folder: Folder,
    data: Data,
    /,
    *,
    columns: Columns = Columns(),
    vectors: Vectors = Vectors(),
    encoding: Encoding = None,
    json: Flag = False,
) -> None:
    """Measure a trained task on labelled data.

    Example: elmokit task evaluate ner test.conll

    Parameters
    ----------
    json
        Print JSON.
    """
    predictor = vectors.load_task(folder)
    examples = predictor.read(data, columns.settings(), encoding=encoding or "utf-8")
    scores = predictor.evaluate(examples)
    if json:
        print_json(scores, indent=None)
        return
    width = max(map(len, scores))
    print("\n".join(f"{name:<{width}}  {score:.4f}" for name, score in scores.items()))


@task.command
def predict(
    folder: Folder,
    /,
    *sources: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True)],
    lines: Lines = "sentences",
    split: Annotated[bool, Parameter(negative="", show=False)] = False,  # the older name of --lines auto
    encoding: str = "utf-8",
    language: str = "auto",
    vectors: Vectors = Vectors(),
) -> None:
    """Answer texts by a trained task: one JSON object per line goes out for each that comes in.

    Example: elmokit task predict ner letters.txt --lines auto

    Parameters
    ----------
    sources
        Files with a text or a JSON object per line, or - for standard input, which is read if none is named.
    lines
        What a line is: sentences for one example per line; for running text that is to be split into sentences,
        wrapped if blank lines end its paragraphs, paragraphs if each line is one, auto to see that from the text.
    encoding
        What text is decoded by unless it begins with a byte order mark: gb18030, big5, latin-1 …; auto guesses.
    language
        The language's code, which decides where sentences end: de, hi, ja …; auto sees each paragraph's script.
    """
    from elmokit.tasks.task import shown
    from elmokit.text.corpus import iter_sentences
    from elmokit.text.documents import iter_documents, open_texts
    from elmokit.text.languages import check_language

    predictor = vectors.load_task(folder)
    meaning = "auto" if split else lines
    for file in open_texts(sources or ("-",), lines=meaning, field=None, encoding=encoding, repeatable=False):
        name = f"{file.name}: {'line' if meaning == 'sentences' else 'sentence'}"
        reading: dict[str, Any] = {"split": meaning != "sentences", "language": check_language(language)}
        texts = (iter_sentences(one.text, **reading) for one in iter_documents([file]))
        for answer in predictor.predict_stream(_examples(chain.from_iterable(texts), name), name=name):
            print_json(shown(answer), indent=None)


def _examples(lines: Iterator[str], name: str) -> Iterator[str | dict[str, Any]]:
    """Lines of text as they are, and JSON objects as what they hold."""
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("{"):
            yield line
            continue
        try:
            yield json_format.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name} {number} begins like a JSON object and is none: {error}") from None
