#!/usr/bin/env python3
"""The index of occurrences: how long a million rows take to build and to search, in how much memory, and how exactly.

    python benchmarks/index.py zh-*.txt --model my-model

Every fiftieth sentence is kept out of the index, and what is sought are words drawn from these, alike from all parts of
the text. Building and searching have a process of their own each, whose peak is the one reported. Recall is the share
of the ten truly nearest, by numpy over all vectors, that are found.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from elmokit.elmo import load
from elmokit.lexicon.index import build_index, identify, open_index
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.text.corpus import Context, open_corpus

K, KEPT_OUT, FILTERED = 10, 50, 50
ROUNDING = 1e-6  # of a cosine in float32


def main() -> None:
    """Build, search, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, nargs="+", help="files or folders of text")
    parser.add_argument("--model", required=True, help="a model's folder or file")
    parser.add_argument("--layer", type=lambda name: int(name) if name.isdecimal() else name, default="average")
    parser.add_argument("--rows", type=int, default=1_000_000, help="occurrences indexed, to the end of a sentence")
    parser.add_argument("--queries", type=int, default=500)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        built = alone(build, path, args)
        asked = alone(queries, args)
        truth = alone(nearest, path, asked)
        found = alone(search, path, asked)
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    hits = np.sum(found["cosines"] >= truth.min(axis=1, keepdims=True) - ROUNDING)
    print(f"\n| {built['rows']:,} rows, width {asked.shape[1]}, layer {args.layer} | |\n|---|---|")
    print(f"| build, embedding apart | {built['seconds']:.0f} s |")
    print(f"| peak memory of building, the model in it | {built['megabytes']:,.0f} MB |")
    print(f"| on disk | {size / 2**20:,.0f} MB |")
    print(f"| top {K}: median, 95 %, longest of {len(asked)} | {spread(found['times'])} |")
    for name, times in found["filtered"].items():
        print(f"| top {K} {name} | {spread(times)} |")
    print(f"| peak memory of searching | {found['megabytes']:,.0f} MB |")
    print(f"| recall@{K} | {hits / truth.size:.3f} |")


def alone(function, *arguments):
    """What a function returns, run in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Kept:
    """The sentences that are indexed, read anew each time."""

    def __init__(self, corpus, rows: int) -> None:
        self.corpus, self.rows = corpus, rows

    def __iter__(self) -> Iterator[Context]:
        left = self.rows
        for number, context in enumerate(self.corpus):
            if left <= 0:
                return
            if number % KEPT_OUT:
                left -= len(context.tokens)
                yield context


class Timed:
    """An embedder with a watch."""

    def __init__(self, elmo) -> None:
        self.elmo, self.width, self.layer_count, self.seconds = elmo, elmo.width, elmo.layer_count, 0.0

    def embed(self, sentences, *, layers="average"):
        """What the model embeds."""
        start = time.perf_counter()
        vectors = self.elmo.embed(sentences, layers=layers)
        self.seconds += time.perf_counter() - start
        return vectors


def build(path: Path, args) -> dict:
    """Write all rows and index them."""
    elmo = load(args.model)
    known = {"model": identify(elmo, args.model), "tokenizer": elmo.config.tokenizer}
    embedder, text = Timed(elmo), Kept(open_corpus(args.text, elmo.tokenizer), args.rows)
    start = time.perf_counter()
    manifest = build_index(text, embedder, path, layers=args.layer, **known)
    seconds = time.perf_counter() - start - embedder.seconds
    return {"rows": manifest.rows, "seconds": seconds, "megabytes": peak()}


def queries(args) -> np.ndarray:
    """Words of the sentences that are not in the index, at length 1, (queries, D)."""
    elmo = load(args.model)
    contexts = list(open_corpus(args.text, elmo.tokenizer))[::KEPT_OUT]
    words = [(number, position) for number, context in enumerate(contexts) for position in range(len(context.tokens))]
    drawn = np.random.default_rng(0).choice(len(words), args.queries, replace=False)
    vectors = elmo.embed([context.words for context in contexts], layers=args.layer)
    return unit_vectors(np.stack([vectors[number][position] for number, position in (words[one] for one in drawn)]))


def nearest(path: Path, asked: np.ndarray) -> np.ndarray:
    """The highest cosines with the vectors as they are stored, (queries, K)."""
    best = np.empty((len(asked), 0), np.float32)
    for batch in open_index(path).tables.occurrences.search().select(["vector"]).to_batches():
        vectors = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)[:, : asked.shape[1]]
        best = np.partition(np.concatenate([best, asked @ vectors.T], axis=1), -K)[:, -K:]
    return best


def search(path: Path, asked: np.ndarray) -> dict:
    """What the index finds, and how fast; then the same among the occurrences of one word, and in one document."""
    index = open_index(path)
    cosines, times = zip(*(timed(index, vector) for vector in asked), strict=True)
    (frequent, many), *_, (rare, few) = [one for one in index.tables.values("token").most_common() if one[1] >= K]
    [(document, most)] = index.tables.values("document").most_common(1)
    filters = {
        f"of the most frequent word ({many:,})": {"token": frequent},
        f"of a rare word ({few})": {"token": rare},
        f"in the longest document ({most:,})": {"document": document},
    }
    filtered = {
        name: [timed(index, vector, **wanted)[1] for vector in asked[:FILTERED]] for name, wanted in filters.items()
    }
    return {"cosines": np.array(cosines), "times": times, "filtered": filtered, "megabytes": peak()}


def timed(index, vector, **wanted) -> tuple[list[float], float]:
    """The cosines found, and the seconds that it took."""
    start = time.perf_counter()
    found = index.search(vector, k=K, **wanted)
    return [near.cosine for near in found], time.perf_counter() - start


def spread(times) -> str:
    """The median, what all but one in twenty stay below, and the longest."""
    return ", ".join(f"{1000 * np.percentile(times, share):.0f} ms" for share in (50, 95, 100))


def peak() -> float:
    """The most memory that this process has had, in megabytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
