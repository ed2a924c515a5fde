"""`elmokit pretrain`, `finetune` and `perplexity`: from text to a model, and how good it is."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import TextOptions
from elmokit.config import TokenizerName

if TYPE_CHECKING:
    from elmokit.pretrain.perplexity import Perplexity
    from elmokit.pretrain.run import Preflight
    from elmokit.pretrain.trainer import Progress


def pretrain(
    *corpus: Annotated[Path, Parameter(name="CORPUS")],
    output: Annotated[Path, Parameter(alias="-o")],
    recipe: str = "novel",
    tokenizer: TokenizerName | None = None,
    set_: Annotated[list[str] | None, Parameter(name=["--set", "-s"])] = None,
    valid: list[Path] | None = None,
    vocabulary: Path | None = None,
    vocab_size: int | None = None,
    min_count: int | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    workers: int | None = None,
    device: str = "cpu",
) -> None:
    """Train a bidirectional language model on text of your own.

    Example: elmokit pretrain novel.txt -o my-model --recipe novel --tokenizer jieba -s training.epochs=4

    Parameters
    ----------
    corpus
        Files (.txt, .jsonl, plain or .gz or .xz) or folders of them.
    output
        The folder of the run; the model in it can be loaded at any time.
    recipe
        tiny, novel, small, original, or a .toml file of your own.
    tokenizer
        How text is cut into tokens; as the recipe says unless given.
    set_
        Any setting of the recipe, by its path: training.batch=64. May be repeated.
    valid
        Files to measure on; a share of the corpus is held out unless given.
    vocabulary
        A file of words, most frequent first after <S>, </S> and <UNK>; made from the corpus unless given.
    vocab_size
        Words in the vocabulary at most, those three included: corpus.vocab_size of the recipe.
    min_count
        How often a word of the vocabulary occurs at least: corpus.min_count of the recipe.
    resume
        Go on with the run in the output folder.
    workers
        Processes that cut the text; as many as there are cores unless given.
    device
        Where to compute: cpu, cuda, cuda:1; with torchrun and cuda, each process takes a card of its own.
    """
    from elmokit.errors import ConfigError
    from elmokit.pretrain.recipe import read_recipe
    from elmokit.text.vocabulary import read_vocabulary

    if vocabulary and (vocab_size, min_count) != (None, None):
        raise ConfigError("--vocabulary is taken as it is: leave out --vocab-size and --min-count, or shorten the file")
    flags = {"model.tokenizer": tokenizer, "corpus.vocab_size": vocab_size, "corpus.min_count": min_count}
    given = [f"{name}={value}" for name, value in flags.items() if value is not None]
    words = read_vocabulary(vocabulary) if vocabulary else None
    options = {"valid_paths": valid or (), "vocabulary": words, "resume": resume, "workers": workers, "device": device}
    _train(corpus, output, read_recipe(recipe), [*given, *(set_ or [])], **options)


def finetune(
    model: Annotated[str, Parameter(name="MODEL")],
    /,
    *corpus: Annotated[Path, Parameter(name="CORPUS")],
    output: Annotated[Path, Parameter(alias="-o")],
    recipe: str = "finetune",
    set_: Annotated[list[str] | None, Parameter(name=["--set", "-s"])] = None,
    new_words: int = 0,
    valid: list[Path] | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    workers: int | None = None,
    device: str = "cpu",
) -> None:
    """Go on training a model on text of your own domain.

    Example: elmokit finetune my-model reports/ -o my-reports-model --new-words 2000

    Parameters
    ----------
    model
        A model's folder, file or address. One without a softmax, such as AllenAI's, gets a new one, which learns alone
        at first.
    corpus
        Files (.txt, .jsonl, plain or .gz or .xz) or folders of them.
    output
        The folder of the run; the model in it can be loaded at any time.
    recipe
        A recipe's name or .toml file; its model is not used.
    set_
        Any setting of the recipe, by its path: training.epochs=2. May be repeated.
    new_words
        Words of the text that the model's vocabulary lacks and that are added to it, the most frequent first.
    valid
        Files to measure on; a share of the corpus is held out unless given.
    resume
        Go on with the run in the output folder.
    workers
        Processes that cut the text; as many as there are cores unless given.
    device
        Where to compute: cpu, cuda, cuda:1; with torchrun and cuda, each process takes a card of its own.
    """
    from elmokit.checkpoints import read_checkpoint
    from elmokit.config import config_to_dict
    from elmokit.hub import local_path
    from elmokit.pretrain.recipe import read_recipe

    start = read_checkpoint(local_path(model))
    values = read_recipe(recipe) | {"model": config_to_dict(start.config)}
    own_softmax = start.config.softmax is not None
    if not own_softmax:
        values["model"]["softmax"] = {}
        values.setdefault("training", {}).setdefault("head_epochs", 0.5)
    words = start.vocabulary if own_softmax or start.config.words else None
    options = {"valid_paths": valid or (), "vocabulary": words, "resume": resume, "workers": workers, "device": device}
    _train(corpus, output, values, set_ or [], start=start, new_words=new_words, **options)


def _train(
    corpus: Sequence[Path], output: Path, values: dict[str, Any], settings: Sequence[str], **options: Any
) -> None:
    """Train by the recipe's values and by what was set as name=value."""
    from elmokit.errors import ConfigError
    from elmokit.pretrain.recipe import make_recipe, set_value
    from elmokit.pretrain.run import pretrain as run

    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: write it as name=value, such as training.batch=64")
        set_value(values, name, value)
    recipe = make_recipe(values)
    with _reporter() as reporter:
        run(corpus, output, recipe, reporter, **options)


