"""Any task trained from files, as the command line and programs do it."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from elmokit.config import TokenizerName
from elmokit.elmo import Elmo
from elmokit.elmo import load as load_model
from elmokit.embedder import Embedder
from elmokit.errors import ConfigError
from elmokit.tasks import wsd
from elmokit.tasks.fit import fit
from elmokit.tasks.readers import read_inventory
from elmokit.tasks.registry import get_task
from elmokit.tasks.report import Reporter, Silence
from elmokit.tasks.saved import Predictor
from elmokit.tasks.settings import FitSettings, InputSettings
from elmokit.tasks.task import checked, settings_of, training_of

Source = str | Path
Embedders = Mapping[str, Embedder] | Iterable[Source | tuple[Source, Embedder]]
"""Models by name or path, or any embedders by the names or paths under which they are found again."""

INPUTS, TRAINING = ([field.name for field in fields(kind)] for kind in (InputSettings, FitSettings))
OPTIONS = (*INPUTS, *TRAINING, "tokenizer", "sample", "cache_folder", "resume")


def train(
    name: str,
    *,
    train: Source,
    dev: Source,
    embedders: Embedders,
    folder: Source,
    settings: Mapping[str, Any] | None = None,
    bundle: bool = False,
    reporter: Reporter = Silence(),  # noqa: B008
    **options: Any,
) -> Predictor | wsd.SenseCentroids:
    """Train a task on a file and keep in a folder what does best on another.

    `settings` are the task's own. `options` are those of the loop: the fields of InputSettings and FitSettings, and
    `tokenizer`, `sample`, `cache_folder` and `resume` as in `fit`.
    """
    if unknown := [option for option in options if option not in OPTIONS]:
        raise ConfigError(f"unknown option {unknown[0]!r}: known are {', '.join(OPTIONS)}")
    if isinstance(embedders, str | Path):
        raise ConfigError(f'the embedders came as one: put it in a list, ["{embedders}"]')
    if name == "wsd":
        _refuse(options, "wsd learns in one reading")
        paths = _path(train), _path(dev), _path(folder)
        return _train_senses(settings or {}, *paths, embedders, reporter, bundle=bundle)
    task = get_task(name)
    if hasattr(task, "INPUTS"):
        _refuse([option for option in options if option in INPUTS], f"{name} sees each layer as it is")
    chosen = settings_of(task, settings or {})
    inputs, training = (_taken(options, names) for names in (INPUTS, TRAINING))
    loop = training_of(task, training)
    read_train = getattr(task, "read_train", task.read)
    examples, held_out = list(read_train(_path(train), chosen)), list(task.read(_path(dev), chosen))
    named = _named(embedders)
    return fit(
        name,
        examples,
        held_out,
        named,
        folder,
        settings=chosen,
        inputs=checked(InputSettings, inputs, "the options") if inputs else None,
        training=loop,
        reporter=reporter,
        bundle=bundle,
        **{"tokenizer": _own_tokenizer(named), **options},
    )


def _taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Some of the options, taken out of all."""
    return {name: options.pop(name) for name in names if name in options}


def _refuse(options: Iterable[str], why: str) -> None:
    """Whoever sets what a task does not use should know."""
    if names := list(options):
        raise ConfigError(f"{why}: {' and '.join(names)} {'is' if len(names) == 1 else 'are'} not for it")


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


def _own_tokenizer(embedders: Mapping[str, Embedder]) -> TokenizerName:
    return next((one.config.tokenizer for one in embedders.values() if isinstance(one, Elmo)), "words")


def _train_senses(
    settings: Mapping[str, Any],
    train: Path,
    dev: Path,
    folder: Path,
    embedders: Embedders,
    reporter: Reporter,
    *,
    bundle: bool,
) -> wsd.SenseCentroids:
    """Learn the senses of words, for which one reading of the data is enough."""
    if unknown := set(settings) - {"senses", "layer", "prior"}:
        raise ConfigError(f"unknown setting {min(unknown)!r}: wsd has senses, layer and prior")
    if "senses" not in settings:
        raise ConfigError("wsd needs the senses that each lemma has: -s senses=FILE")
    wsd.check_unused(folder)
    held_out = list(wsd.read(dev))  # what is wrong with it is better known before the learning than after
    named = _named(embedders)
    if len(named) != 1:
        raise ConfigError(f"wsd takes one embedder, a model or static vectors; {len(named)} are given")
    [(name, embedder)] = named.items()
    inventory = read_inventory(_path(str(settings["senses"])))
    options = {key: value for key, value in settings.items() if key != "senses"}
    learned = wsd.fit(wsd.read(train), embedder, inventory, name=name, **options)
    scores = learned.evaluate(held_out)
    learned.save(folder, bundle=bundle)
    reporter.told("dev " + ", ".join(f"{measure} {score:.4f}" for measure, score in scores.items()))
    return learned
