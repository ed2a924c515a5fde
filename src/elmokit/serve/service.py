"""What is served: models with their batchers, corpora, trained tasks, static vectors, and what requests share."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from elmokit.batching import Batcher
from elmokit.elmo import Elmo, load
from elmokit.errors import ConfigError
from elmokit.lexicon.index import MANIFEST, read_manifest
from elmokit.serve.budget import Memory, Workers
from elmokit.serve.corpora import ServedCorpus
from elmokit.serve.metrics import Metrics
from elmokit.serve.models import by_name, free_name, read_card
from elmokit.serve.refusals import RefusedError
from elmokit.serve.settings import Limits, ServeSettings
from elmokit.static.embedders import StaticVectors
from elmokit.tasks.predictor import Predictor
from elmokit.tasks.task import Item
from elmokit.tasks.training import load as load_task
from elmokit.tasks.training import read_config
from elmokit.text.corpus import beginning
from elmokit.text.documents import open_texts
from elmokit.text.tokenizers import Token, is_mostly_han, with_settings

LONG_TEXT = 20_000  # characters; more are tokenized on a thread, so that others need not wait
CHINESE = ("jieba", "characters")  # tokenizers of models for text that is mostly Han
STUDY_THREADS = 2


@dataclass(frozen=True)
class ServedModel:
    """A model under its name."""

    name: str
    elmo: Elmo
    batcher: Batcher
    card: str | None  # Markdown


@dataclass(frozen=True)
class ServedTask:
    """A trained task under its name; it answers one request after the other."""

    name: str
    predictor: Predictor
    lock: Lock = field(default_factory=Lock)

    def predict(self, items: Sequence[Item]) -> list[Any]:
        """The answers, as examples."""
        with self.lock:
            answers: list[Any] = self.predictor.model.predict(items)
            return answers


class Service:
    """All that is served, and the limits that requests share."""

    def __init__(
        self,
        models: Mapping[str, Elmo],
        *,
        cards: Mapping[str, str] | None = None,
        tasks: Mapping[str, Predictor] | None = None,
        static: StaticVectors | None = None,
        settings: ServeSettings | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.settings, self.limits = settings or ServeSettings(), limits or Limits()
        self.metrics, self.memory = Metrics(), Memory(self.limits.memory_mb)
        self.workers = Workers(threads=STUDY_THREADS, most=self.limits.studies)
        self.models: dict[str, ServedModel] = {}
        for name, elmo in models.items():
            observe = partial(self.metrics.batch, name)
            batcher = Batcher(elmo, queue_tokens=self.limits.queue_tokens, observe=observe)
            self.metrics.watch(name, batcher)
            self.models[name] = ServedModel(name, elmo, batcher, (cards or {}).get(name))
        self.tasks = {name: ServedTask(name, predictor) for name, predictor in (tasks or {}).items()}
        self.static = static
        self.corpora: dict[str, ServedCorpus] = {}
        self._opening: Thread | None = None
        self._long_text = asyncio.Semaphore(1)

    def model(self, name: str | None) -> ServedModel:
        """The model of that name, the first unless one is named."""
        model: ServedModel = _named(self.models, name, "model")
        return model

    def corpus(self, name: str | None) -> ServedCorpus:
        """The corpus of that name, the first unless one is named."""
        corpus: ServedCorpus = _named(self.corpora, name, "corpus")
        return corpus

    def task(self, name: str) -> ServedTask:
        """The task of that name."""
        task: ServedTask = _named(self.tasks, name, "task")
        return task

    def open_corpora(self) -> None:
        """Open or build their indexes, one after the other, in the background."""

        def open_all() -> None:
            for corpus in self.corpora.values():
                corpus.open()

        self._opening = Thread(target=open_all, name="elmokit corpora", daemon=True)
        self._opening.start()

    def close(self) -> None:
        """Answer what waits, stop what is built, and end."""
        for corpus in self.corpora.values():
            corpus.watch.stopped = True
        for model in self.models.values():
            model.batcher.close()
        self.workers.close()
        if self._opening:
            self._opening.join()

    async def tokenize(self, model: ServedModel, texts: Sequence[str], *, truncate: bool = False) -> list[list[Token]]:
        """The tokens of texts, which must be no more than the limit; with `truncate` each text is cut to fit."""
        if len(texts) > self.limits.texts:
            raise RefusedError(413, f"{len(texts):,} texts: the limit is {self.limits.texts:,} in a request")
        tokenizer = model.elmo.tokenizer
        if sum(map(len, texts)) > LONG_TEXT:
            async with self._long_text:  # one at a time: a megabyte of commas takes 200 as tokens
                found = await asyncio.to_thread(lambda: list(map(tokenizer, texts)))
        else:
            found = list(map(tokenizer, texts))
        if truncate:
            found = [tokens[: self.limits.tokens // max(1, len(found))] for tokens in found]
        self.check_tokens(sum(map(len, found)))
        return found

    def check_tokens(self, count: int) -> None:
        """Refuse more than the limit."""
        if count > self.limits.tokens:
            raise RefusedError(413, f"{count:,} tokens: the limit is {self.limits.tokens:,} in a request")


def open_service(
    models: Iterable[str],
    *,
    corpora: Iterable[str | Path] = (),
    tasks: Iterable[str | Path] = (),
    static: str | Path | None = None,
    settings: ServeSettings | None = None,
    limits: Limits | None = None,
) -> Service:
    """Load what is named; of corpora the files are looked for, their indexes are opened later.

    A corpus is text or an index; MODEL=TEXT says which model reads it.
    """
    sources = by_name(models)
    loaded = {name: load(source) for name, source in sources.items()}
    for elmo in loaded.values():
        elmo.embed([["ready"]])  # what is compiled at the first call, on a new machine for half a minute
    trained = {name: _load_task(Path(path).expanduser(), loaded) for name, path in by_name(tasks).items()}
    vectors = None if static is None else StaticVectors.load(static, lower_case=True)
    cards = {name: card for name, source in sources.items() if (card := read_card(source)) is not None}
    service = Service(loaded, cards=cards, tasks=trained, static=vectors, settings=settings, limits=limits)
    try:
        for source in corpora:
            _add_corpus(service, str(source))
    except BaseException:
        service.close()
        raise
    return service


def _add_corpus(service: Service, source: str) -> None:
    wanted, equals, path = source.partition("=")
    if not equals or wanted not in service.models:
        wanted, path = "", source
    folder = Path(path).expanduser()
    if (folder / MANIFEST).is_file():
        text: Any = folder
        model = service.models[wanted] if wanted else _indexed_by(service, folder)
    else:
        text = open_texts([path])
        model = service.models[wanted or _reader_of(service, beginning(text))]
    name = free_name(folder.stem or "corpus", service.corpora)
    service.corpora[name] = ServedCorpus(name, model.name, model.elmo, text)


def _reader_of(service: Service, text: str) -> str:
    """The first model made for the text's script, Han or other, or the first of all."""
    han = is_mostly_han(text)
    names = {name: with_settings(one.elmo.config.tokenizer).name for name, one in service.models.items()}
    return next((name for name, tokenizer in names.items() if (tokenizer in CHINESE) == han), next(iter(names)))


def _indexed_by(service: Service, folder: Path) -> ServedModel:
    built = read_manifest(folder).reading.model
    for model in service.models.values():
        if model.elmo.digest == built.digest:
            return model
    raise ConfigError(f"{folder} was built by the model {built}: serve that too, by --model")


def _load_task(folder: Path, models: Mapping[str, Elmo]) -> Predictor:
    """A trained task; where it needs models that are served, it takes these."""
    digests = {elmo.digest: elmo for elmo in models.values()}
    known = [digests.get(one.digest) for one in read_config(folder).embedders]
    return load_task(folder, embedders=None if None in known else known)  # type: ignore[arg-type]


def _named(known: Mapping[str, Any], name: str | None, kind: str) -> Any:
    if name is None and known:
        return next(iter(known.values()))
    if name is None or name not in known:
        served = f"served are {', '.join(known)}" if known else f"none is served: start the server with --{kind}"
        raise RefusedError(404, f"there is no {kind} {str(name)[:100]!r}: {served}")
    return known[name]
