"""`elmokit task`: from labelled data to answers."""

import json as json_format
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from elmokit.cli.progress import SECONDS_BETWEEN_LINES
from elmokit.config import TokenizerName
from elmokit.errors import ConfigError, DataError, MissingExtraError
from elmokit.tasks.settings import FitSettings, InputSettings

if TYPE_CHECKING:
    from elmokit.embedder import Embedder
    from elmokit.tasks.report import Epoch
    from elmokit.tasks.saved import Predictor
    from elmokit.tasks.wsd import SenseCentroids

FLAT = Parameter(name="*")
Models = Annotated[list[str] | None, Parameter(alias="-m", negative="")]
Statics = Annotated[list[Path] | None, Parameter(negative="")]

task = App(name="task", help="Learn from labelled data, on top of any vectors, and answer: tags, classes and more.")


def _share(_type: Any, tokens: Sequence[Any]) -> float:
    """A share written as 0.01 or as 1%."""
    text = tokens[0].value
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ConfigError(f"--sample {text}: write it as 0.01 or 1%") from None


@task.command
def train(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    train: Path,
    dev: Path,
    output: Annotated[Path, Parameter(alias="-o")],
    model: Models = None,
    static: Statics = None,
    lower_case: bool = True,
    set_: Annotated[list[str] | None, Parameter(name=["--set", "-s"])] = None,
    sample: Annotated[float, Parameter(converter=_share)] = 1.0,
    inputs: Annotated[InputSettings, FLAT] = InputSettings(),  # noqa: B008
    training: Annotated[FitSettings, FLAT] = FitSettings(),  # noqa: B008
    tokenizer: TokenizerName | None = None,
    bundle: Annotated[bool, Parameter(negative="")] = False,
    cache_folder: Path | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Train a task and keep what does best on the dev data.

    Example: elmokit task train tagging --train train.conll --dev dev.conll --model MODEL --static glove.txt -o ner

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
    model
        An ELMo model whose layers are mixed. May be repeated: all vectors stand side by side.
    static
        Static vectors to put beside it, or to take alone. May be repeated.
    lower_case
        Take the lower-case form of a word that has no static vector.
    set_
        A setting of the task: hidden=300, column=xpos. May be repeated.
    sample
        Learn from a share of the training data alone: 0.01 or 1%.
    tokenizer
        How texts are cut that come without tokens; the model's own way unless given.
    bundle
        Copy the models and vectors into the folder, so that it can be moved anywhere.
    cache_folder
        Where frozen layers are kept for other runs on the same data; else they go when training ends.
    resume
        Go on with the run in the output folder, after its last whole epoch.
    """
    from elmokit.pretrain.recipe import set_value
    from elmokit.tasks.fit import fit
    from elmokit.tasks.registry import get_task
    from elmokit.tasks.task import settings_of

    values: dict[str, Any] = {}
    for setting in set_ or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: write it as name=value, such as hidden=300")
        set_value(values, key, value)
    if name == "wsd":
        _refuse_the_loop(inputs, training, sample=sample, tokenizer=tokenizer, cache_folder=cache_folder, resume=resume)
        _train_senses(values, train, dev, output, _load(model, static, lower_case=lower_case), bundle=bundle)
        return
    chosen = get_task(name)
    settings = settings_of(chosen, values)
    examples, held_out = (list(chosen.read(path, settings)) for path in (train, dev))
    embedders = _load(model, static, lower_case=lower_case)
    with _reporter() as reporter, _going_on(output):
        reporter.told(f"{len(examples):,} examples to learn from, {len(held_out):,} to measure on")
        fit(
            name,
            examples,
            held_out,
            embedders,
            output,
            settings=settings,
            inputs=inputs,
            training=training,
            tokenizer=tokenizer or _own_tokenizer(embedders),
            sample=sample,
            reporter=reporter,
            bundle=bundle,
            cache_folder=cache_folder,
            resume=resume,
        )
        _draw(output, reporter)
    print(f"{output}: trained; report.json tells how")


def _refuse_the_loop(inputs: InputSettings, training: FitSettings, **options: Any) -> None:
    """Senses are not trained in epochs: whoever sets what belongs to these should know."""
    given = vars(inputs) | vars(training) | options
    usual = vars(InputSettings()) | vars(FitSettings()) | {"sample": 1.0, "resume": False}
    if others := [f"--{name.replace('_', '-')}" for name, value in given.items() if value != usual.get(name)]:
        raise ConfigError(
            f"wsd learns in one reading: {' and '.join(others)} {'is' if len(others) == 1 else 'are'} not for it"
        )


def _train_senses(
    values: dict[str, Any], train: Path, dev: Path, output: Path, embedders: Mapping[str, "Embedder"], *, bundle: bool
) -> None:
    """Learn the senses of words, for which one reading of the data is enough."""
    from elmokit.tasks import wsd
    from elmokit.tasks.readers import read_inventory

    senses, layer = values.pop("senses", None), values.pop("layer", "top")
    if values:
        raise ConfigError(f"unknown setting {next(iter(values))!r}: wsd has senses and layer")
    if senses is None:
        raise ConfigError("wsd needs the senses that each lemma has: -s senses=FILE")
    if len(embedders) != 1:
        raise ConfigError(f"wsd takes one embedder, a model or static vectors; {len(embedders)} are given")
    wsd.check_unused(output)
    [(name, embedder)] = embedders.items()
    held_out = list(wsd.read(dev))  # what is wrong with it is better known before the learning than after
    learned = wsd.fit(wsd.read(train), embedder, read_inventory(Path(senses)), layer=layer, name=name)
    scores = learned.evaluate(held_out)
    learned.save(output, bundle=bundle)
    _print_scores(scores)


def _draw(output: Path, reporter: "LineReporter") -> None:
    from elmokit.tasks.plots import write_plots

    try:
        write_plots(output)
    except MissingExtraError as error:
        reporter.told(f"{error}")


def _load(models: list[str] | None, statics: list[Path] | None, *, lower_case: bool) -> dict[str, "Embedder"]:
    """The embedders by the names under which a task finds them again from anywhere."""
    from elmokit.elmo import load
    from elmokit.static.embedders import StaticVectors

    found: dict[str, Embedder] = {}
    for static in statics or []:
        found[str(static.resolve())] = StaticVectors.load(static, lower_case=lower_case)
    for model in models or []:
        path = Path(model).expanduser()
        found[str(path.resolve()) if path.exists() else model] = load(model)
    return found


def _own_tokenizer(embedders: Mapping[str, "Embedder"]) -> TokenizerName:
    from elmokit.elmo import Elmo

    return next((one.config.tokenizer for one in embedders.values() if isinstance(one, Elmo)), "words")


@task.command
def evaluate(
    folder: Annotated[Path, Parameter(name="DIR")],
    data: Annotated[Path, Parameter(name="FILE")],
    /,
    *,
    model: Models = None,
    static: Statics = None,
    lower_case: bool = True,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Measure a trained task on labelled data.

    Example: elmokit task evaluate ner test.conll

    Parameters
    ----------
    folder
        The folder of the trained task.
    data
        The labelled data.
    model
        Where the model is that the task was trained with, if it moved since.
    static
        Where the static vectors are, if they moved; then name the models too.
    lower_case
        As it was in training.
    json
        Print JSON.
    """
    predictor = _open(folder, model, static, lower_case=lower_case)
    scores = predictor.evaluate(predictor.read(data))
    if json:
        print(json_format.dumps(scores))
        return
    _print_scores(scores)


def _print_scores(scores: Mapping[str, float]) -> None:
    width = max(map(len, scores))
    for name, score in scores.items():
        print(f"{name:<{width}}  {score:.4f}")


@task.command
def predict(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *sources: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True)],
    split: Annotated[bool, Parameter(negative="")] = False,
    model: Models = None,
    static: Statics = None,
    lower_case: bool = True,
) -> None:
    """Answer texts by a trained task: a JSON object a line goes out for each that comes in.

    Example: elmokit task predict ner letters.txt --split

    Parameters
    ----------
    folder
        The folder of the trained task.
    sources
        UTF-8 files with a text or a JSON object a line, or - for standard input, which is read if none is named.
    split
        The input is running text with blank lines between paragraphs: split it into sentences.
    model
        Where the model is that the task was trained with, if it moved since.
    static
        Where the static vectors are, if they moved; then name the models too.
    lower_case
        As it was in training.
    """
    from elmokit.cli.lines import read_sentences
    from elmokit.tasks.task import shown

    predictor = _open(folder, model, static, lower_case=lower_case)
    for source in sources or ("-",):
        lines = read_sentences(source, split=split)
        for answer in predictor.predict_stream(_examples(lines, source)):
            print(_as_line(shown(answer)))


