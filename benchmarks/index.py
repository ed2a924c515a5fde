#!/usr/bin/env python3
"""The index of occurrences: how long a million rows take to build and to search, in how much memory, and how exactly.

    python benchmarks/index.py

The vectors are random, with the structure of those of words in context: each is the sum of what its word means (words
as frequent as by Zipf's law), of what the text is about there, and of noise. They go the way of all vectors, through
`build_index`. Building and searching have a process of their own each, whose peak is the one reported. Recall is the
share of the ten truly nearest, by numpy, that are found.
"""

import argparse
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from elmokit.lexicon.corpus import make_corpus
from elmokit.lexicon.index import build_index, open_index
from elmokit.lexicon.index_manifest import ModelId, Reading
from elmokit.lexicon.occurrences import unit_vectors

WORDS, TOPICS, SENTENCE = 20_000, 300, 20
TOPIC, NOISE = 0.7, 0.5  # beside a word's own meaning, of length 1
K = 10
ROUNDING = 1e-6  # of a cosine in float32
READING = Reading(ModelId("random", "0" * 64), "average", "whitespace")


def main() -> None:
    """Build, search, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--queries", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        built = alone(build, path, args.rows, args.width)
        truth = alone(nearest, path, args.queries, args.width)
        found = alone(search, path, args.queries, args.width)
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    hits = np.sum(np.array(found["cosines"]) >= truth.min(axis=1, keepdims=True) - ROUNDING)
    print(f"\n| {args.rows:,} rows, width {args.width} | |\n|---|---|")
    print(f"| build, without making the vectors | {built['seconds']:.0f} s |")
    print(f"| peak memory of building | {built['megabytes']:,.0f} MB |")
    print(f"| on disk | {size / 2**20:,.0f} MB |")
    print(f"| top {K}, median and 95 % of {args.queries} | {spread(found['times'])} |")
    print(f"| the first of them, all caches empty but the system's | {1000 * found['times'][0]:.0f} ms |")
    print(f"| top {K} of the most frequent word, {found['frequent']:,} rows | {spread(found['filtered'])} |")
    print(f"| peak memory of searching | {found['megabytes']:,.0f} MB |")
    print(f"| recall@{K} | {hits / (K * args.queries):.3f} |")


def alone(function, *arguments):
    """What a function returns, run in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Text:
    """Sentences of numbers, made anew at each reading."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words

    def __iter__(self):
        for start in range(0, len(self.words), SENTENCE):
            yield from make_corpus([self.words[start : start + SENTENCE].astype(str).tolist()], document="random.txt")


class RandomWords:
    """An embedder of random vectors for words that are numbers."""

    layer_count = 1

    def __init__(self, width: int, *, seed: int) -> None:
        shared = np.random.default_rng(0)
        self.width, self.random, self.seconds = width, np.random.default_rng(seed), 0.0
        self.words = shared.standard_normal((WORDS, width), dtype=np.float32)
        self.topics = shared.standard_normal((TOPICS, width), dtype=np.float32)

    def draw(self, count: int) -> np.ndarray:
        """Words by Zipf's law."""
        shares = 1 / np.arange(1, WORDS + 1)
        return self.random.choice(WORDS, count, p=shares / shares.sum())

    def embed(self, sentences, *, layers="average"):  # noqa: ARG002
        """A topic a sentence."""
        start = time.perf_counter()
        vectors = [self.vectors([int(word) for word in words]) for words in sentences]
        self.seconds += time.perf_counter() - start
        return vectors

    def vectors(self, words) -> np.ndarray:
        """(words, width)"""
        noise = self.random.standard_normal((len(words), self.width), dtype=np.float32)
        return self.words[words] + TOPIC * self.topics[self.random.integers(TOPICS)] + NOISE * noise


def build(path: Path, rows: int, width: int) -> dict:
    """Write all rows and index them."""
    embedder = RandomWords(width, seed=1)
    text = Text(embedder.draw(rows))
    start = time.perf_counter()
    build_index(text, embedder, path, reading=READING)
    return {"seconds": time.perf_counter() - start - embedder.seconds, "megabytes": peak()}


def queries(count: int, width: int) -> np.ndarray:
    """Words in sentences that are not in the index, at length 1."""
    embedder = RandomWords(width, seed=2)
    return unit_vectors(np.concatenate([embedder.vectors(embedder.draw(1)) for _ in range(count)]))


def nearest(path: Path, count: int, width: int) -> np.ndarray:
    """The highest cosines with the vectors as they are stored, (count, K)."""
    asked, best = queries(count, width), np.empty((count, 0))
    for batch in open_index(path).tables.occurrences.search().select(["vector"]).to_batches():
        vectors = batch["vector"].flatten().to_numpy().reshape(len(batch), -1)[:, :width]
        best = np.sort(np.concatenate([best, asked @ vectors.T], axis=1))[:, -K:]
    return best


def search(path: Path, count: int, width: int) -> dict:
    """What the index finds, and how fast; then the same among the occurrences of the most frequent word."""
    index, asked, cosines, times, filtered = open_index(path), queries(count, width), [], [], []
    for vector in asked:
        start = time.perf_counter()
        found = index.search(vector, k=K)
        times.append(time.perf_counter() - start)
        cosines.append([near.cosine for near in found])
    for vector in asked[:20]:
        start = time.perf_counter()
        index.search(vector, k=K, token="0")
        filtered.append(time.perf_counter() - start)
    frequent = index.tables.values("token")["0"]
    return {"cosines": cosines, "times": times, "filtered": filtered, "frequent": frequent, "megabytes": peak()}


def spread(times) -> str:
    """The median, and what all but one in twenty stay below."""
    return f"{1000 * np.median(times):.0f} ms, {1000 * np.percentile(times, 95):.0f} ms"


def peak() -> float:
    """The most memory that this process has had, in megabytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
