"""`elmokit task`: from labelled data to answers."""

import json as json_format
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from elmokit.cli.task_progress import LineReporter, going_on, open_reporter
from elmokit.config import TokenizerName
from elmokit.errors import ConfigError, DataError, MissingExtraError
from elmokit.tasks.settings import FitSettings, InputSettings
from elmokit.text.layout import Lines

if TYPE_CHECKING:
    from elmokit.embedder import Embedder
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
    model: Models = None,
    static: Statics = None,
    lower_case: bool = True,
    set_: Annotated[list[str] | None, Parameter(name=["--set", "-s"])] = None,
    sample: Annotated[float | None, Parameter(converter=_share)] = None,
    inputs: Annotated[_Inputs, FLAT] = _Inputs(),  # noqa: B008
    training: Annotated[_Training, FLAT] = _Training(),  # noqa: B008
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
    from elmokit.tasks.training import train as train_task

    rest = {"sample": sample, "tokenizer": tokenizer, "cache_folder": cache_folder, "resume": resume or None}
    options = inputs.given | training.given | {key: value for key, value in rest.items() if value is not None}
    with open_reporter() as reporter, going_on(output):
        train_task(
            name,
            train=train,
            dev=dev,
            embedders=_load(model, static, lower_case=lower_case),
            folder=output,
            settings=_values(set_ or []),
            bundle=bundle,
            reporter=reporter,
            **options,
        )
        told = (output / "report.json").exists()  # senses have no epochs to tell of
        if told:
            _draw(output, reporter)
    print(f"{output}: trained{'; report.json tells how' if told else ''}")


def _values(settings: Sequence[str]) -> dict[str, Any]:
    """Those of the task, each written as name=value."""
    from elmokit.pretrain.recipe import set_value

    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: write it as name=value, such as hidden=300")
        set_value(values, key, value)
    return values


def _draw(output: Path, reporter: LineReporter) -> None:
    from elmokit.tasks.plots import write_plots

    try:
        write_plots(output)
    except MissingExtraError as error:
        reporter.told(f"{error}")


def _load(
    models: list[str] | None, statics: list[Path] | None, *, lower_case: bool
) -> "Iterator[tuple[str | Path, Embedder]]":
    """The embedders and where they are from, each loaded when it is asked for."""
    from elmokit.elmo import load
    from elmokit.static.embedders import StaticVectors

    for static in statics or []:
        yield static, StaticVectors.load(static, lower_case=lower_case)
    for model in models or []:
        yield model, load(model)


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
    width = max(map(len, scores))
    for name, score in scores.items():
        print(f"{name:<{width}}  {score:.4f}")


@task.command
def predict(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *sources: Annotated[str, Parameter(name="INPUT", allow_leading_hyphen=True)],
    lines: Lines = "sentences",
    split: Annotated[bool, Parameter(negative="", show=False)] = False,
    model: Models = None,
    static: Statics = None,
    lower_case: bool = True,
) -> None:
    """Answer texts by a trained task: a JSON object a line goes out for each that comes in.

    Example: elmokit task predict ner letters.txt --lines auto

    Parameters
    ----------
    folder
        The folder of the trained task.
    sources
        UTF-8 files with a text or a JSON object a line, or - for standard input, which is read if none is named.
    lines
        What a line is: sentences for one example per line; for running text that is to be split into sentences,
        wrapped if blank lines end its paragraphs, paragraphs if each line is one, auto to see that from the text.
    split
        The older name of --lines auto.
    model
        Where the model is that the task was trained with, if it moved since.
    static
        Where the static vectors are, if they moved; then name the models too.
    lower_case
        As it was in training.
    """
    from elmokit.tasks.task import shown
    from elmokit.text.corpus import iter_sentences
    from elmokit.text.documents import iter_documents, open_texts

    predictor = _open(folder, model, static, lower_case=lower_case)
    meaning = "auto" if split else lines
    for file in open_texts(sources or ("-",), lines=meaning, field=None, repeatable=False):
        name = f"{file.name}: {'line' if meaning == 'sentences' else 'sentence'}"
        texts = (document.text for document in iter_documents([file]))
        sentences = (sentence for text in texts for sentence in iter_sentences(text, split=meaning != "sentences"))
        examples = _examples(sentences, name)
        for answer in predictor.predict_stream(examples, name=name):
            print(_as_line(shown(answer)), flush=True)


def _as_line(values: Mapping[str, Any]) -> str:
    """JSON that can be printed: a lone surrogate has no UTF-8, and not every terminal has all characters."""
    line = json_format.dumps(values, ensure_ascii=False)
    try:
        line.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json_format.dumps(values)
    return line


def _open(
    folder: Path, models: list[str] | None, statics: list[Path] | None, *, lower_case: bool
) -> "Predictor | SenseCentroids":
    from elmokit.tasks.loading import load

    given = [embedder for _, embedder in _load(models, statics, lower_case=lower_case)]
    return load(folder, embedders=given or None)


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
