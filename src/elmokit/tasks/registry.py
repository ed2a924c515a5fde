"""The tasks by name."""

from collections.abc import Mapping

from elmokit.errors import ConfigError
from elmokit.tasks import classify, coref, pairs, probe, span_qa, srl, tagging
from elmokit.tasks.task import Task

TASKS: Mapping[str, Task] = {
    "tagging": tagging,
    "classify": classify,
    "pairs": pairs,
    "span_qa": span_qa,
    "srl": srl,
    "coref": coref,
    "probe": probe,
}


def get_task(name: str) -> Task:
    """The task of that name."""
    if name not in TASKS:
        raise ConfigError(f"unknown task {name!r}: known are {', '.join(TASKS)} and wsd")
    return TASKS[name]
