"""What is measured: random models of the published sizes, and real sentences for them."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch

from elmokit.checkpoints import write_checkpoint
from elmokit.checkpoints.checkpoint import Checkpoint, weight_shapes
from elmokit.config import CharacterConfig, ModelConfig
from elmokit.errors import DataError
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import get_tokenizer

Size = Literal["small", "medium", "original"]
SIZES: dict[Size, tuple[int, int, int]] = {
    "small": (1024, 128, 1),
    "medium": (2048, 256, 1),
    "original": (4096, 512, 2),
}
LATENCY_TOKENS = 20
LATENCY_SENTENCES = 20


@dataclass(frozen=True)
class Workload:
    """Tokenised sentences to be embedded together, and some of equal length to be embedded one at a time."""

    sentences: list[list[str]]
    single: list[list[str]]

    @property
    def tokens(self) -> int:
        """Tokens of the sentences that are embedded together."""
        return sum(map(len, self.sentences))

    def write(self, path: Path) -> None:
        """Write it down for contestants to read."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def read_workload(path: Path) -> Workload:
    """What `Workload.write` wrote."""
    return Workload(**json.loads(path.read_text(encoding="utf-8")))


def make_workload(text: Path | None, sentences: int) -> Workload:
    """Sentences spread over a text, or else over the language reference that comes with Python."""
    content = _python_reference() if text is None else _read(text)
    cut, spans = get_tokenizer("words"), split_sentences(content)
    tokenized = [[token.text for token in cut(content[start:end])] for start, end in spans]
    long = [tokens[:LATENCY_TOKENS] for tokens in tokenized if len(tokens) >= LATENCY_TOKENS]
    if len(tokenized) < sentences or len(long) < LATENCY_SENTENCES:
        raise DataError(f"{text}: {len(tokenized)} sentences are too few: {sentences} are needed")
    return Workload(_spread(tokenized, sentences), _spread(long, LATENCY_SENTENCES))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8 text: {error}") from None


def _spread(sentences: list[list[str]], count: int) -> list[list[str]]:
    return sentences[:: len(sentences) // count][:count]


def _python_reference() -> str:
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def write_random_model(size: Size, folder: Path) -> None:
    """A model in AllenAI's format: what it says is noise, but it takes as long to say."""
    hidden, projection, highways = SIZES[size]
    config = ModelConfig(
        characters=CharacterConfig(highways=highways), hidden=hidden, projection=projection, forget_bias=1.0
    )
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(shape, generator=generator) * _scale(name, shape)
        for name, shape in weight_shapes(config).items()
    }
    write_checkpoint(Checkpoint(config, weights, None, "random weights"), folder, to="allenai")


def _scale(name: str, shape: tuple[int, ...]) -> float:
    """Keeps activations of order one."""
    if "embedding" in name:
        return 1.0
    return math.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1
