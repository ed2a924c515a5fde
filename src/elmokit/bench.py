"""How fast a model runs on this machine: real sentences, random models of the published sizes, a process for each."""

import math
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from pydoc_data.topics import topics
from statistics import median, quantiles
from typing import Literal, NamedTuple

import torch

from elmokit.checkpoints import write_checkpoint
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.tables import weight_shapes
from elmokit.config import CharacterConfig, ModelConfig
from elmokit.elmo import Elmo, load
from elmokit.errors import DataError, ElmoError
from elmokit.progress import SILENCE, Progress
from elmokit.text.corpus import open_corpus
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import get_tokenizer

Precision = Literal["fp32", "int8"]
SIZES = {"small": (1024, 128, 1), "medium": (2048, 256, 1), "original": (4096, 512, 2)}  # D, P, highways
LATENCY_TOKENS = LATENCY_SENTENCES = 20
GEMM_ROWS, LSTM_STEPS, REPEATS = 256, 8, 3
HEADER = (
    "| model | who | tokens/s | words known | one 20-token sentence | 95% within | peak memory | LSTM / GEMM |\n"
    "|---|---|---|---|---|---|---|---|"
)
Sentences = list[list[str]]
Seconds = tuple[float, float, list[float]]


class Figures(NamedTuple):
    """What was measured of a model: each round as `run_round` gives it, and what need be measured only once."""

    rounds: list[Seconds]
    megabytes: float
    lstm_share: float

    def row(self, model: str, name: str, tokens: int) -> str:
        """A line of the table."""
        cold, warm, alone = zip(*self.rounds, strict=True)
        milliseconds = [1000 * seconds for part in alone for seconds in part]
        speeds = f"{tokens / min(cold):,.0f} | {tokens / min(warm):,.0f}"
        latency = f"{median(milliseconds):.0f} ms | {quantiles(milliseconds, n=20)[-1]:.0f} ms"
        return f"| {model} | {name} | {speeds} | {latency} | {self.megabytes:,.0f} MB | {self.lstm_share:.0%} |"


def make_workload(text: Path | None, count: int) -> tuple[Sentences, Sentences]:
    """Sentences of a text, or of Python's own manual, to embed together, and some of one length to embed alone."""
    tokenizer = get_tokenizer("words")
    if text is None:
        content = "\n\n".join(topics[name] for name in sorted(topics))
        tokenized = [[token.text for token in tokenizer(content[i:j])] for i, j in split_sentences(content)]
    else:
        tokenized = [sentence.words for sentence in open_corpus([text], tokenizer)]
    long = [tokens[:LATENCY_TOKENS] for tokens in tokenized if len(tokens) >= LATENCY_TOKENS]
    if len(tokenized) < count or len(long) < LATENCY_SENTENCES:
        raise DataError(f"{text}: {len(tokenized)} sentences are too few: {count} are needed")
    return _spread(tokenized, count), _spread(long, LATENCY_SENTENCES)


def _spread(sentences: Sentences, count: int) -> Sentences:
    return sentences[:: len(sentences) // count][:count]


def write_random_model(size: str, folder: Path) -> None:
    """A model in AllenAI's format: what it says is noise, but it takes as long to say."""
    hidden, projection, highways = SIZES[size]
    characters = CharacterConfig(highways=highways)
    config = ModelConfig(characters=characters, hidden=hidden, projection=projection, forget_bias=1.0)
    generator, weights = torch.Generator().manual_seed(0), {}
    for name, shape in weight_shapes(config).items():  # at a scale that keeps activations of order one
        scale = 1.0 if "embedding" in name else math.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1
        weights[name] = torch.randn(shape, generator=generator) * scale
    write_checkpoint(Checkpoint(config, weights, None, "random weights"), folder, to="allenai")


def measure(
    model: str, precision: Precision, *workload: Sentences, rounds: int, threads: int, progress: Progress = SILENCE
) -> Figures:
    """The figures of a model in a process of its own, whose memory is the model's alone."""
    seen = []
    with ProcessPoolExecutor(1, get_context("spawn"), torch.set_num_threads, (threads,)) as process:
        try:
            for number in range(1, rounds + 1):
                progress.message(f"elmokit {precision}: round {number} of {rounds}")
                seen.append(process.submit(run_round, model, precision, *workload).result())
            memory, share = process.submit(peak_megabytes), process.submit(lstm_share, model, precision)
            return Figures(seen, memory.result(), share.result())
        except BrokenProcessPool:
            raise ElmoError(f"{model}: its process was killed. Is there enough memory?") from None


@lru_cache(maxsize=1)
def ready(model: str, precision: Precision) -> Elmo:
    """The model with its weights made ready, before the clock runs."""
    elmo = load(model, precision=precision)
    elmo.embed([["Ready", "."]])
    return elmo


def run_round(model: str, precision: Precision, together: Sentences, alone: Sentences) -> Seconds:
    """Seconds for all sentences, for all of them again, and for each one alone; no word is known before."""
    elmo = ready(model, precision)
    elmo.engine.prepared.cache.clear()
    cold, warm = (_seconds(elmo.embed, together) for _ in range(2))
    elmo.engine.prepared.cache.clear()
    return cold, warm, [_seconds(elmo.embed, [sentence]) for sentence in alone]


def peak_megabytes() -> float:
    """The most that this process has held; on Linux `ru_maxrss` would count the parent process too."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def lstm_share(model: str, precision: Precision) -> float:
    """The speed of the LSTM layers as a share of plain matrix products of the same sizes."""
    elmo = ready(model, precision)
    config, plain = elmo.config, 0.0
    sizes = 2 * [(config.projection, 4 * config.hidden)]  # what multiplies the input, and the last output
    for inner, outer in [*sizes, (config.hidden, config.projection)] if config.projected else sizes:
        x, weight, out = torch.randn(GEMM_ROWS, inner), torch.randn(outer, inner), torch.empty(GEMM_ROWS, outer)
        plain += min(_seconds(torch.mm, x, weight.t(), out=out) for _ in range(3 * REPEATS))
    x = torch.randn(GEMM_ROWS * LSTM_STEPS, config.projection)
    with torch.inference_mode():
        lstm = min(_seconds(elmo.engine.layers, x, [LSTM_STEPS] * GEMM_ROWS) for _ in range(REPEATS))
    return LSTM_STEPS * 2 * config.layers * plain / lstm


def _seconds(job: Callable[..., object], *arguments: object, **options: object) -> float:
    start = time.perf_counter()
    job(*arguments, **options)
    return time.perf_counter() - start
