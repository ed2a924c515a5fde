"""The tasks by name: trained from files or from examples, and loaded from their folders."""

import random
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch

from elmokit.elmo import Elmo
from elmokit.elmo import load as load_model
from elmokit.embedder import Embedder
from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.files import as_json, check_same_settings, contents, locked, read_json, replace_file
from elmokit.progress import SILENCE, Progress
from elmokit.tasks import classify, coref, pairs, span_qa, srl, tagging, wsd
from elmokit.tasks.loop import CACHE, TaskTraining
from elmokit.tasks.predictor import CONFIG, COPIES, Network, Predictor, TaskConfig, fetch, identify, write_copies
from elmokit.tasks.readers.lines import reading_as
from elmokit.tasks.task import INPUT_OPTIONS, OPTIONS, TRAINING_OPTIONS, FitOptions, InputSettings, Task, checked
from elmokit.tasks.whole_words import are_characters_of_words
from elmokit.text.encodings import UTF8
from elmokit.text.tokenizers import get_tokenizer

Source = str | Path
Embedders = Mapping[str, Embedder] | Iterable[Source | tuple[Source, Embedder]]
"""Models by name or path, or any embedders by the names or paths under which they are found again."""

MOST_SHOWN = 20  # labels
OLD_PARTIAL = ".partial"  # where earlier versions wrote copies

MODULES = (tagging, classify, pairs, span_qa, srl, coref, wsd)
TASKS: Mapping[str, Task] = {task.name: task for task in (*(module.TASK for module in MODULES), tagging.PROBE)}


def get_task(name: str) -> Task:
    """The task of that name."""
    if name not in TASKS:
        raise ConfigError(f"unknown task {name!r}: known are {', '.join(TASKS)}")
    return TASKS[name]


def read(name: str, path: str | Path, settings: Mapping[str, Any] | None = None, *, encoding: str = UTF8) -> list[Any]:
    """The labelled examples of a file, as the task of that name reads it: `read("tagging", "train.conll")`."""
    task = get_task(name)
    with reading_as(encoding):
        return list(task.read(_path(path), task.settings_from(settings or {})))


def read_config(folder: Path) -> Any:
    """What task.json says: a TaskConfig, or a SenseConfig."""
    kinds: Any = TaskConfig | wsd.SenseConfig
    return read_json(folder / CONFIG, kinds, missing="no trained task")


def train(
    name: str,
    *,
    train: Source,
    dev: Source,
    embedders: Embedders,
    folder: Source,
    settings: Mapping[str, Any] | None = None,
    encoding: str = UTF8,
    bundle: bool = False,
    progress: Progress = SILENCE,
    **options: Any,
) -> Predictor:
    """Train a task on a file and keep in a folder what does best on another.

    `settings` are the task's own. `options` are those of the loop: the fields of InputSettings and FitSettings, and
    `tokenizer`, `sample`, `cache_folder` and `resume` of FitOptions.
    """
    task = get_task(name)
    if unknown := [option for option in options if option not in OPTIONS]:
        raise ConfigError(f"unknown option {unknown[0]!r}: known are {', '.join(OPTIONS)}")
    if isinstance(embedders, str | Path):
        raise ConfigError(f'the embedders came as one: put it in a list, ["{embedders}"]')
    task.check_options(options)
    inputs, training = (
        {option: options.pop(option) for option in names if option in options}
        for names in (INPUT_OPTIONS, TRAINING_OPTIONS)
    )
    chosen = FitOptions(
        settings=task.settings_from(settings or {}),
        inputs=checked(InputSettings, inputs, "the options") if inputs else None,
        training=task.training_from(training),
        bundle=bundle,
        **options,
    )
    _check_folder(_path(folder), task, chosen)
    with reading_as(encoding):  # what is wrong with the data is told before hours of learning
        if task.find:
            found, described = task.find(_path(train), chosen.settings)
            chosen = replace(chosen, settings=found)
            if described:
                progress.message(f"{train}: {described}")
        held_out = list(task.read(_path(dev), chosen.settings))
        examples = list((task.read_train or task.read)(_path(train), chosen.settings))
    named = _named(embedders)
    if "tokenizer" not in options:
        own = (one.config.tokenizer for one in named.values() if isinstance(one, Elmo))
        chosen = replace(chosen, tokenizer=next(own, "auto"))
    return fit(name, examples, held_out, named, folder, chosen, progress=progress)


