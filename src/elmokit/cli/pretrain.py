"""`elmokit pretrain`, `finetune` and `perplexity`: from text to a model, and how good it is."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit import __version__
from elmokit.cli.options import Source, TextOptions, TokenOptions
from elmokit.cli.output import print_columns
from elmokit.cli.shards import ShardOptions
from elmokit.pretrain.recipe import recipe_names
from elmokit.shards import Shards
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.pretrain.recipe import Recipe
    from elmokit.progress import Progress
    from elmokit.text.vocabulary import Vocabulary

Corpus = Annotated[Source, Parameter(name="CORPUS")]
RECIPES = f"{', '.join(recipe_names())}, or a .toml file of your own."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What every training run is told."""

    output: Annotated[Path, Parameter(alias="-o")]
    """The folder of the run; the model in it can be loaded at any time."""
    set_: Annotated[list[str] | None, Parameter(name=["--set", "-s"])] = None
    """Any setting of the recipe, by its path: training.batch=64. May be repeated."""
    text: TextOptions = TextOptions()
    valid: Annotated[list[Path] | None, Parameter(consume_multiple=True)] = None
    """Files to measure on; a share of the corpus is held out unless given."""
    freeze: str | None = None
    """What stays as it is: words (the table of words), tokens (the whole token encoder), or with it so many of the
    lower layers, 1 or 2: training.freeze of the recipe."""
    resume: Annotated[bool, Parameter(negative="")] = False
    """Go on with the run in the output folder."""
    workers: int | None = None
    """Processes that tokenize the text; as many as there are cores unless given."""
    parts: ShardOptions = ShardOptions()
    device: str = "cpu"
    """Where to compute: cpu, cuda, cuda:1; with torchrun and cuda, each process takes a card of its own."""


def pretrain(
    *corpus: Corpus,
    recipe: Annotated[str, Parameter(help=RECIPES)] = "novel",
    tokens: TokenOptions = TokenOptions(),
    vocabulary: Path | None = None,
    vocab_size: int | None = None,
    min_count: int | None = None,
    word_vectors: Path | None = None,
    run: RunOptions,
) -> None:
    """Train a bidirectional language model on text of your own.

    Example: elmokit pretrain novel.txt -o my-model -s training.epochs=4

    Parameters
    ----------
    corpus
        Files (.txt, .jsonl, .fasta, plain or .gz, .xz, .zst) or folders of them, or - for standard input.
    vocabulary
        A file of words, most frequent first after `<S>`, `</S>` and `<UNK>`; made from the corpus unless given.
    vocab_size
        Words in the vocabulary at most, those three included: corpus.vocab_size of the recipe.
    min_count
        How often a word of the vocabulary occurs at least: corpus.min_count of the recipe.
    word_vectors
        A file of GloVe's, word2vec's or fastText's vectors that the table of words starts from; a recipe that has no
        such table gets one beside its characters. The vectors learn too, unless --freeze words.
    """
    from elmokit.errors import ConfigError
    from elmokit.pretrain.recipe import read_recipe
    from elmokit.static.embedders import StaticVectors
    from elmokit.text.vocabulary import read_vocabulary

    if vocabulary and (vocab_size, min_count) != (None, None):
        raise ConfigError("--vocabulary is taken as it is: leave out --vocab-size and --min-count, or shorten the file")
    flags = {"corpus.vocab_size": vocab_size, "corpus.min_count": min_count}
    given = [f"{name}={value}" for name, value in flags.items() if value is not None]
    words = read_vocabulary(vocabulary) if vocabulary else None
    values, vectors = read_recipe(recipe), None
    if word_vectors:
        vectors = StaticVectors.load(word_vectors, lower_case=True)
        values.setdefault("model", {}).setdefault("words", {}).setdefault("dim", vectors.width)
    _train(corpus, values, given, run, tokens, vocabulary=words, word_vectors=vectors)


