"""Training, step by step: what is read, what is learned from it, and everything needed to go on from there."""

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from elmokit.checkpoints.checkpoint import Checkpoint, check_finite, load_optimizer
from elmokit.checkpoints.tables import check_shapes
from elmokit.config import ModelConfig
from elmokit.embedder import Embedder
from elmokit.errors import ConfigError, DataError, ElmoError
from elmokit.model.bilm import State
from elmokit.model.language_model import LanguageModel, Step
from elmokit.model.threads import keep_freed_memory
from elmokit.model.tokens import as_tensors
from elmokit.pretrain.corpus import Corpus
from elmokit.pretrain.optimizer import make_optimizer
from elmokit.pretrain.recipe import Recipe
from elmokit.pretrain.streams import Direction, Streams
from elmokit.text.characters import WordIds
from elmokit.text.words import WordEncoder

HOPELESS = 10  # times the loss of guessing evenly, ln V: no training comes back from there


class DivergedError(ElmoError):
    """Training that can only be begun again from where it was still good, with other settings."""


@dataclass(frozen=True)
class StepResult:
    """What a step did."""

    step: int
    tokens: int
    """Tokens read so far, by all processes; each is read once in each direction."""
    loss: float
    """Mean of both directions' losses a target, in nats; of the sample for a sampled softmax."""
    learning_rate: float


def model_config(recipe: Recipe, corpus: Corpus) -> ModelConfig:
    """The recipe's model, with what depends on the text filled in."""
    model, size = recipe.model, len(corpus.vocabulary)
    assert model.softmax is not None
    characters = model.characters
    if characters is not None and characters.alphabet == "unicode" and not characters.characters:
        characters = replace(characters, characters=corpus.characters())
    words = model.words and replace(model.words, size=size)
    # What reads both sides of a gap is learned when the model is done.
    return replace(model, characters=characters, words=words, softmax=replace(model.softmax, size=size), cloze=None)


