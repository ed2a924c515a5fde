"""What `elmokit bench --latency` measures: how long a few sentences take, in a process for each number of threads."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from elmokit.bench import Precision, Sentences, ready
from elmokit.elmo import load
from elmokit.onnx_export import padded_ids, write_onnx
from elmokit.progress import SILENCE, Progress

SHAPES = ((1, 20), (8, 20), (32, 20), (1, 5), (1, 100))  # sentences, tokens
LONGEST = max(tokens for _, tokens in SHAPES)
THREADS = (1, 2)
BEST_OF = 30  # calls of each, in which every word is known
SECONDS = 3.0  # fewer calls if they take longer
HEADER = "| who | threads | sentences | tokens each | median | 95% within | best |\n|---|---|---|---|---|---|---|"


class Latency(NamedTuple):
    """How long one call took, in seconds, time after time."""

    name: str
    threads: int
    sentences: int
    tokens: int
    seconds: list[float]

    def row(self) -> str:
        """A line of the table."""
        values = median(self.seconds), quantiles(self.seconds, n=20)[-1], min(self.seconds)
        shown = " | ".join(f"{1000 * value:.2f} ms" for value in values)
        return f"| {self.name} | {self.threads} | {self.sentences} | {self.tokens} | {shown} |"


def measure_latency(
    model: str, precisions: list[Precision], words: list[str], *, progress: Progress = SILENCE
) -> Iterator[Latency]:
    """Every shape, precision and number of threads, and onnxruntime where it is installed, as each is measured."""
    with TemporaryDirectory() as folder:
        graph = _graph(model, Path(folder), progress)
        for threads in THREADS:
            with ProcessPoolExecutor(1, get_context("spawn"), torch.set_num_threads, (threads,)) as process:
                for (sentences, tokens), who in product(SHAPES, [*precisions, *([graph] if graph else [])]):
                    name = "onnxruntime" if isinstance(who, Path) else f"elmokit {who}"
                    progress.message(f"{name}: {threads} threads, {sentences} × {tokens} tokens")
                    given = model, who, shaped(words, sentences, tokens), threads
                    yield Latency(name, threads, sentences, tokens, process.submit(call_again, *given).result())


def _graph(model: str, folder: Path, progress: Progress) -> Path | None:
    """The model for onnxruntime, if that and the exporter are installed."""
    if not all(find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime")):
        return None
    progress.message("writing the model for onnxruntime")
    write_onnx(load(model), folder / "model.onnx")
    return folder / "model.onnx"


def shaped(words: list[str], sentences: int, tokens: int) -> Sentences:
    """So many sentences of so many tokens, of consecutive words."""
    enough = words * (1 + sentences * tokens // len(words))
    return [enough[number * tokens : (number + 1) * tokens] for number in range(sentences)]


def call_again(model: str, who: Precision | Path, sentences: Sentences, threads: int) -> list[float]:
    """Seconds of each call, after one that makes all ready; onnxruntime gets ids, but computes every word each time."""
    if isinstance(who, Path):
        session, feeds = _session(who, threads), padded_ids(ready(model, "fp32"), sentences)
        session.run(None, feeds)
        return repeated(lambda: session.run(None, feeds))
    elmo = ready(model, who)
    elmo.embed(sentences)
    return repeated(lambda: elmo.embed(sentences))


@lru_cache(maxsize=1)
def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(path, options)


def repeated(call: Callable[[], object]) -> list[float]:
    """Seconds of each of at most BEST_OF calls, at least two."""
    seconds: list[float] = []
    while len(seconds) < 2 or (len(seconds) < BEST_OF and sum(seconds) < SECONDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds
