"""A training run and its folder.

| file | what it holds |
|---|---|
| config.json, model.safetensors, vocab.txt | the model so far, to be loaded as any other |
| README.md | its card: what it read, how it was trained, how well it predicts |
| recipe.json | every setting |
| metrics.jsonl | one line per measurement |
| training.pt | all that is needed to go on |
| tensorboard/ | the same as curves, where TensorBoard is installed |
| corpus/ | the text as ids |
"""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.distributed as dist
from safetensors import SafetensorError
from torch import Tensor

from elmokit import files
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.native import write as write_native
from elmokit.elmo import Elmo
from elmokit.embedder import Embedder
from elmokit.errors import CheckpointError, ConfigError, ElmoError, OutputError
from elmokit.model.cloze import Cloze
from elmokit.model.device import usable_device
from elmokit.model.language_model import CLOZE
from elmokit.pretrain.cloze import cloze_scores, train_cloze
from elmokit.pretrain.corpus import (
    OLDER,
    Corpus,
    CorpusSource,
    check_frequency_order,
    open_source,
    prepare,
    read_corpus,
    read_manifest,
)
from elmokit.pretrain.evaluation import Perplexity, mean_prediction, perplexity, sentences_of, spread_sentences
from elmokit.pretrain.interrupts import terminated_as_interrupted, uninterrupted
from elmokit.pretrain.recipe import Recipe, TrainSettings, make_recipe
from elmokit.pretrain.records import Records, known_before
from elmokit.pretrain.trainer import DivergedError, StepResult, Trainer, new_model, start_words
from elmokit.progress import SILENCE, Progress, duration
from elmokit.text.corpus import tokenizer_for
from elmokit.text.documents import Paths, TextFile, open_texts
from elmokit.text.vocabulary import Vocabulary

RECIPE, STATE, CORPUS = "recipe.json", "training.pt", "corpus"
# Of the memory that training takes; as measured, within a third, from the tiny recipe to the small one.
LIBRARIES = 550 * 2**20  # torch and numba, once they have trained and measured
BYTES_PER_WEIGHT = 16  # the weight, its gradient and what Adam remembers of it
BYTES_PER_CELL = 80  # what a step keeps of it at each token, in both directions, until it has gone back through it
PRIOR_TOKENS = 40_000  # over which predictions are averaged
BYTES_PER_WORD = 500  # of the text: its letters, its characters' ids, its counts


def pretrain(
    paths: Paths,
    folder: Path | str,
    recipe: Recipe | Mapping[str, Any] | str = "novel",
    *,
    valid_paths: Paths = (),
    vocabulary: Vocabulary | None = None,
    start: Checkpoint | None = None,
    new_words: int = 0,
    word_vectors: Embedder | None = None,
    resume: bool = False,
    workers: int | None = None,
    device: str = "cpu",
    numbers: Sequence[Path] = (),
    progress: Progress = SILENCE,
) -> Perplexity | None:
    """Train a model on text to the end of its recipe; its perplexity on all held-out text, where there is any.

    The recipe is a name, a .toml file, plain values or a Recipe. Training begins from random weights, or from those of
    `start`, whose vocabulary may grow by the most frequent new words; or it resumes the run in the folder. The table of
    words may start from other `word_vectors`; training.freeze says whether they learn. `numbers` are the files of all
    shards of the text, if others have tokenized it.
    """
    folder = Path(folder)
    texts, recipe = _opened(paths, make_recipe(recipe))
    # Of several graphics cards each of a machine's processes takes its own.
    place = usable_device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device)
    _check_autocast(recipe.training, place)
    _check_words(recipe, new_words, word_vectors)
    rank, world = _join_processes()
    # Where torchrun starts processes again, the command that begins is the one that goes on.
    new = not folder.exists() and "TORCHELASTIC_RUN_ID" not in os.environ
    with files.locked(folder) if rank == 0 else nullcontext():
        if rank == 0:
            begun = _check_folder(folder, recipe, resume=resume, new=new)
            settings = asdict(recipe.corpus) | {"tokenizer": recipe.model.tokenizer, "vocabulary": vocabulary}
            settings |= {"valid_paths": valid_paths, "workers": workers, "unchanged": begun, "numbers": numbers}
            prepare(texts, folder / CORPUS, progress=progress, **settings)
        if world > 1:
            dist.barrier()
        bounds = recipe.corpus
        corpus = read_corpus(
            folder / CORPUS, vocab_size=bounds.vocab_size, min_count=bounds.min_count, new_words=new_words
        )
        if vocabulary is not None and start is None:
            check_frequency_order(corpus)
        model = new_model(recipe, corpus, start)
        if word_vectors is not None:
            found = start_words(model, corpus.vocabulary.words, word_vectors, seed=recipe.training.seed)
            if rank == 0:
                progress.message(f"word vectors: {found}")
        trainer = Trainer(model.to(place), recipe, corpus, rank=rank, world=world)
        if resume and (folder / STATE).exists():
            with files.parsing(folder / STATE, "the state of this run"):
                trainer.load_state_dict(files.read_state(folder / STATE), folder / STATE)
        try:
            run = PretrainingRun(folder, recipe, corpus, trainer, progress if rank == 0 else None)
            run.about = known_before(folder.resolve().name, recipe, read_manifest(folder / CORPUS), start)
            return run.finish()
        finally:
            if world > 1:
                dist.destroy_process_group()