def finetune(
    model: Annotated[str, Parameter(name="MODEL")],
    /,
    *corpus: Corpus,
    recipe: Annotated[str, Parameter(help=f"{RECIPES} Its model is not used.")] = "finetune",
    new_words: int = 0,
    run: RunOptions,
) -> None:
    """Go on training a model on text of your own domain.

    Example: elmokit finetune my-model reports/ -o my-reports-model --new-words 2000

    Parameters
    ----------
    model
        A model's folder, file or address. One without a softmax, such as AllenAI's, gets a new one, which learns alone
        at first.
    corpus
        Files (.txt, .jsonl, .fasta, plain or .gz, .xz, .zst) or folders of them, or - for standard input.
    new_words
        Words of the text that the model's vocabulary lacks and that are added to it, the most frequent first.
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
    _train(corpus, values, [], run, TokenOptions(), vocabulary=words, start=start, new_words=new_words)


def _train(
    corpus: Sequence[Path],
    values: dict[str, Any],
    given: Sequence[str],
    run: RunOptions,
    tokens: TokenOptions,
    **options: Any,
) -> None:
    """Train by the recipe's values and by what was set as name=value."""
    from elmokit.errors import ConfigError
    from elmokit.pretrain.recipe import make_recipe, set_value
    from elmokit.pretrain.run import pretrain
    from elmokit.progress.drawing import watched

    reading = {name: value for name, value in run.text.reading.items() if value != TextOptions().reading[name]}
    freeze = [] if run.freeze is None else [f"training.freeze={run.freeze}"]
    read = [f"corpus.{name}={value}" for name, value in reading.items()]
    for setting in (*given, *read, *freeze, *(run.set_ or ())):
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: write it as name=value, such as training.batch=64")
        set_value(values, name, value)
    recipe = make_recipe(values)
    recipe = replace(recipe, model=replace(recipe.model, tokenizer=tokens.over(recipe.model.tokenizer)))
    options |= {"valid_paths": run.valid or (), "resume": run.resume, "workers": run.workers, "device": run.device}
    run.parts.check(*corpus)
    with watched(str(run.output)) as progress:
        shards = None
        if run.parts.count:
            shards = _tokenized(corpus, recipe, run, options["vocabulary"], progress)
            if run.parts.shard:
                return
        pretrain(corpus, run.output, recipe, progress=progress, numbers=shards.paths if shards else (), **options)
    if shards:
        shards.remove()


def _tokenized(
    corpus: Sequence[Path], recipe: "Recipe", run: RunOptions, vocabulary: "Vocabulary | None", progress: "Progress"
) -> Shards | None:
    """The words of the text, numbered in parts; none if only one was asked for, or if the corpus is prepared."""
    from elmokit.pretrain.corpus import read_manifest
    from elmokit.pretrain.run import CORPUS, corpus_source

    if os.environ.get("RANK", "0") != "0":  # of torchrun's processes the first prepares the text
        return None
    source = corpus_source(corpus, recipe, valid_paths=run.valid or (), vocabulary=vocabulary)
    manifest, fingerprint = read_manifest(run.output / CORPUS), source.fingerprint()
    shards = Shards(run.output, run.parts.count or 1, (fingerprint, __version__), ".npy")
    if manifest and not manifest.age and manifest.fingerprint == fingerprint:
        shards.remove()
        return None
    return shards if run.parts.compute(shards, source.write_shard, progress) else None


def perplexity(
    model: Annotated[str, Parameter(name="MODEL")],
    text: Annotated[Source, Parameter(name="FILE")],
    /,
    *,
    options: TextOptions = TextOptions(),
    tokens: TokenOptions = TokenOptions(),
) -> None:
    """Measure how well a model predicts a text: exact perplexity, each sentence from a zero state.

    Example: elmokit perplexity my-model held-out.txt

    Parameters
    ----------
    model
        A model with its softmax, such as the folder of a run.
    text
        A file (.txt, .jsonl, .fasta, plain or .gz, .xz, .zst) or a folder of them, or - for standard input.
    """
    from elmokit.elmo import load
    from elmokit.pretrain.evaluation import perplexity as measure
    from elmokit.progress import tracked
    from elmokit.progress.drawing import watched
    from elmokit.text.corpus import open_corpus
    from elmokit.text.tokenizers import get_tokenizer

    elmo = load(model)
    tokenizer = get_tokenizer(tokens.over(elmo.config.tokenizer))
    corpus = open_corpus([text], tokenizer, **options.reading, repeatable=False)
    with watched(corpus.name) as progress:
        contexts = tracked(corpus, progress, "measuring", unit="sentences")
        found = measure(elmo, (context.words for context in contexts))
    names = map(translate, ["forward", "backward", "average"])
    values = (found.forward, found.backward, found.average)
    print_columns([(name, f"{value:,.2f}") for name, value in zip(names, values, strict=True)])
    words = len(elmo.vocabulary or ())
    counts = (
        f"{found.targets:,} words predicted each way; vocabulary {words:,}; {found.unknown:,} tokens count as <UNK>"
    )
    print(translate(counts))