def perplexity(
    model: Annotated[str, Parameter(name="MODEL")],
    text: Annotated[str, Parameter(name="FILE", allow_leading_hyphen=True)],
    /,
    *,
    options: TextOptions = TextOptions(),  # noqa: B008
    tokenizer: TokenizerName | None = None,
) -> None:
    """Measure how well a model predicts a text: exact perplexity, each sentence from a zero state.

    Example: elmokit perplexity my-model held-out.txt

    Parameters
    ----------
    model
        A model with its softmax, such as the folder of a run.
    text
        A text as pretraining reads it (.txt, .jsonl, plain or .gz or .xz, a paragraph a line) or a folder of them, or -
        for standard input.
    tokenizer
        How sentences are cut into tokens; the model's own way unless given.
    """
    from elmokit.elmo import load
    from elmokit.pretrain.perplexity import perplexity as measure
    from elmokit.text.corpus import open_corpus
    from elmokit.text.tokenizers import get_tokenizer

    elmo = load(model)
    cut = get_tokenizer(tokenizer) if tokenizer else elmo.tokenizer
    contexts = open_corpus([text], cut, lines=options.meaning, repeatable=False)
    found = measure(elmo, (context.words for context in contexts))
    print(f"forward   {found.forward:,.2f}\nbackward  {found.backward:,.2f}\naverage   {found.average:,.2f}")
    words = len(elmo.vocabulary or ())
    print(f"{found.targets:,} words predicted each way; vocabulary {words:,}; {found.unknown:,} tokens count as <UNK>")


def _reporter() -> Any:
    """A bar where a person watches; of several processes only the first has anything to show."""
    first = os.environ.get("RANK", "0") == "0"
    return BarReporter() if first and sys.stderr.isatty() else LineReporter()


class LineReporter:
    """Plain lines for a log."""

    every = 50
    has_read = False

    def __enter__(self) -> "LineReporter":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def say(self, line: str) -> None:
        """Write a line."""
        print(line, file=sys.stderr, flush=True)

    def reading(self, done: int, total: int) -> None:
        """Say when all text has been read."""
        if done == total and not self.has_read:
            self.has_read = True
            self.say(f"read {total / 1e6:,.1f} MB of text")

    def preflight(self, facts: "Preflight") -> None:
        """Say what is about to happen."""
        corpus = facts.corpus
        self.say(
            f"{corpus.train.tokens:,} tokens to train on, {corpus.valid.tokens:,} held out; "
            f"{corpus.types:,} distinct words, {len(corpus.vocabulary):,} in the vocabulary, "
            f"which lacks {corpus.train.oov_rate:.2%} of the tokens"
        )
        self.say(
            f"{facts.parameters:,} parameters, about {facts.megabytes:,.0f} MB; "
            f"{facts.steps - facts.steps_done:,} steps to go, about {_duration(facts.seconds)}"
        )

    def progress(self, progress: "Progress", total: int, tokens_per_second: float) -> None:
        """Say how it goes, now and then."""
        if progress.step % self.every == 0:
            self.say(f"step {progress.step:,}/{total:,}  loss {progress.loss:.3f}  {tokens_per_second:,.0f} tokens/s")

    def measured(self, progress: "Progress", held_out: "Perplexity") -> None:
        """Say how well the model predicts text it has not seen."""
        self.say(
            f"step {progress.step:,}: held-out perplexity {held_out.forward:,.1f} forward, "
            f"{held_out.backward:,.1f} backward, {held_out.average:,.1f} average"
        )

    def saved(self, step: int) -> None:
        """Say nothing: it happens often."""


class BarReporter(LineReporter):
    """A live bar for a person."""

    def __enter__(self) -> "BarReporter":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        texts = [TextColumn(text) for text in ("{task.description}", "{task.fields[note]}")]
        self.bar = Progress(texts[0], BarColumn(), texts[1], TimeRemainingColumn(), console=Console(stderr=True))
        self.bar.start()
        self.task = self.bar.add_task("reading", note="")
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def say(self, line: str) -> None:
        """Write a line above the bar."""
        self.bar.console.print(line, highlight=False)

    def reading(self, done: int, total: int) -> None:
        """Move the bar."""
        self.bar.update(self.task, completed=done, total=total)

    def progress(self, progress: "Progress", total: int, tokens_per_second: float) -> None:
        """Move the bar."""
        note = f"loss {progress.loss:.3f}  {tokens_per_second:,.0f} tokens/s"
        self.bar.update(self.task, description="training", completed=progress.step, total=total, note=note)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
