"""The epochs of training a task, from which it can go on after any of them to the same end; and how it went, drawn."""

import io
import math
import random
import time
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save
from torch import nn

from elmokit.checkpoints.checkpoint import check_finite, load_optimizer
from elmokit.embedder import Embedder
from elmokit.errors import ElmoError, MissingExtraError
from elmokit.files import as_json, check_same_settings, parsing, read_json, read_state, replace_file, write_state
from elmokit.model.threads import keep_freed_memory
from elmokit.progress import Progress
from elmokit.tasks.inputs import MixReport, open_cache
from elmokit.tasks.predictor import WEIGHTS, EmbedderId, Network
from elmokit.tasks.task import FitOptions, FitSettings, Item, Scores, Task, Tokens, shown

Items = Sequence[Sequence[Item]]
"""To learn from, and to measure on."""
CACHE = "cache"
STATE, REPORT = "training.pt", "report.json"
CURVE, LAYER_WEIGHTS = "learning-curve.png", "layer-weights.png"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
LOWEST_RATE = 1 / 16  # of the first
FREE = ("epochs", "patience")  # settings that may change when a run goes on


class EpochReport(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the training data."""

    number: int
    loss: float
    """The mean over batches."""
    rate: float
    """Of learning."""
    scores: Scores
    """On the dev data; the first is the one that counts."""
    mixes: list[MixReport]
    seconds: float

    @property
    def score(self) -> float:
        return next(iter(self.scores.values()))


class TrainingReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of a training run that is worth keeping."""

    training: FitSettings
    train_examples: int
    dev_examples: int
    sample: float
    """The share of the training data that was learned from."""
    parameters: int
    """Those that may learn."""
    embedders: list[str]
    """Their names; mixes tell them by number."""
    epochs: list[EpochReport]
    best: int
    """The number of the epoch whose weights are kept."""
    seconds: float


def best_of(epochs: list[EpochReport]) -> EpochReport:
    """The first epoch with the highest score; the last one while all score 0."""
    best = max(epochs, key=lambda epoch: epoch.score)
    return best if best.score > 0 else epochs[-1]


def stalls(epochs: list[EpochReport]) -> int:
    """How many times two epochs in a row brought no new best score."""
    best, waited, count = 0.0, 0, 0
    for epoch in epochs:
        if epoch.score > best or not best:
            best, waited = epoch.score, 0
            continue
        waited += 1
        count += waited % 2 == 0
    return count


class TaskTraining:
    """The loop: epochs, dev scores, the best weights kept, the state of each epoch saved."""

    def __init__(
        self, folder: Path, task: Task, network: Network, items: Items, options: FitOptions, progress: Progress
    ) -> None:
        self.folder, self.task, self.network = folder, task, network
        self.train, self.dev = items
        self.options, self.progress = options, progress
        self.settings = options.training or task.training_from({})
        stages, tuning = network.inputs.stages(), network.inputs.settings  # of a model that learns itself
        theirs = {id(weight) for stage in stages for weight in stage}
        own = [weight for weight in network.parameters() if weight.requires_grad and id(weight) not in theirs]
        rates = [tuning.tuned_rate * tuning.lower_rate**depth for depth in range(len(stages))]  # the lower, the smaller
        groups = [{"params": stage, "lr": rate} for stage, rate in zip(stages, rates, strict=True)]
        self.optimizer = torch.optim.Adam([{"params": own, "lr": self.settings.learning_rate}, *groups])
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.epochs: list[EpochReport] = []

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or so many that more would not help."""
        if not self.epochs:
            return False
        best, done = best_of(self.epochs), len(self.epochs)
        waited = done - best.number  # none while all score 0, as coreference may until its first links are found
        return done >= self.settings.epochs or waited >= self.settings.patience or best.score >= 1

    def finish(self, embedders: list[str]) -> None:
        """Train until it is finished; an interruption loses the epoch that was under way."""
        keep_freed_memory()
        while not self.finished:
            start = time.perf_counter()
            loss = self._learn(len(self.epochs) + 1)
            self._measure(loss, start)
            self._save()
        report = TrainingReport(
            training=self.settings,
            train_examples=len(self.train),
            dev_examples=len(self.dev),
            sample=self.options.sample,
            parameters=sum(weight.numel() for group in self.optimizer.param_groups for weight in group["params"]),
            embedders=embedders,
            epochs=self.epochs,
            best=best_of(self.epochs).number,
            seconds=sum(epoch.seconds for epoch in self.epochs),
        )
        replace_file(self.folder / REPORT, as_json(report))

    def cache_layers(self, known: Sequence[EmbedderId]) -> None:
        """Compute the layers of frozen models in advance, where they will be asked for more than once."""
        sentences = [sentence for item in (*self.train, *self.dev) for sentence in item.sentences]
        once = self.settings.epochs == 1 and len(set(sentences)) == len(sentences)
        if self.finished or self.settings.cache == "none" or once:
            return
        folder = self.options.cache_folder or self.folder / CACHE
        for number, source in self.network.inputs.cacheable().items():
            digest = known[number].digest or _fingerprint(source.embedder, sentences)
            identity = f"{digest} {type(source.embedder).__name__}"
            names = {"identity": identity, "dtype": self.settings.cache, "name": known[number].name}
            source.cache = open_cache(folder, source.embedder, sentences, **names, progress=self.progress)

    def _learn(self, number: int) -> float:
        """One epoch, all of whose randomness comes from the seed and its number."""
        shuffle = random.Random(f"{self.settings.seed} {number}")
        self.network.train()
        self.network.inputs.unfreeze(number - 1)
        share = max(LOWEST_RATE, self.settings.anneal ** stalls(self.epochs))
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * share
        lost, done, count = 0.0, 0, len(self.train)
        before, total = (number - 1) * count, self.settings.epochs * count
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(shuffle.getrandbits(63))
            for batch in batches(self.train, self.settings, shuffle):
                lost += self._step(number, batch) * len(batch)
                done += len(batch)
                note = f"epoch {number}, loss {lost / done:.4f}"
                self.progress.update("training", before + done, total, unit="examples", note=note)
        return lost / done

    def _step(self, number: int, batch: Sequence[Item]) -> float:
        loss = self.network.loss(batch)
        if not math.isfinite(loss.item()):
            raise ElmoError(f"epoch {number}: the loss is {loss.item()}: lower the learning rate, {self.rates[0]}")
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        self.optimizer.step()
        return loss.item()

    def _measure(self, loss: float, start: float) -> None:
        epoch = EpochReport(
            number=len(self.epochs) + 1,
            loss=loss,
            rate=self.optimizer.param_groups[0]["lr"],
            scores=self.task.score([item.example for item in self.dev], self.network.predict(self.dev)),
            mixes=self.network.inputs.mix_reports(),
            seconds=time.perf_counter() - start,
        )
        self.epochs.append(epoch)
        best = best_of(self.epochs)
        scores = ", ".join(f"{name} {score:.4f}" for name, score in epoch.scores.items())
        rank = "the best so far" if epoch is best else f"best {best.score:.4f} in epoch {best.number}"
        self.progress.message(f"epoch {epoch.number}: loss {loss:.4f}, dev {scores} ({rank}), {epoch.seconds:,.0f} s")

    def _save(self) -> None:
        """The weights first, if they are the best, then the state: of a run that is killed between, both are good."""
        if best_of(self.epochs) is self.epochs[-1]:
            weights = {name: weight.detach().contiguous() for name, weight in self.network.state_dict().items()}
            replace_file(self.folder / WEIGHTS, save(weights))
        state = self._identity | {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epochs": msgspec.to_builtins(self.epochs),
        }
        write_state(self.folder / STATE, state)

    def restore(self) -> None:
        """Go on after the last epoch that was saved; there may be none."""
        if not (self.folder / STATE).exists():
            return
        path = self.folder / STATE
        state = read_state(path)
        with parsing(path, "the state of this run"):
            check_same_settings(self.folder, {name: state.get(name) for name in self._identity}, self._identity)
            check_finite(path, state["network"])
            self.network.load_state_dict(state["network"])
            load_optimizer(self.optimizer, state["optimizer"])
            self.epochs = msgspec.convert(state["epochs"], list[EpochReport])

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What must be the same when a run goes on; of large data it takes seconds."""
        hashed = blake2b()
        for item in (*self.train, *self.dev):
            hashed.update(repr((shown(item.example), item.sentences)).encode("utf-8", "surrogatepass"))
        training = {name: value for name, value in vars(self.settings).items() if name not in FREE}
        return {"data": hashed.hexdigest(), "sample": self.options.sample, "training": training}


def batches(items: Sequence[Item], settings: FitSettings, shuffle: random.Random) -> list[list[Item]]:
    """Items of like length together, drawn and ordered anew."""
    found: list[list[Item]] = []
    room = 0
    for item in sorted(shuffle.sample(items, len(items)), key=lambda item: item.size, reverse=True):
        needed = item.size * item.runs
        if not found or needed > room or len(found[-1]) == settings.batch:
            found.append([])
            room = settings.batch_tokens
        found[-1].append(item)
        room -= needed
    shuffle.shuffle(found)
    return found


def _fingerprint(embedder: Embedder, sentences: Sequence[Tokens], most: int = 8) -> str:
    """What tells an embedder made in Python from others: the vectors that it gives some of the sentences."""
    hashed = blake2b()
    for layers in embedder.embed(list(dict.fromkeys(sentences))[:most], layers="all"):
        hashed.update(layers.tobytes())
    return hashed.hexdigest()


def write_plots(folder: Path) -> None:
    """Draw the learning curve and the layers' weights from the report in a task's folder."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("pictures of a run need matplotlib", "plots") from None
    report = read_json(folder / REPORT, TrainingReport, missing="there is no finished run to draw")
    for name, draw in ((CURVE, _draw_curve), (LAYER_WEIGHTS, _draw_weights)):
        if name == CURVE or report.epochs[report.best - 1].mixes:
            figure = Figure(figsize=(6, 4), dpi=150, layout="constrained")
            draw(figure.add_subplot(), report)
            figure.savefig(picture := io.BytesIO(), format="png")
            replace_file(folder / name, picture.getvalue())


def _draw_curve(axes: Any, report: TrainingReport) -> None:
    numbers = [epoch.number for epoch in report.epochs]
    for name, color in zip(report.epochs[0].scores, COLORS, strict=False):
        axes.plot(numbers, [epoch.scores[name] for epoch in report.epochs], color=color, label=f"dev {name}")
    axes.axvline(report.best, color="#999999", linestyle=":", label="kept")
    axes.set(xlabel="epoch", ylabel="score")
    losses = axes.twinx()
    losses.plot(numbers, [epoch.loss for epoch in report.epochs], color="#999999", label="training loss")
    losses.set(ylabel="loss")
    axes.legend(handles=[*axes.lines, *losses.lines], frameon=False)


def _draw_weights(axes: Any, report: TrainingReport) -> None:
    mixes = report.epochs[report.best - 1].mixes
    width = 0.8 / len(mixes)
    for number, mix in enumerate(mixes):
        left = [layer + number * width for layer in range(len(mix.weights))]
        name = Path(report.embedders[mix.embedder]).name.replace("$", r"\$")
        label = f"{name}, {mix.place}, γ = {mix.gamma:.2f}"
        axes.bar(left, mix.weights, width, align="edge", color=COLORS[number % len(COLORS)], label=label)
    layers = max(len(mix.weights) for mix in mixes)
    axes.set(xlabel="layer", ylabel="weight", xticks=[layer + 0.4 for layer in range(layers)])
    axes.set_xticklabels(range(layers))
    axes.legend(frameon=False)