def _as_line(values: Mapping[str, Any]) -> str:
    """JSON that can be printed: a lone surrogate has no UTF-8."""
    line = json_format.dumps(values, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        return json_format.dumps(values)
    return line


def _open(
    folder: Path, models: list[str] | None, statics: list[Path] | None, *, lower_case: bool
) -> "Predictor | SenseCentroids":
    from elmokit.tasks.loading import load

    given = _load(models, statics, lower_case=lower_case)
    return load(folder, embedders=list(given.values()) or None)


def _examples(lines: Iterator[str], source: str) -> Iterator[str | dict[str, Any]]:
    """Lines of text as they are, and JSON objects as what they hold."""
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("{"):
            yield line
            continue
        try:
            yield json_format.loads(line)
        except ValueError as error:
            raise DataError(f"{source}: line {number} begins like a JSON object and is none: {error}") from None


@contextmanager
def _going_on(output: Path) -> Iterator[None]:
    """Say after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"{output} holds all whole epochs: the same command with --resume goes on from there", file=sys.stderr)
        raise


@contextmanager
def _reporter() -> Iterator["LineReporter"]:
    """A bar where a person watches, else plain lines."""
    if not sys.stderr.isatty():
        yield LineReporter()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    texts = [TextColumn(text) for text in ("{task.description}", "{task.fields[note]}")]
    with Progress(texts[0], BarColumn(), texts[1], TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        yield BarReporter(bar)


class LineReporter:
    """Plain lines for a log."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def told(self, message: str) -> None:
        """Write a line."""
        print(message, file=sys.stderr, flush=True)

    def embedding(self, done: int, total: int) -> None:
        """Say how it goes, now and then."""
        self._now_and_then(f"computing layers: {done / total:.0%} of {total:,} tokens")

    def stepped(self, epoch: int, done: int, total: int, loss: float) -> None:
        """Say how it goes, now and then."""
        self._now_and_then(f"epoch {epoch}: {done / total:.0%}, loss {loss:.4f}")

    def measured(self, epoch: "Epoch", best: "Epoch") -> None:
        """Say what an epoch has come to."""
        scores = ", ".join(f"{name} {score:.4f}" for name, score in epoch.scores.items())
        rank = "the best so far" if epoch is best else f"best {best.score:.4f} in epoch {best.number}"
        self.told(f"epoch {epoch.number}: loss {epoch.loss:.4f}, dev {scores} ({rank}), {epoch.seconds:,.0f} s")

    def _now_and_then(self, line: str) -> None:
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self.last = time.monotonic()
            self.told(line)


class BarReporter(LineReporter):
    """A live bar for a person."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self.bar, self.score = bar, ""
        self.row = bar.add_task("", note="")

    def told(self, message: str) -> None:
        """Write a line above the bar."""
        self.bar.console.print(message, highlight=False, markup=False)

    def embedding(self, done: int, total: int) -> None:
        """Move the bar."""
        self.bar.update(self.row, description="computing layers", completed=done, total=total, note="")

    def stepped(self, epoch: int, done: int, total: int, loss: float) -> None:
        """Move the bar."""
        note = f"loss {loss:.4f}{self.score}"
        self.bar.update(self.row, description=f"epoch {epoch}", completed=done, total=total, note=note)

    def measured(self, epoch: "Epoch", best: "Epoch") -> None:
        """Write what an epoch has come to, and keep the best score beside the bar."""
        super().measured(epoch, best)
        self.score = f"  dev {best.score:.4f}"