def corpus_source(
    paths: Paths, recipe: Recipe, *, valid_paths: Paths = (), vocabulary: Vocabulary | None = None
) -> CorpusSource:
    """What a run by this recipe prepares its corpus from."""
    texts, recipe = _opened(paths, recipe)
    reading = asdict(recipe.corpus) | {"tokenizer": recipe.model.tokenizer}
    del reading["vocab_size"], reading["min_count"]
    return open_source(texts, valid_paths=valid_paths, vocabulary=vocabulary, **reading)


def _opened(paths: Paths, recipe: Recipe) -> tuple[list[TextFile], Recipe]:
    """The texts, and the recipe with the tokenizer that is decided by them."""
    reading = recipe.corpus
    texts = open_texts(paths, lines=reading.lines, field=reading.field, encoding=reading.encoding)
    return texts, replace(recipe, model=replace(recipe.model, tokenizer=tokenizer_for(texts, recipe.model.tokenizer)))


@dataclass
class PretrainingRun:
    """The loop: steps, measurements, checkpoints. Of several processes only the one with progress writes."""

    folder: Path
    recipe: Recipe
    corpus: Corpus
    trainer: Trainer
    progress: Progress | None
    last_save: float = field(default_factory=time.monotonic)
    saved: int = 0
    """The step of the last checkpoint."""
    prior: Tensor | None = None
    cloze: Cloze | None = None
    about: dict[str, str] = field(default_factory=dict)

    def finish(self) -> Perplexity | None:
        """Train to the end, and measure; an interruption of one process leaves a checkpoint."""
        self.saved = self.trainer.step
        if self.trainer.step == 0:
            self.save()
        if self.progress is None:
            self._train()
            return None
        # Of several processes torchrun terminates those whose others have died: nothing can be saved together then.
        heard = terminated_as_interrupted() if self.trainer.world == 1 else nullcontext()
        with closing(Records(self.folder, step=self.trainer.step)) as self.records, heard:
            self.progress.message(self._corpus_facts())
            self.progress.message(self._model_facts())
            found = self._measure(self._train(), None, tokens=None)
            self._conclude(found)
            return found

    def _train(self) -> StepResult:
        """Train to the end; what diverged is not saved, and the checkpoint before it is told."""
        try:
            return self._advance()
        except DivergedError as error:
            good = f"the checkpoint of step {self.saved:,} is good"
            kept = good if self.trainer.step > self.saved else "so has the checkpoint: begin again, in another folder"
            raise ElmoError(f"{error}; {self.folder}: {kept}") from None

    def _advance(self) -> StepResult:
        trainer = self.trainer
        result = StepResult(trainer.step, trainer.tokens, float("nan"), trainer.learning_rate())
        try:
            while trainer.step < trainer.total_steps:
                start = time.perf_counter()
                with uninterrupted():
                    result = trainer.advance()
                self._report(result, time.perf_counter() - start)
                self._save_in_time()
        except KeyboardInterrupt:
            if trainer.world == 1:  # several are interrupted at different steps, and torchrun ends them soon
                self.save()
            if self.progress:
                self.progress.message(f"saved at step {self.saved:,}; the same command with --resume goes on")
            raise
        self.save()
        return result

    def _conclude(self, found: Perplexity | None) -> None:
        """What is only known at the end goes into the model too."""
        elmo = Elmo(self._checkpoint())
        sentences = spread_sentences(self.corpus.train.ids, self.corpus.words, tokens=PRIOR_TOKENS)
        self.prior = elmo.prior = mean_prediction(elmo, sentences)
        if self.recipe.training.cloze_share and self.corpus.valid.tokens and self.progress:
            self.cloze = self._join_directions(elmo, self.progress)
        self.about |= {"tokens read": f"{self.trainer.tokens:,}", "date": f"{date.today():%Y-%m-%d}"}
        if found:
            measured = f"{found.average:,.1f} on {found.targets:,} held-out words, {found.unknown:,} of them <UNK>"
            self.about |= {"perplexity": measured}
        self._save_model()

    def _join_directions(self, elmo: Elmo, progress: Progress) -> Cloze | None:
        """What reads both sides of a gap, if it predicts held-out words better than both directions by themselves."""
        corpus, settings = self.corpus, self.recipe.training
        tokens = max(1, min(int(settings.cloze_share * self.trainer.tokens), corpus.train.tokens))
        read = spread_sentences(corpus.train.ids, corpus.words, tokens=tokens)
        held_out = list(sentences_of(corpus.valid.ids, corpus.words, tokens=settings.evaluate_tokens))
        apart = cloze_scores(elmo, held_out).perplexity
        autocast = settings.autocast == "bf16"
        cloze = train_cloze(elmo, read, tokens=tokens, seed=settings.seed, autocast=autocast, progress=progress)
        elmo.language_model.cloze = cloze
        together = cloze_scores(elmo, held_out).perplexity
        kept = together < apart
        ending = "which is kept" if kept else "which is not kept"
        progress.message(f"words in gaps: perplexity {apart:,.1f}, joined by a layer {together:,.1f}, {ending}")
        return cloze if kept else None

    def _report(self, result: StepResult, seconds: float) -> None:
        if self.progress is None:
            return
        settings = self.recipe.training
        rate = settings.batch * settings.unroll * settings.accumulate / seconds
        note = f"loss {result.loss:.3f}, {rate:,.0f} tokens/s"
        self.progress.update("training", result.step, self.trainer.total_steps, unit="steps", note=note)
        self.records.add_step(result, rate)
        if result.step % settings.evaluate_steps < settings.accumulate:  # steps come that many at a time
            self._measure(result, rate, tokens=settings.evaluate_tokens)

    def _save_in_time(self) -> None:
        """All processes save at the same step, when they have the same weights: a clock of one of them decides."""
        if not self.trainer.is_average:
            return
        due = torch.tensor(time.monotonic() - self.last_save > 60 * self.recipe.training.save_minutes)
        if self.trainer.world > 1:
            dist.broadcast(due, 0)
        if due:
            self.save()

    def save(self) -> None:
        """The training state first, in one piece; then the model that it holds. Weights that diverged are not saved."""
        if self.trainer.step:
            self.trainer.check()
        state = self.trainer.state_dict()
        self.last_save, self.saved = time.monotonic(), self.trainer.step
        if self.progress is None:
            return
        files.replace_file(self.folder / RECIPE, files.as_json(asdict(self.recipe)))
        files.write_state(self.folder / STATE, state)
        self._save_model()

    def _save_model(self) -> None:
        with files.replacing_files(self.folder) as partial, files.writing(self.folder, (OSError, SafetensorError)):
            write_native(self._checkpoint(), partial, half=False)

    def _checkpoint(self) -> Checkpoint:
        weights = {name: weight.detach().cpu() for name, weight in self.trainer.model.weights().items()}
        config, vocabulary = self.trainer.model.config, self.corpus.vocabulary
        if self.cloze is not None:
            config = replace(config, cloze=self.cloze.hidden.out_features)
            weights |= {name: weight.detach().cpu() for name, weight in self.cloze.state_dict(prefix=CLOZE).items()}
        return Checkpoint(config, weights, vocabulary, str(self.folder), self.prior, self.about)

    def _measure(self, result: StepResult, rate: float | None, *, tokens: int | None) -> Perplexity | None:
        """Held-out perplexity, where there is text for it, reported and written down."""
        found = None
        if self.corpus.valid.tokens:
            elmo = Elmo(self._checkpoint(), token_cache_mb=16, allow_nonfinite=True)  # the next step tells
            found = perplexity(elmo, sentences_of(self.corpus.valid.ids, self.corpus.words, tokens=tokens))
        self.records.add_measurement(result, rate, found)
        if self.progress and found:
            self.progress.message(
                f"step {result.step:,}: held-out perplexity {found.forward:,.1f} forward, "
                f"{found.backward:,.1f} backward, {found.average:,.1f} average"
            )
        return found

    def _corpus_facts(self) -> str:
        corpus, known = self.corpus, len(self.corpus.vocabulary)
        tokens = f"{corpus.train.tokens:,} tokens to train on, {corpus.valid.tokens:,} held out"
        lacks = f"which lacks {corpus.train.oov_rate:.2%} of the tokens"
        return f"{tokens}; {corpus.types:,} distinct words, {known:,} in the vocabulary, {lacks}"

    def _model_facts(self) -> str:
        """Its size, and estimates of the memory and the time that training takes."""
        settings, model, trainer = self.recipe.training, self.recipe.model, self.trainer
        parameters = sum(weight.numel() for weight in trainer.model.parameters())
        cells = model.layers * model.hidden * settings.batch * settings.unroll // trainer.world
        memory = BYTES_PER_WEIGHT * parameters + BYTES_PER_CELL * cells + BYTES_PER_WORD * self.corpus.types
        steps = trainer.total_steps - trainer.step
        return (
            f"{parameters:,} parameters, about {(LIBRARIES + memory) / 2**20:,.0f} MB; "
            f"{steps:,} steps to go, about {duration(steps * self._seconds_per_step())}"
        )

    def _seconds_per_step(self) -> float:
        """What a step costs is seen by doing two, of which the first warms up, and taking them back."""
        with self.trainer.taken_back():
            self.trainer.accumulate_gradients()
            start = time.perf_counter()
            self.trainer.accumulate_gradients()
            return time.perf_counter() - start


