"""The course of a run as curves for TensorBoard, where its extra is installed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from elmokit.errors import OutputError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class Curves:
    """Numbers by step in a folder that TensorBoard reads; without the extra nothing is written."""

    def __init__(self, folder: Path, *, step: int) -> None:
        """Go on after the step: later points of a run that broke off do not count."""
        self.folder = folder
        self._writer = _open(folder, step + 1) if find_spec("tensorboard") else None

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """One point of each curve."""
        if self._writer is not None:
            with _told(self.folder):
                for name, value in values.items():
                    self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is still waiting."""
        if self._writer is not None:
            with _told(self.folder):
                self._writer.close()


def _open(folder: Path, first: int) -> "SummaryWriter":
    from torch.utils.tensorboard import SummaryWriter

    with _told(folder):
        return SummaryWriter(str(folder), purge_step=first, flush_secs=10)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder}: the curves cannot be written: {error.strerror or error}") from error
