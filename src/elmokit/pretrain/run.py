"""A training run and its folder.

| file | what it holds |
|---|---|
| config.json, model.safetensors, vocab.txt | the model so far, to be loaded as any other |
| recipe.json | every setting |
| metrics.jsonl | a line for each measurement |
| training.pt | all that is needed to go on |
| tensorboard/ | the same as curves, where TensorBoard is installed |
| corpus/ | the text as ids |
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError
from threading import current_thread, main_thread
from typing import Any, Protocol

import torch
import torch.distributed as dist
from safetensors import SafetensorError

from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.native import write as write_native
from elmokit.elmo import Elmo, usable_device
from elmokit.errors import CheckpointError, ConfigError, OutputError
from elmokit.model.language_model import LanguageModel
from elmokit.pretrain.corpus import Corpus, check_frequency_order, read_corpus, with_new_words
from elmokit.pretrain.perplexity import Perplexity, perplexity, sentences_of
from elmokit.pretrain.recipe import Recipe, TrainSettings, make_recipe, recipe_values
from elmokit.pretrain.records import Records
from elmokit.pretrain.shards import prepare
from elmokit.pretrain.trainer import Progress, Trainer, model_config
from elmokit.text.vocabulary import Vocabulary

RECIPE, STATE, CORPUS = "recipe.json", "training.pt", "corpus"
# Of the memory that training takes; as measured, within a third, from the tiny recipe to the small one.
LIBRARIES = 350 * 2**20  # torch, once it has trained and measured
BYTES_A_WEIGHT = 16  # the weight, its gradient and what Adam remembers of it
BYTES_A_CELL = 80  # what a step keeps of it at each token, in both directions, until it has gone back through it
BYTES_A_WORD = 500  # of the text: its letters, its characters' ids, its counts


@dataclass(frozen=True)
class Preflight:
    """What is known before the first step."""

    corpus: Corpus
    parameters: int
    steps: int
    steps_done: int
    seconds_a_step: float
    megabytes: float
    """An estimate of the memory that the process takes."""

    @property
    def seconds(self) -> float:
        """An estimate of the time that is left."""
        return (self.steps - self.steps_done) * self.seconds_a_step


class Reporter(Protocol):
    """Is told how a run goes."""

    def reading(self, done: int, total: int, /) -> None:
        """Bytes of text read."""

    def preflight(self, facts: Preflight, /) -> None:
        """Before the first step."""

    def progress(self, progress: Progress, total: int, tokens_per_second: float, /) -> None:
        """After a step."""

    def measured(self, progress: Progress, held_out: Perplexity, /) -> None:
        """After a measurement on held-out text."""

    def saved(self, step: int, /) -> None:
        """After a checkpoint."""


def pretrain(
    paths: Sequence[Path],
    folder: Path,
    recipe: Recipe,
    reporter: Reporter,
    *,
    valid_paths: Sequence[Path] = (),
    vocabulary: Vocabulary | None = None,
    start: Checkpoint | None = None,
    new_words: int = 0,
    resume: bool = False,
    workers: int | None = None,
    device: str = "cpu",
) -> Perplexity | None:
    """Train a model on text to the end of its recipe; its perplexity on all held-out text, where there is any.

    It begins from random weights, or from those of `start`, whose vocabulary may grow by the most frequent new words.
    """
    place = usable_device(_own_device(device))
    _check_autocast(recipe.training, place)
    rank, world = _join_processes()
    if rank == 0:
        _check_folder(folder, recipe, resume=resume)
        prepare(
            paths,
            folder / CORPUS,
            tokenizer=recipe.model.tokenizer,
            vocabulary=vocabulary,
            valid_paths=valid_paths,
            workers=workers,
            progress=reporter.reading,
            unchanged=resume,
            **asdict(recipe.corpus),
        )
    if world > 1:
        dist.barrier()
    settings = recipe.corpus
    corpus = read_corpus(folder / CORPUS, vocab_size=settings.vocab_size, min_count=settings.min_count)
    if vocabulary is not None and start is None:
        check_frequency_order(corpus)
    corpus = with_new_words(corpus, new_words)
    model = _new_model(recipe, corpus, start).to(place)
    trainer = Trainer(model, recipe, corpus, rank=rank, world=world)
    if resume:
        trainer.load_state_dict(_read_state(folder / STATE))
    run = Run(folder, recipe, corpus, trainer, reporter if rank == 0 else None)
    try:
        return run.to_the_end()
    finally:
        if world > 1:
            dist.destroy_process_group()


class Run:
    """The loop: steps, measurements, checkpoints. Only one of several processes reports and writes."""

    def __init__(
        self, folder: Path, recipe: Recipe, corpus: Corpus, trainer: Trainer, reporter: Reporter | None
    ) -> None:
        self.folder, self.recipe, self.corpus = folder, recipe, corpus
        self.trainer, self.reporter = trainer, reporter
        self.last_save = time.monotonic()

    def to_the_end(self) -> Perplexity | None:
        """Train, and measure at last; an interruption leaves a checkpoint."""
        if self.trainer.step == 0:
            self.save()
        if self.reporter is None:
            self._train(None)
            return None
        with closing(Records(self.folder, step=self.trainer.step)) as records:
            self.reporter.preflight(self._preflight())
            return self._measure(self._train(records), None, records, tokens=None)

    def _train(self, records: Records | None) -> Progress:
        trainer = self.trainer
        progress = Progress(trainer.step, trainer.tokens, float("nan"), trainer.learning_rate())
        try:
            while trainer.step < trainer.total_steps:
                start = time.perf_counter()
                with _uninterrupted():
                    progress = trainer.advance()
                if records:
                    self._tell(progress, time.perf_counter() - start, records)
                self._save_in_time()
        except KeyboardInterrupt:
            self.save()
            raise
        self.save()
        return progress

    def _tell(self, progress: Progress, seconds: float, records: Records) -> None:
        """Report a step, and measure when it is time."""
        assert self.reporter is not None
        settings = self.recipe.training
        rate = settings.batch * settings.unroll * settings.accumulate / seconds
        self.reporter.progress(progress, self.trainer.total_steps, rate)
        records.stepped(progress, rate)
        if progress.step % settings.evaluate_steps < settings.accumulate:  # steps come that many at a time
            self._measure(progress, rate, records, tokens=settings.evaluate_tokens)

    def _save_in_time(self) -> None:
        """All processes save at the same step: a clock of one of them decides."""
        due = torch.tensor(time.monotonic() - self.last_save > 60 * self.recipe.training.save_minutes)
        if self.trainer.world > 1:
            dist.broadcast(due, 0)
        if due:
            self.save()

    def save(self) -> None:
        """The training state first, in one piece; then the model that it holds."""
        state = self.trainer.state_dict()
        self.last_save = time.monotonic()
        if self.reporter is None:
            return
        try:
            _replace_file(self.folder / RECIPE, lambda path: path.write_text(_as_json(self.recipe), encoding="utf-8"))
            _replace_file(self.folder / STATE, lambda path: torch.save(state, path))
            self._write_model()
        except (OSError, RuntimeError, SafetensorError) as error:
            raise OutputError(f"{self.folder}: the checkpoint cannot be written: {error}") from error
        self.reporter.saved(self.trainer.step)

    def _write_model(self) -> None:
        partial = self.folder / ".model.partial"
        partial.mkdir(exist_ok=True)
        try:
            write_native(self._checkpoint(), partial, half=False)
            for file in partial.iterdir():
                file.replace(self.folder / file.name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _checkpoint(self) -> Checkpoint:
        weights = {name: weight.detach().cpu() for name, weight in self.trainer.model.weights().items()}
        return Checkpoint(self.trainer.model.config, weights, self.corpus.vocabulary, str(self.folder))

    def _measure(
        self, progress: Progress, rate: float | None, records: Records, *, tokens: int | None
    ) -> Perplexity | None:
        """Held-out perplexity, where there is text for it, reported and written down."""
        found = None
        if self.corpus.valid.tokens:
            elmo = Elmo(self._checkpoint(), token_cache_mb=16)
            found = perplexity(elmo, sentences_of(self.corpus.valid.ids, self.corpus.words, tokens=tokens))
        records.measured(progress, rate, found)
        if self.reporter and found:
            self.reporter.measured(progress, found)
        return found

    def _preflight(self) -> Preflight:
        trainer = self.trainer
        parameters = sum(weight.numel() for weight in trainer.model.parameters())
        megabytes = self._memory(parameters) / 2**20
        return Preflight(self.corpus, parameters, trainer.total_steps, trainer.step, self._seconds_a_step(), megabytes)

    def _seconds_a_step(self) -> float:
        """What a step costs is seen by doing two, of which the first warms up, and taking them back."""
        trainer = self.trainer
        streams, state = trainer.streams.state(), trainer.state
        trainer.accumulate_gradients()
        start = time.perf_counter()
        trainer.accumulate_gradients()
        seconds = time.perf_counter() - start
        trainer.streams.restore(streams)
        trainer.state = state
        trainer.optimizer.zero_grad()
        return seconds

    def _memory(self, parameters: int) -> int:
        settings, model = self.recipe.training, self.recipe.model
        cells = model.layers * model.hidden * settings.batch * settings.unroll // self.trainer.world
        words = BYTES_A_WORD * self.corpus.types
        return LIBRARIES + BYTES_A_WEIGHT * parameters + BYTES_A_CELL * cells + words


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits for the end of a step: half of one is nothing to go on from."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def _join_processes() -> tuple[int, int]:
    """This process's number and how many there are, as torchrun tells it."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return 0, 1
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), world