def _check_folder(folder: Path, recipe: Recipe, *, resume: bool, new: bool) -> bool:
    """Refuse to overwrite a run or anything else, and to go on with other settings or with text prepared otherwise.

    A run that was killed before its first checkpoint leaves its text, its recipe and hidden files: it begins again,
    asked to resume or not. Whether there is more to go on from.
    """
    present = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    begun = bool(present - {CORPUS, RECIPE})
    if resume and (begun or new):
        before = files.read_json(folder / RECIPE, dict[str, Any], missing="there is no run to go on with here")
        manifest = read_manifest(folder / CORPUS)
        age = (manifest and manifest.age) or ("split" in before.get("corpus", {}) and OLDER)
        if age:
            raise CheckpointError(f"{folder}: the text was {age}: start the run anew, in another folder")
        was, now = (msgspec.to_builtins(asdict(one)) for one in (make_recipe(before), recipe))
        del was["training"]["epochs"], now["training"]["epochs"]  # a run may be made longer or shorter
        files.check_same_settings(folder, was, now)
        if not (folder / STATE).exists():
            raise CheckpointError(f"{folder / STATE}: cannot be read as the state of a run: it is missing")
    elif STATE in present:
        raise OutputError(f"{folder} holds a run already: go on with it by --resume, or choose another folder")
    elif begun:
        raise OutputError(f"{folder} is not empty: choose another folder")
    return begun


