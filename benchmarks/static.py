#!/usr/bin/env python3
"""GloVe's speed against gensim's skip-gram and its loss against the plain algorithm; how fast vectors load.

    python benchmarks/static.py speed en-fiction.txt.xz      one epoch of each in turns, GloVe's counting included
    python benchmarks/static.py load                         400,000 vectors of width 300 from text, plain and packed

A ratio of two figures of one run means something on any machine; a figure by itself does not. What is compiled once a
process is compiled before the clock starts, and said by itself.
"""

import argparse
import gzip
import lzma
import math
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from elmokit.static.cooccurrence import count_cooccurrences
from elmokit.static.corpus import read_text
from elmokit.static.embedders import StaticVectors
from elmokit.static.glove import Glove
from elmokit.static.settings import GloveSettings, TextSettings


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    speed = commands.add_parser("speed")
    speed.add_argument("text", type=Path, help="a UTF-8 text, plain or .xz")
    speed.add_argument("--megabytes", type=float, default=40.4)
    speed.add_argument("--rounds", type=int, default=2)
    speed.add_argument("--threads", type=int, default=2)
    speed.add_argument("--dimensions", type=int, default=100)
    speed.add_argument("--losses", type=int, default=3, help="epochs to compare with the plain algorithm's; 0 for none")
    speed.set_defaults(run=measure_speed)
    load = commands.add_parser("load")
    load.add_argument("--words", type=int, default=400_000)
    load.add_argument("--width", type=int, default=300)
    load.set_defaults(run=measure_load)
    args = parser.parse_args()
    args.run(args)


def measure_speed(args) -> None:
    """One epoch of gensim and of ours in turns, then the losses."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = prepare(args, folder)
        sentences = list(text.sentences())
        (folder / "lines.txt").write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
        settings = GloveSettings(dimensions=args.dimensions, x_max=10, threads=args.threads)
        print(f"compiled in {timed(lambda: compile_kernels(folder, settings)):.1f} s")
        contestants = {
            "gensim, lists of words": lambda: skip_gram(text, args, corpus_iterable=sentences),
            "gensim, corpus_file": lambda: skip_gram(text, args, corpus_file=str(folder / "lines.txt")),
            "GloVe": lambda: glove_epoch(text, settings),
        }
        figures = {name: [] for name in contestants}
        for _ in range(args.rounds):
            for name, run in contestants.items():
                figures[name].append(run())
                print(f"{name}: {figures[name][-1]:.2f} s", file=sys.stderr, flush=True)
        ours = min(figures["GloVe"])
        for name, seconds in figures.items():
            print(f"{name}: {min(seconds):.2f} s, GloVe takes {ours / min(seconds):.2f} of it")
        if args.losses:
            compare_losses(text, settings, args.losses)


def prepare(args, folder: Path):
    """The first megabytes of the text, tokenized and lower-cased."""
    with (lzma.open if args.text.suffix == ".xz" else open)(args.text, "rb") as file:
        (folder / "text.txt").write_bytes(file.read(int(args.megabytes * 1e6)).rpartition(b"\n")[0])
    text = read_text([folder / "text.txt"], folder, TextSettings(lower_case=True))
    print(f"{text.tokens:,} tokens, {len(text.words):,} words, {args.threads} threads, {args.dimensions} dimensions")
    return text


def timed(work) -> float:
    """Seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def skip_gram(text, args, **source) -> float:
    """Seconds of one epoch, without building the vocabulary."""
    from gensim.models import Word2Vec

    options = {"vector_size": args.dimensions, "window": 5, "negative": 5, "sg": 1, "min_count": 1}
    model = Word2Vec(workers=args.threads, epochs=1, **options)
    model.build_vocab_from_freq(dict(zip(text.words, text.counts.tolist(), strict=True)))
    totals = {"total_examples": int((text.ids < 0).sum()), "total_words": text.tokens}
    return timed(lambda: model.train(epochs=1, **source, **totals))


def glove_epoch(text, settings: GloveSettings) -> float:
    """Seconds to count and to train one epoch."""
    return timed(lambda: Glove(count_cooccurrences(text, settings), settings).train())


def compile_kernels(folder: Path, settings: GloveSettings) -> None:
    """Count and train on next to nothing, with so little memory that every kernel runs."""
    (folder / "small.txt").write_text("one two three four five\n" * 50)
    (folder / "small").mkdir()
    text = read_text([folder / "small.txt"], folder / "small", TextSettings())
    Glove(count_cooccurrences(text, replace(settings, memory_mb=0.001)), settings).train()


def compare_losses(text, settings: GloveSettings, epochs: int) -> None:
    """J after each epoch: ours, and that of the plain algorithm."""
    import numba

    glove = Glove(count_cooccurrences(text, settings), settings)
    records = np.concatenate(glove.cooccurrences.parts)
    mirrored = records[records["row"] != records["column"]]
    mirrored["row"], mirrored["column"] = mirrored["column"].copy(), mirrored["row"].copy()
    records = np.concatenate([records, mirrored])
    records = records[np.random.default_rng(2).permutation(len(records))]
    weights = glove.state[:, :, 0].astype(np.float64)
    squares = np.ones_like(weights)
    plain = numba.njit(plain_epoch)
    columns = (records["row"].copy(), records["column"].copy(), records["count"].astype(np.float64))
    for _ in range(epochs):
        ours = glove.train()
        plain(*columns, weights, squares, settings.x_max, settings.alpha, settings.learning_rate)
        theirs = Glove(glove.cooccurrences, settings)
        theirs.state[:, :, 0] = weights
        loss = theirs.loss()
        print(f"epoch {ours.number}: J {ours.loss:,.0f}, of the plain algorithm {loss:,.0f}: {ours.loss / loss:.4f}")


def plain_epoch(rows, columns, counts, weights, squares, x_max, alpha, rate) -> None:
    """AdaGrad in double precision, one pair after another in random order, in one thread."""
    width = weights.shape[2]
    for n in range(len(rows)):
        v, u = weights[0, rows[n]], weights[1, columns[n]]
        v_squares, u_squares = squares[0, rows[n]], squares[1, columns[n]]
        difference = v[width - 1] + u[width - 1] - math.log(counts[n])
        for d in range(width - 1):
            difference += v[d] * u[d]
        step = rate * difference * min(1.0, (counts[n] / x_max) ** alpha)
        for d in range(width):
            to_v, to_u = (step * u[d], step * v[d]) if d < width - 1 else (step, step)
            v[d] -= to_v / math.sqrt(v_squares[d])
            u[d] -= to_u / math.sqrt(u_squares[d])
            v_squares[d] += to_v**2
            u_squares[d] += to_u**2


def measure_load(args) -> None:
    """Write random vectors as text, plain and packed, and load them."""
    vectors = np.random.default_rng(0).standard_normal((args.words, args.width), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path, packed = Path(folder, "vectors.txt"), Path(folder, "vectors.txt.gz")
        with path.open("w") as file:  # five digits after the point, as GloVe's files have
            for number, vector in enumerate(vectors):
                file.write(f"word{number} {' '.join(f'{value:.5f}' for value in vector.tolist())}\n")
        with path.open("rb") as file, gzip.open(packed, "wb", compresslevel=1) as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        for each in (path, packed):
            size = each.stat().st_size / 1e6
            seconds = timed(lambda each=each: StaticVectors.load(each))
            print(f"{args.words:,} × {args.width}, {each.name}, {size:,.0f} MB: loaded in {seconds:.1f} s")


if __name__ == "__main__":
    main()
