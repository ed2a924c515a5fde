"""Damaged files of every format: models, archives, vectors, states of runs, labelled data."""

import shutil
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import numpy as np
from conftest import BYTES, random_checkpoint
from specimens import ARCHIVES, SPECIMENS
from test_task_readers import READERS
from test_vectors import embedded

from elmokit.checkpoints import read_checkpoint
from elmokit.elmo import Elmo
from elmokit.files import read_state, write_state
from elmokit.static.embedders import StaticVectors
from elmokit.static.files import write_vectors as write_static
from elmokit.text.metadata import read_metadata
from elmokit.vector_shards import JoinedShards, write_shard
from elmokit.vectors import read_vectors, write_vectors
from torture.outcomes import Attempt, Outcomes, isolated, workshop

SENTENCES = [["The", "bank", "of", "the", "river"], ["今天", "天气", "很", "好"]]
MUTANTS_A_PROCESS = 50
RUNS = (1, 1, 2, 8, 64)  # changes to a file: few may go unnoticed, many hardly


def mutated(content: bytes, pick: Random) -> bytes:
    """The content with bits flipped, bytes changed, parts removed, added, moved, or its end missing."""
    changed = bytearray(content)
    for _ in range(pick.choice(RUNS)):
        if not changed:
            break
        here, there, size = pick.randrange(len(changed)), pick.randrange(len(changed)), pick.randrange(1, 64)
        match pick.randrange(6):
            case 0:
                changed[here] ^= 1 << pick.randrange(8)
            case 1:
                changed[here] = pick.choice((0, 127, 128, 255))
            case 2:
                del changed[here : here + size]
            case 3:
                changed[here:here] = pick.randbytes(size)
            case 4:
                changed[here : here + size] = changed[there : there + size]
            case _:
                del changed[here:]
    return bytes(changed)


@cache
def home(name: str, make: Callable[[Path], object]) -> Path:
    """A whole specimen, made once."""
    folder = Path(mkdtemp(dir=workshop())) / "whole"
    make(folder)
    return folder


def attempt(name: str, make: Callable[[Path], object], read: Callable[[Path], str | None]) -> Attempt:
    """Damage one file of a specimen, several times over, and read it."""

    def try_some(pick: Random, folder: Path) -> Outcomes:
        first = home(name, make)
        read(first)  # here, so that each process need not import and compile again what that takes
        copies = [Path(shutil.copytree(first, folder / str(number))) for number in range(MUTANTS_A_PROCESS)]
        for copy in copies:
            file = pick.choice(sorted(path for path in copy.rglob("*") if path.is_file()))
            file.write_bytes(mutated(file.read_bytes(), pick))
        return isolated(*(partial(read, copy) for copy in copies))

    return try_some


def embeds(folder: Path, *, start: str = ".") -> str | None:
    """A model that can be read has vectors that are numbers, or says that it has none."""
    checkpoint = read_checkpoint(folder / start)
    if not all(weight.isfinite().all() for weight in checkpoint.weights.values()):
        return "weights that are no numbers"
    if not all(np.isfinite(vectors).all() for vectors in Elmo(checkpoint).embed(SENTENCES)):
        return "vectors that are no numbers"
    return None


def alone(name: str, write: Callable[[Path], object], read: Callable[[Path], object]) -> Attempt:
    """The same for something that is a single file; all of it is read."""

    def make(folder: Path) -> None:
        folder.mkdir()
        write(folder / name)

    def read_all(folder: Path) -> str | None:
        found = read(folder / name)
        if isinstance(found, Iterator):
            deque(found, maxlen=0)
        return found if isinstance(found, str) else None

    return attempt(name, make, read_all)


def write_some_static(path: Path) -> None:
    write_static(path, ["the", "bank", "天气"], np.random.default_rng(0).random((3, 5), dtype=np.float32))


def write_some_state(path: Path) -> None:
    write_state(path, {"step": 3, "weights": random_checkpoint(BYTES).weights})


def write_some_shard(path: Path) -> None:
    write_shard(path, enumerate(embedded(SENTENCES)))


def join_shard(path: Path) -> str | None:
    finite = all(np.isfinite(one.vectors).all() for one in JoinedShards([path]))
    return None if finite else "vectors that are no numbers"


def study_table(path: Path) -> None:
    read_metadata(path).of("a.txt")


MUTANTS: dict[str, Attempt] = {
    **{name: attempt(name, one.make, partial(embeds, start=one.start)) for name, one in SPECIMENS.items()},
    **{name: alone(path.name, partial(shutil.copy, path), embeds) for name, path in ARCHIVES.items()},
    **{
        f"vectors{ending}": alone(f"v{ending}", lambda path: write_vectors(path, embedded(SENTENCES)), read_vectors)
        for ending in (".h5", ".npz", ".safetensors", ".parquet")
    },
    **{
        f"words{ending}": alone(f"w{ending}", write_some_static, StaticVectors.load)
        for ending in (".txt", ".vec.gz", ".bin", ".safetensors")
    },
    "shard of vectors": alone("1-of-1.safetensors", write_some_shard, join_shard),
    **{
        f"metadata{ending}": alone(f"m{ending}", lambda path, text=text: path.write_text(text, "utf-8"), study_table)
        for ending, text in (
            (".csv", 'document,date,author\na.txt,1850,"Lu, Xun"\nb,1900,鲁迅\n'),
            (".tsv", "document\tdate\na.txt\t1850\nb\t鲁迅\n"),
        )
    },
    "state of a run": alone("training.pt", write_some_state, read_state),
    **{
        name: alone(name, lambda path, content=content: path.write_bytes(content.encode()), read)
        for name, (read, content) in READERS.items()
    },
}


def any_mutant(pick: Random, folder: Path) -> Outcomes:
    """One of the formats."""
    return MUTANTS[pick.choice(sorted(MUTANTS))](pick, folder)