def _join_processes() -> tuple[int, int]:
    """This process's number and how many there are, as torchrun says."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return 0, 1
    if not dist.is_initialized():
        # Imported later, its functions would keep the group as their default, with gloo's threads, to the very end.
        import_module("torch.distributed.nn")
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), world


def _check_words(recipe: Recipe, new_words: int, given: Embedder | None) -> None:
    """Refuse vectors that the model has no table for, or none of their width, and new words in a frozen table."""
    words = recipe.model.words
    if new_words and words and recipe.training.freeze != "none":
        raise ConfigError("new words need a row in the table of words that learns: leave out training.freeze")
    if given is not None and words is None:
        raise ConfigError(f"word vectors: the recipe has no table of words: set model.words.dim to {given.width}")
    if given is not None and words is not None and words.dim != given.width:
        raise ConfigError(f"word vectors: they are {given.width} wide, and model.words.dim is {words.dim}")


def _check_autocast(settings: TrainSettings, device: torch.device) -> None:
    if settings.autocast == "none":
        return
    if device.type == "cuda":
        supported = bool(torch.cuda.is_bf16_supported(including_emulation=False))
    else:
        supported = torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    if not supported:
        raise ConfigError("training.autocast is bf16, and this processor is not made for 16 bits: set it to none")