def new_model(recipe: Recipe, corpus: Corpus, start: Checkpoint | None) -> LanguageModel:
    """A model of random weights, or of those of another; where its vocabulary has grown, new words' rows are random."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(recipe.training.seed)
        model = LanguageModel(model_config(recipe, corpus))
        for name, weight in model.weights().items():
            old = start.weights.get(name) if start else None
            if old is None:
                continue  # a softmax that the other model lacks
            if old.shape[1:] != weight.shape[1:] or len(old) > len(weight):
                shapes = f"{tuple(old.shape)} in the model and {tuple(weight.shape)} in the recipe"
                raise ConfigError(f"'{name}' is {shapes}")
            weight[: len(old)] = old
    return model


@torch.no_grad()
def start_words(model: LanguageModel, words: Sequence[str], given: Embedder, *, seed: int) -> str:
    """Start the table of words from given vectors, where zeros mean that a word has none, and say how many have one.

    The rows of other words are random, with the mean and the spread that the given vectors have in each dimension.
    """
    assert model.bilm.tokens.words is not None
    table = model.bilm.tokens.words.weight  # (R, D), of the first words alone if only frequent ones have vectors
    words = words[: len(table)]
    vectors = torch.from_numpy(given.embed([list(words)], layers="top")[0])  # (R, D)
    known = vectors.any(dim=1)
    if not known.any():
        raise DataError("word vectors: no word of the vocabulary has one: are they of another language?")
    spread, mean = torch.std_mean(vectors[known], dim=0, correction=0)
    random = torch.randn(vectors.shape, generator=_generator(seed)) * spread + mean
    table.copy_(torch.where(known[:, None], vectors, random))
    return f"{int(known.sum()):,} of the {len(words):,} words of the vocabulary have one"


class Trainer:
    """One process's part in training a language model on a corpus."""

    def __init__(self, model: LanguageModel, recipe: Recipe, corpus: Corpus, *, rank: int = 0, world: int = 1) -> None:
        keep_freed_memory()
        self.model, self.settings, self.rank, self.world = model, recipe.training, rank, world
        settings = recipe.training
        sizes = {"vocab_size": len(corpus.vocabulary), "batch": settings.batch, "unroll": settings.unroll}
        self.streams = Streams(corpus.train.ids, **sizes, seed=settings.seed, rank=rank, world=world)
        self.total_steps = max(1, math.ceil(settings.epochs * self.streams.steps_per_epoch))
        self.head_steps = math.ceil(settings.head_epochs * self.streams.steps_per_epoch)
        self.table = WordEncoder(model.config, corpus.vocabulary).encode(corpus.words)
        self.optimizer = make_optimizer(model, settings)
        self.state = model.bilm.zero_state(settings.batch // world)
        self.step = 0
        self.apart = world > 1 and settings.average_steps > 0

    @property
    def tokens(self) -> int:
        return self.step * self.settings.batch * self.settings.unroll

    def advance(self) -> StepResult:
        """Read on, and learn from it."""
        self.optimizer.zero_grad()
        loss = targets = 0.0
        for _ in range(self.settings.accumulate):
            more_loss, more_targets = self.accumulate_gradients()
            loss, targets = loss + more_loss, targets + more_targets
        if not self.apart:
            loss, targets = self._sum_over_processes(loss, targets)
            self._check_loss(loss / max(1, targets))
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        rate = self.learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.step += self.settings.accumulate
        if self.apart and self.is_average:
            self._average()
            loss, targets = self._sums(loss, targets)
            self._check_loss(loss / max(1, targets))
        return StepResult(self.step, self.tokens, loss / max(1, targets), rate)

    @property
    def is_average(self) -> bool:
        """Whether all processes have the same weights after this step."""
        return not self.apart or self.step % (self.settings.average_steps * self.settings.accumulate) == 0

    def check(self) -> None:
        """Raise if what was learned last has spoilt the weights, as the loss of what is read next shows."""
        with self.taken_back():
            loss, targets = self._sum_over_processes(*self.accumulate_gradients())
        self._check_loss(loss / max(1, targets))

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """Nothing remains of what is read within."""
        streams, state = self.streams.state(), self.state
        try:
            yield
        finally:
            self.streams.restore(streams)
            self.state = state
            self.optimizer.zero_grad()

    def _check_loss(self, loss: float) -> None:
        softmax = self.model.config.softmax
        if not loss < HOPELESS * math.log(max(2, softmax.size if softmax else 0)):
            settings = self.settings
            remedy = f"lower training.learning_rate ({settings.learning_rate}) or training.clip ({settings.clip})"
            raise DivergedError(f"training diverged: the loss is {loss:.4g} at step {self.step}: {remedy}")

    def accumulate_gradients(self) -> tuple[float, int]:
        """Add the next chunk's gradients to the weights'; its summed loss and the number of its targets."""
        settings, number = self.settings, self.streams.total_steps
        self.model.bilm.requires_grad_(self.step >= self.head_steps)
        for part in frozen_parts(self.model, settings.freeze):
            part.requires_grad_(False)
        chunk = next(self.streams)
        inputs = np.stack([chunk.forward.inputs, chunk.backward.inputs])  # (2, T, B)
        words, indices = np.unique(inputs, return_inverse=True)
        indices = indices.reshape(inputs.shape)
        ids = WordIds(*(None if part is None else part[words] for part in self.table))
        autocast = settings.autocast == "bf16"
        with torch.autocast(self.state.h.device.type, torch.bfloat16, enabled=autocast):
            vectors = self.model.bilm.tokens(*as_tensors(ids, self.state.h.device)).to(self.state.h.dtype)  # (U, P)
        steps = self._step(number, 0, chunk.forward, indices[0]), self._step(number, 1, chunk.backward, indices[1])
        streams = settings.batch // self.world if self.apart else settings.batch
        scale = 0.5 * settings.gradient_scale / (streams * settings.unroll * settings.accumulate)
        results, self.state = self.model.backpropagate(
            vectors, steps, self.state, dropout=settings.dropout, scale=scale, autocast=autocast
        )
        return sum(result.loss for result in results), sum(result.targets for result in results)

    def _step(self, number: int, direction: int, read: Direction, indices: Any) -> Step:
        """What a direction reads; all randomness follows from the settings' seed and the number of the step."""
        device = self.state.h.device
        keep = torch.from_numpy(read.keep).to(device) if self.settings.reset == "sentence" else None
        targets = torch.from_numpy(read.targets).to(device)
        seed = (self.settings.seed, number, direction)
        dropout, samples = _generator(*seed, 1 + self.rank), _generator(*seed, 0)
        return Step(torch.from_numpy(indices).to(device), targets, keep, dropout, samples)

    def _sum_over_processes(self, loss: float, targets: float) -> tuple[float, float]:
        """Add up gradients, losses and targets of all processes, so that each goes on with the whole batch's."""
        if self.world == 1:
            return loss, targets
        _add_up([weight.grad for weight in self.model.parameters() if weight.grad is not None])
        return self._sums(loss, targets)

    def _sums(self, loss: float, targets: float) -> tuple[float, float]:
        totals = torch.tensor([loss, targets], dtype=torch.float64)
        dist.all_reduce(totals)
        return totals[0].item(), totals[1].item()

    @torch.no_grad()
    def _average(self) -> None:
        """Give every process the mean of all weights, and of what their optimisers remember of each."""
        remembered = [part for state in self.optimizer.state.values() for part in state.values() if part.dim()]
        parts = [*self.model.parameters(), *remembered]
        _add_up(parts)
        for part in parts:
            part /= self.world

    def learning_rate(self) -> float:
        """Rises in a straight line, then falls as the settings say."""
        settings = self.settings
        rising = min(1.0, (self.step + 1) / max(1, settings.warmup))
        left = max(0.0, 1 - self.step / self.total_steps)
        falling = {
            "none": 1.0,
            "linear": left,
            "cosine": 0.5 * (1 - math.cos(math.pi * left)),
            "trapezoid": min(1.0, left / settings.decay_share),
        }
        return settings.learning_rate * rising * falling[settings.decay]

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on exactly as if nothing had happened; processes that learn apart average first."""
        if not self.is_average:
            self._average()
        return {
            "weights": self.model.weights(),
            "optimizer": self.optimizer.state_dict(),
            "h": self._gathered(self.state.h),
            "c": self._gathered(self.state.c),
            "streams": self.streams.state(),
            "step": self.step,
        }

    def _gathered(self, part: Tensor) -> Tensor:
        """The state of all processes' streams, in order."""
        if self.world == 1:
            return part
        parts = [torch.empty_like(part) for _ in range(self.world)]
        dist.all_gather(parts, part.contiguous())
        return torch.cat(parts, dim=2)

    def load_state_dict(self, state: dict[str, Any], path: Path) -> None:
        """Go on from a state that was read from the path; one that does not fit is refused."""
        found, weights = state["weights"], self.model.weights()
        shapes = ({name: tuple(weight.shape) for name, weight in these.items()} for these in (found, weights))
        check_shapes(path, *shapes, described_by="the recipe")
        check_finite(path, found)
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(found[name])
        load_optimizer(self.optimizer, state["optimizer"])
        own = slice(self.rank * self.state.h.shape[2], (self.rank + 1) * self.state.h.shape[2])
        parts = [state[part][:, :, own].clone().to(self.state.h.device) for part in "hc"]
        if [part.shape for part in parts] != [part.shape for part in self.state]:
            raise ValueError("the state of its streams has another shape")
        check_finite(path, dict(zip("hc", parts, strict=True)))
        self.streams.restore(state["streams"])
        self.state, self.step = State(*parts), operator.index(state["step"])


def _add_up(parts: Sequence[Tensor]) -> None:
    """Put the sum over all processes in the place of each."""
    flat = torch.cat([part.flatten() for part in parts])
    dist.all_reduce(flat)
    for part, total in zip(parts, flat.split([part.numel() for part in parts]), strict=True):
        part.copy_(total.view_as(part))


def _generator(*seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]))


def frozen_parts(model: LanguageModel, freeze: str | int) -> list[nn.Module]:
    """The parts that stay as they are, from the bottom up."""
    tokens, stacks = model.bilm.tokens, model.bilm.stacks
    if isinstance(freeze, int):
        return [tokens, *(layer for stack in stacks for layer in stack[:freeze])]
    parts: dict[str, list[nn.Module | None]] = {"none": [], "words": [tokens.words], "tokens": [tokens]}
    return [part for part in parts[freeze] if part is not None]
