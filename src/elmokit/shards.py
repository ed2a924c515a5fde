"""Work in parts: each part makes one file, and together they make the result, the same for any number of parts.

Documents are dealt out like cards, the first to shard 1, the second to shard 2 and so on, so that every machine knows
its own without asking. The name of a shard's file says what it was made from: if it is there, the shard is done.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from elmokit.errors import ConfigError
from elmokit.files import writing

FOLDER = ".shards"  # beside the result, under its name


class Shard(NamedTuple):
    """One of so many parts, numbered from 1."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def takes(self, index: int) -> bool:
        """Whether the document of this index, from 0, is dealt to it."""
        return index % self.total == self.number - 1


WHOLE = Shard(1, 1)


def read_shard(text: str) -> Shard:
    """A shard written as k/n."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
    if not 1 <= shard.number <= shard.total:
        raise ConfigError(f"shard {text!r}: write it as k/n, from 1/n to n/n, such as 2/4")
    return shard


@dataclass(frozen=True)
class Shards:
    """The files of all shards of one result."""

    output: Path
    """Where the result goes in the end."""
    count: int
    made_from: Any
    """All that the result depends on, as JSON values: shards of another text or model have other names."""
    ending: str = ".safetensors"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"{self.count} shards: there must be at least 1")

    def __iter__(self) -> Iterator[Shard]:
        return (Shard(number, self.count) for number in range(1, self.count + 1))

    @property
    def folder(self) -> Path:
        return self.output.with_name(self.output.name + FOLDER)

    def path(self, shard: Shard) -> Path:
        """The file of a shard."""
        digest = blake2b(msgspec.json.encode(self.made_from), digest_size=8).hexdigest()
        return self.folder / f"{shard.number}-of-{shard.total}-{digest}{self.ending}"

    @property
    def paths(self) -> list[Path]:
        return [self.path(shard) for shard in self]

    def missing(self) -> list[Shard]:
        """Those that are not done yet."""
        return [shard for shard in self if not self.path(shard).exists()]

    def make(self, shard: Shard, write: Callable[[Path, Shard], object]) -> bool:
        """Have a shard written, unless it is done already; whether there was anything to do."""
        if self.path(shard).exists():
            return False
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write(self.path(shard), shard)
        return True

    def remove(self) -> None:
        """Remove all shards, those too that others or killed processes have left; nothing else is in their folder."""
        with suppress(OSError):
            if all("-of-" in path.name for path in self.folder.iterdir()):
                shutil.rmtree(self.folder)
