"""`--shard k/n`, `--shards n` and `--dask ADDRESS`: a command's work in parts, on one machine or on several."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from elmokit import __version__
from elmokit.errors import ConfigError
from elmokit.progress import Progress, tracked
from elmokit.shards import Shard, Shards, read_shard
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.config import Tokenization
    from elmokit.elmo import Elmo
    from elmokit.embedder import Layers
    from elmokit.text.corpus import TextCorpus

COMMAND_LINE: ContextVar[Sequence[str]] = ContextVar("COMMAND_LINE")
"""What the user has typed, which workers are told with a shard's number."""
ON_WORKERS = 16  # shards, unless their number is given


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """Whether the work is done in parts, and where."""

    shard: str | None = None
    """Compute one part alone, k/n, into a file in a folder beside the output; a part that is done stays as it is."""
    shards: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None
    """Compute in so many parts, those that are not done yet, and join them; the result is the same for any number. 16
    with --dask unless given."""
    dask: str | None = None
    """The address of a Dask scheduler whose workers compute the parts: tcp://host:8786."""
    retries: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 3
    """How often a part that failed with its worker is given out again."""

    @property
    def count(self) -> int | None:
        """How many parts there are; none where the work is not divided."""
        if self.shard is not None:
            return read_shard(self.shard).total
        return self.shards or (ON_WORKERS if self.dask else None)

    def check(self, *sources: Path) -> None:
        """Refuse standard input, which not every part can read, and workers where Dask is missing."""
        if self.count and any(str(source) == "-" for source in sources):
            raise ConfigError("standard input cannot be divided into shards: save it as a file")
        if self.dask and not self.shard:
            from elmokit.integrations.dask import import_distributed

            import_distributed()

    def compute(self, shards: Shards, write: Callable[[Path, Shard], object], progress: Progress) -> bool:
        """Have the parts that are asked for written, unless they are done; whether they are to be joined now."""
        if self.shard is not None:
            shard = read_shard(self.shard)
            made = shards.make(shard, write)
            said = translate(f"shard {shard} is done" if made else f"shard {shard} was done already")
            print(f"{shards.path(shard)}: {said}")
            return False
        if self.dask:
            from elmokit.integrations.dask import compute_shards

            compute_shards(self.dask, COMMAND_LINE.get(), shards, retries=self.retries, progress=progress)
        for shard in shards.missing():
            shards.make(shard, write)
            progress.message(f"shard {shard} is done")
        return True


def embedded_shards(
    options: ShardOptions,
    output: Path,
    corpus: "TextCorpus",
    elmo: "Elmo",
    progress: Progress,
    *,
    layers: "Layers",
    tokenizer: "Tokenization",
) -> Shards | None:
    """The vectors of a corpus in parts that are to be joined; none if only one was asked for, or none at all."""
    import torch

    from elmokit.vector_shards import embed_corpus, write_shard

    if options.count is None:
        return None

    def write(path: Path, shard: Shard) -> None:
        sentences = tracked(corpus.numbered(shard), progress, f"shard {shard}", unit="sentences")
        write_shard(path, embed_corpus(elmo, sentences, layers))

    texts = [(file.name, file.lines, file.encoding, file.digest()) for file in corpus.files]
    reading = texts, tokenizer, corpus.language, corpus.keep_empty
    computing = elmo.digest, elmo.engine.precision, elmo.device.type, layers
    shards = Shards(output, options.count, (reading, computing, __version__, str(torch.__version__)))
    return shards if options.compute(shards, write, progress) else None