def fit(
    name: str,
    train: Iterable[Any],
    dev: Sequence[Any],
    embedders: Mapping[str, Embedder],
    folder: Source,
    options: FitOptions | None = None,
    *,
    progress: Progress = SILENCE,
) -> Predictor:
    """Train a task on examples and keep in a folder what answers the dev examples best.

    Embedders come by the names under which the trained task will look for them.
    """
    task, options = get_task(name), options or FitOptions()
    if task.inputs and options.inputs:
        raise ConfigError(f"{name} {task.reason}: it takes no settings of the inputs")
    folder = _path(folder)
    if task.learn:
        learned: Predictor = task.learn(train, dev, embedders, folder, options, progress)
        return learned
    examples = list(train)
    for part, which in ((examples, "training"), (dev, "dev")):
        if not part:
            raise DataError(f"the {which} data holds no examples")
    training = options.training or task.training_from({})
    counts = task.count_labels(examples)  # of all the data: a sample of it may lack some
    labels = tuple(sorted(counts))
    task.check_labels(dev, labels)
    tokenize, models = get_tokenizer(options.tokenizer), list(embedders.values())
    count = max(1, round(options.sample * len(examples)))
    chosen = sorted(random.Random(f"{training.seed} sample").sample(range(len(examples)), count))
    parts = ([examples[number] for number in chosen], dev)
    items = [[task.prepare(example, tokenize) for example in part] for part in parts]
    progress.message(f"{len(items[0]):,} examples to learn from, {len(items[1]):,} to measure on")
    if counts:
        progress.message(shown_counts(counts))
    inputs = task.inputs or options.inputs or InputSettings()
    sentences = (sentence for item in items[0] for sentence in item.sentences)
    frozen = task.inputs is None and inputs.trainable == "mix"
    if frozen and inputs.whole_words == "auto" and are_characters_of_words(sentences, models):
        inputs = replace(inputs, whole_words="yes")
        progress.message("tokens are single characters: each is read in its word too, unless --whole-words no")
    config = TaskConfig(
        task=task.name,
        settings=msgspec.to_builtins(options.settings or task.settings()),
        labels=labels,
        inputs=inputs,
        tokenizer=options.tokenizer,
        embedders=tuple(identify(*named) for named in embedders.items()),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        network = Network(task, config, models)
    options = replace(options, resume=options.resume and not _never_began(folder))
    with locked(folder):
        config = _open_folder(folder, task, config, models, options)
        run = TaskTraining(folder, task, network, items, options, progress)
        if options.resume:
            run.restore()
        run.cache_layers(config.embedders)
        run.finish(list(embedders))
        network.load(folder)
        for source in network.inputs.cacheable().values():
            source.cache = None
        shutil.rmtree(folder / CACHE, ignore_errors=True)
    return Predictor(task, network, config)


def shown_counts(counts: Counter[str]) -> str:
    """Labels in one line, the most frequent first."""
    most = ", ".join(f"{label[:40]} ({count:,})" for label, count in counts.most_common(MOST_SHOWN))
    others = f" and {len(counts) - MOST_SHOWN:,} others" if len(counts) > MOST_SHOWN else ""
    return f"{len(counts):,} labels: {most}{others}"


def load(folder: str | Path, *, embedders: Sequence[Embedder] | None = None) -> Predictor:
    """Load a trained task; its embedders are found where they were, unless they are given."""
    folder = _path(folder)
    config = read_config(folder)
    found = fetch(folder, config.embedders, embedders)
    try:
        task = get_task(config.task)
        model = task.load(folder, config, found) if task.load else Network(task, config, found)
    except ConfigError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    if not task.load:
        model.load(folder)
    return Predictor(task, model, config)


def _never_began(folder: Path) -> bool:
    """Whether a run was killed here before its task.json: one that is asked to resume begins."""
    return folder.is_dir() and not contents(folder) - {OLD_PARTIAL, COPIES}


def _check_folder(folder: Path, task: Task, options: FitOptions) -> None:
    """Refuse to begin where something is, but for what a run that was killed before its task.json has left."""
    ours = {OLD_PARTIAL, COPIES} if options.bundle else {OLD_PARTIAL}
    if not options.resume and folder.exists() and (not folder.is_dir() or contents(folder) - ours):
        hint = "" if "resume" in task.refused else ", or go on with a run in it by --resume"
        raise OutputError(f"{folder} is not an empty folder: choose another{hint}")


def _open_folder(
    folder: Path, task: Task, config: TaskConfig, embedders: Sequence[Embedder], options: FitOptions
) -> TaskConfig:
    """Begin a folder, or go on with one of the same config."""
    if options.resume:
        before: TaskConfig = read_config(folder)
        check_same_settings(folder, _comparable(before), _comparable(config))
        return before
    _check_folder(folder, task, options)
    shutil.rmtree(folder / OLD_PARTIAL, ignore_errors=True)
    if options.bundle:
        config = msgspec.structs.replace(config, embedders=write_copies(folder, config.embedders, embedders))
    replace_file(folder / CONFIG, as_json(config))
    return config


def _comparable(config: TaskConfig) -> dict[str, Any]:
    """A config as plain values, where a copy of an embedder is the same as the embedder."""
    values: dict[str, Any] = msgspec.to_builtins(config)
    known = [one | {"bundled": None} for one in values.get("embedders", ())]
    return values | {"embedders": {str(number): one for number, one in enumerate(known)}}


def _named(embedders: Embedders) -> dict[str, Embedder]:
    """Each by the name under which a task finds it again from anywhere."""
    found: dict[str, Embedder] = {}
    for one in embedders.items() if isinstance(embedders, Mapping) else embedders:
        name, embedder = one if isinstance(one, tuple) else (one, load_model(one))
        path = _path(name)
        known = str(path.resolve()) if path.exists() else str(name)
        if known in found:
            raise ConfigError(f"{name} is given twice: vectors beside themselves tell nothing new")
        found[known] = embedder
    return found


def _path(source: Source) -> Path:
    return Path(source).expanduser()