def _check_folder(folder: Path, recipe: Recipe, *, resume: bool) -> None:
    """Refuse to overwrite a run, and to go on with other settings."""
    if resume:
        _check_same(folder, recipe)
    elif (folder / STATE).exists():
        raise OutputError(f"{folder} holds a run already: go on with it by --resume, or choose another folder")
    elif folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file: a run is written as a folder")
    elif folder.exists() and any(path.name != CORPUS for path in folder.iterdir()):
        raise OutputError(f"{folder} is not empty: choose another folder")


def _check_same(folder: Path, recipe: Recipe) -> None:
    try:
        values = json.loads((folder / RECIPE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise CheckpointError(f"{folder}: there is no run to go on with here") from None
    before, now = (dict(_flat(json.loads(_as_json(one)))) for one in (make_recipe(values), recipe))
    changed = [
        f"{name} was {_show(before.get(name))} and is {_show(now.get(name))}"
        for name in before | now
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise ConfigError(f"{folder}: a run goes on with the settings it began with: {'; '.join(changed)}")


def _own_device(name: str) -> str:
    """Of several graphics cards each of a machine's processes takes its own."""
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if name == "cuda" else name


def _check_autocast(settings: TrainSettings, device: torch.device) -> None:
    if settings.autocast == "bf16" and not _has_bf16(device):
        raise ConfigError("training.autocast is bf16, and this processor is not made for 16 bits: set it to none")


def _has_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        flat += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return flat


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_json(recipe: Recipe) -> str:
    return json.dumps(recipe_values(recipe), ensure_ascii=False, indent=2) + "\n"


def _new_model(recipe: Recipe, corpus: Corpus, start: Checkpoint | None) -> LanguageModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.training.seed)
        model = LanguageModel(model_config(recipe, corpus))
    if start is not None:
        _take_over(model, start)
    return model


@torch.no_grad()
def _take_over(model: LanguageModel, start: Checkpoint) -> None:
    """Copy the weights of another model; where the vocabulary has grown, the new words' rows stay random."""
    for name, weight in model.weights().items():
        old = start.weights.get(name)
        if old is None:
            continue  # a softmax that the other model lacks
        if old.shape[1:] != weight.shape[1:] or len(old) > len(weight):
            raise ConfigError(f"'{name}' is {tuple(old.shape)} in the model and {tuple(weight.shape)} in the recipe")
        weight[: len(old)] = old


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, UnpicklingError):
        raise CheckpointError(f"{path}: cannot be read as the state of a run: is it complete?") from None
    return state


def _replace_file(path: Path, write: Any) -> None:
    """Write a file beside its place, then put it there in one move."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
