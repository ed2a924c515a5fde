"""The one way to train a task: from labelled examples to a folder with a task that answers."""

import random
import shutil
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import torch

from elmokit.config import TokenizerName
from elmokit.embedder import Embedder
from elmokit.errors import ConfigError, DataError, OutputError
from elmokit.files import replace_file
from elmokit.tasks.cache import cache_bytes, cache_path, fits, open_cache
from elmokit.tasks.embedders import FOLDER as COPIES
from elmokit.tasks.embedders import EmbedderId, copy_into, identify
from elmokit.tasks.inputs import FrozenSource
from elmokit.tasks.network import Network
from elmokit.tasks.registry import get_task
from elmokit.tasks.report import Reporter, Silence
from elmokit.tasks.run import Run
from elmokit.tasks.saved import CONFIG, Predictor, TaskConfig, as_json, build, changed, load_weights, read_config
from elmokit.tasks.settings import FitSettings, InputSettings
from elmokit.tasks.task import Item, Tokens, check_labels, learn_labels, settings_of, training_of
from elmokit.text.tokenizers import get_tokenizer

CACHE = "cache"
PARTIAL = ".partial"


def fit(
    name: str,
    train: Sequence[Any],
    dev: Sequence[Any],
    embedders: Mapping[str, Embedder],
    folder: str | Path,
    *,
    settings: Any = None,
    inputs: InputSettings | None = None,
    training: FitSettings | None = None,
    tokenizer: TokenizerName = "words",
    sample: float = 1.0,
    reporter: Reporter = Silence(),  # noqa: B008
    bundle: bool = False,
    cache_folder: Path | None = None,
    resume: bool = False,
) -> Predictor:
    """Train a task on examples and keep the weights that answer the dev examples best.

    Embedders come by the names under which the trained task will look for them; `bundle` copies them into its folder.
    `tokenizer` cuts texts that come without tokens. `sample` is the share of the training data that is learned from. A
    cache folder of one's own keeps the embedders' layers for other runs on the same data. What is not said of inputs
    and training is as the task has it.
    """
    task = get_task(name)
    folder = Path(folder).expanduser()
    inputs, training = _inputs(name, inputs), training or training_of(task, {})
    for examples, which in ((train, "training"), (dev, "dev")):
        if not examples:
            raise DataError(f"the {which} data holds no examples")
    if not (isinstance(sample, int | float) and 0 < sample <= 1):
        raise ConfigError(f"sample is {sample!r}: it is a share of the training data, above 0 and at most 1")
    labels = learn_labels(task, train)  # of all the data: a sample of it may lack some
    check_labels(task, dev, labels)
    cut = get_tokenizer(tokenizer)
    items = [[task.prepare(example, cut) for example in part] for part in (_sampled(train, sample, training.seed), dev)]
    reporter.told(f"{len(items[0]):,} examples to learn from, {len(items[1]):,} to measure on")
    config = TaskConfig(
        task=name,
        settings=msgspec.to_builtins(settings or settings_of(task, {})),
        labels=labels,
        inputs=inputs,
        tokenizer=tokenizer,
        embedders=tuple(identify(*named) for named in embedders.items()),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        network = build(config, list(embedders.values()))
    _open_folder(folder, config, list(embedders.values()), bundle=bundle, resume=resume)
    run = Run(folder, task, network, items[0], items[1], training, reporter, sample=sample)
    if resume:
        run.restore()
    if not run.finished:
        _cache_layers(network, config.embedders, items, training, reporter, cache_folder or folder / CACHE)
    run.to_the_end(list(embedders))
    load_weights(network, folder)
    network.inputs.forget_caches()
    shutil.rmtree(folder / CACHE, ignore_errors=True)
    return Predictor(read_config(folder), network)


def _inputs(name: str, given: InputSettings | None) -> InputSettings:
    own: InputSettings | None = getattr(get_task(name), "INPUTS", None)
    if own and given:
        raise ConfigError(f"{name} sees each layer as it is: it takes no settings of the inputs")
    return own or given or InputSettings()


def _sampled(examples: Sequence[Any], share: float, seed: int) -> list[Any]:
    """A share of the examples, in their order."""
    count = max(1, round(share * len(examples)))
    chosen = random.Random(f"{seed} sample").sample(range(len(examples)), count)
    return [examples[number] for number in sorted(chosen)]


def _open_folder(
    folder: Path, config: TaskConfig, embedders: Sequence[Embedder], *, bundle: bool, resume: bool
) -> None:
    """Begin a folder, or go on with one of the same config."""
    if resume:
        return _check_same(folder, config)
    if folder.exists() and (not folder.is_dir() or any(path.name != PARTIAL for path in folder.iterdir())):
        raise OutputError(f"{folder} is not an empty folder: choose another, or go on with a run in it by --resume")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: the task cannot be written here: {error.strerror}") from error
    if bundle:
        config = msgspec.structs.replace(config, embedders=_bundled(folder, config.embedders, embedders))
    return replace_file(folder / CONFIG, as_json(config))


def _bundled(folder: Path, known: Sequence[EmbedderId], embedders: Sequence[Embedder]) -> tuple[EmbedderId, ...]:
    """Copies of the embedders in the folder, which appear together when all are complete."""
    partial = folder / PARTIAL
    shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
    try:
        pairs = enumerate(zip(known, embedders, strict=True))
        copies = tuple(copy_into(partial, number, one, embedder) for number, (one, embedder) in pairs)
        (partial / COPIES).rename(folder / COPIES)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return copies


def _check_same(folder: Path, config: TaskConfig) -> None:
    before, now = (msgspec.to_builtins(one) for one in (read_config(folder), config))
    for known in (*before["embedders"], *now["embedders"]):
        known["bundled"] = None  # a copy is the same embedder
    if names := changed(before, now):
        raise ConfigError(f"{folder}: a run goes on as it began, but this differs: {', '.join(names)}")


def _fingerprint(embedder: Embedder, sentences: Sequence[Tokens], most: int = 8) -> str:
    """What tells an embedder made in Python from others: the vectors that it gives some of the sentences."""
    hashed = blake2b()
    for layers in embedder.embed(list(dict.fromkeys(sentences))[:most], layers="all"):
        hashed.update(layers.tobytes())
    return hashed.hexdigest()


def _cache_layers(
    network: Network,
    known: Sequence[EmbedderId],
    items: Sequence[Sequence[Item]],
    training: FitSettings,
    reporter: Reporter,
    folder: Path,
) -> None:
    """Compute the layers of frozen models ahead, where they will be asked for more than once."""
    sentences = [sentence for part in items for item in part for sentence in item.sentences]
    once = training.epochs == 1 and len(set(sentences)) == len(sentences)
    if training.cache == "none" or once:
        return
    for identity, source in zip(known, network.inputs.sources, strict=True):
        if not isinstance(source, FrozenSource) or source.embedder.layer_count == 1:
            continue  # static vectors are looked up as fast as they are read back
        named = identity.digest or _fingerprint(source.embedder, sentences)
        needed = cache_bytes(source.embedder, sentences, dtype=training.cache)
        there = cache_path(folder, sentences, identity=named, dtype=training.cache).exists()
        if not there and not fits(folder, needed):
            reporter.told(f"{folder} lacks room for {needed / 1e6:,.0f} MB of layers: they are computed every epoch")
            continue
        reporter.told(f"{identity.name}: layers are computed once and kept in {folder}, {needed / 1e6:,.0f} MB")
        source.cache = open_cache(
            folder, source.embedder, sentences, identity=named, dtype=training.cache, progress=reporter.embedding
        )
