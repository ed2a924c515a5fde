"""Corpora whose indexes are opened or built in the background; what is asked of one that is not ready is refused."""

import logging
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from elmokit.elmo import Elmo
from elmokit.errors import ElmoError
from elmokit.files import cache_folder
from elmokit.lexicon.index import MANIFEST, Index, build_index, identify, open_index, read_manifest
from elmokit.progress import counted, duration
from elmokit.serve.refusals import RefusedError
from elmokit.serve.studies import OpenCorpus
from elmokit.text.corpus import TextCorpus, open_corpus
from elmokit.text.documents import TextFile

logger = logging.getLogger(__name__)

State = Literal["waiting", "building", "ready", "failed"]


class StoppedError(Exception):
    """The server ends before an index is built; what is committed of it is kept."""


class Watch:
    """How far the building of an index has come; to stop it, its next report fails."""

    stage, unit, done, stopped = "", "", 0, False
    total: int | None = None

    def message(self, text: str, /) -> None:
        """Nothing: what it says concerns users of the command line."""

    def update(self, stage: str, done: int, total: int | None = None, /, *, unit: str = "", note: str = "") -> None:
        """Keep the numbers."""
        del note
        if self.stopped:
            raise StoppedError
        self.stage, self.done, self.total, self.unit = stage, done, total, unit


class ServedCorpus:
    """A corpus under its name, read by one model: text files, or an index that was built before."""

    def __init__(self, name: str, model: str, elmo: Elmo, source: Path | Sequence[TextFile]) -> None:
        self.name, self.model, self.elmo, self.source = name, model, elmo, source
        self.state: State = "waiting"
        self.problem: str | None = None
        self.watch = Watch()
        self._corpus: OpenCorpus | None = None

    def open(self) -> None:
        """Open the index, or build it first; a mistake is kept for those who ask."""
        start, self.state = time.monotonic(), "building"
        try:
            self._corpus = OpenCorpus(self._index(), self.elmo)
        except StoppedError:
            self.state = "waiting"
        except (ElmoError, OSError) as error:
            self.state, self.problem = "failed", str(error)
            logger.warning("corpus %s: %s", self.name, error)
        else:
            self.state = "ready"
            rows = counted(self._corpus.index.manifest.rows, "occurrence")
            logger.info("corpus %s: ready, %s, %s", self.name, rows, duration(time.monotonic() - start))

    def ready(self) -> OpenCorpus:
        """What questions are put to; one that is not there yet is refused."""
        if self._corpus is not None:
            return self._corpus
        if self.state == "failed":
            raise RefusedError(422, f"the corpus {self.name!r} cannot be searched: {self.problem}")
        watch = self.watch
        far = f"{watch.stage}: {watch.done:,}{f' of {watch.total:,}' if watch.total else ''} {watch.unit}".strip(": ")
        raise RefusedError(503, f"the index of the corpus {self.name!r} is being built ({far}): try again")

    def status(self) -> dict[str, Any]:
        """How far it is, and when it is ready, what it holds."""
        watch = self.watch
        progress = {"stage": watch.stage, "done": watch.done, "total": watch.total, "unit": watch.unit}
        known = {"name": self.name, "model": self.model, "state": self.state, "problem": self.problem}
        return known | {"progress": progress, "contents": self._corpus.contents if self._corpus else None}

    def _index(self) -> Index:
        model = identify(self.elmo, self.model)
        if isinstance(self.source, Path):
            return open_index(self.source, model=model)
        corpus = open_corpus(self.source, self.elmo.config.tokenizer)
        folder = cache_folder() / "indexes" / self._digest(corpus)
        if not ((folder / MANIFEST).exists() and read_manifest(folder).finished):
            folder.parent.mkdir(parents=True, exist_ok=True)
            settings: dict[str, Any] = {"model": model, "tokenizer": self.elmo.config.tokenizer, "progress": self.watch}
            build_index(corpus, self.elmo, folder, **settings)
        return open_index(folder, model=model)

    def _digest(self, corpus: TextCorpus) -> str:
        """A hash of all that the index depends on."""
        hashed = blake2b(f"{self.elmo.digest} {corpus.tokenizer} {corpus.language}".encode(), digest_size=16)
        for file in corpus.files:
            hashed.update(f"{file.name!r} {file.lines} {file.encoding} {file.digest()}".encode())
        return hashed.hexdigest()
