"""The tasks by name, and trained ones by their folders."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from elmokit.embedder import Embedder
from elmokit.errors import CheckpointError, ConfigError
from elmokit.files import read_json
from elmokit.tasks import classify, coref, pairs, probe, span_qa, srl, tagging, wsd
from elmokit.tasks.embedders import check_same, fetch
from elmokit.tasks.predictor import CONFIG, Predictor, TaskConfig, load_network
from elmokit.tasks.task import Task

TASKS: Mapping[str, Task] = {
    module.TASK.name: module.TASK for module in (tagging, classify, pairs, span_qa, srl, coref, wsd, probe)
}


def get_task(name: str) -> Task:
    """The task of that name."""
    if name not in TASKS:
        raise ConfigError(f"unknown task {name!r}: known are {', '.join(TASKS)}")
    return TASKS[name]


def read(name: str, path: str | Path, settings: Mapping[str, Any] | None = None) -> list[Any]:
    """The labelled examples of a file, as the task of that name reads it: `read("tagging", "train.conll")`."""
    task = get_task(name)
    return list(task.read(Path(path).expanduser(), task.settings_from(settings or {})))


def read_config(folder: Path) -> Any:
    """What task.json says: a TaskConfig, or a SenseConfig."""
    kinds: Any = TaskConfig | wsd.SenseConfig
    return read_json(folder / CONFIG, kinds, missing="no trained task")


def load(folder: str | Path, *, embedders: Sequence[Embedder] | None = None) -> Predictor:
    """Load a trained task; its embedders are found where they were, unless they are given."""
    folder = Path(folder).expanduser()
    config = read_config(folder)
    if embedders is None:
        embedders = [fetch(folder, known) for known in config.embedders]
    check_same(folder, config.embedders, embedders)
    try:
        task = get_task(config.task)
        read_trained = task.load or partial(load_network, task)
        predictor: Predictor = read_trained(folder, config, embedders)
    except ConfigError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    return predictor
