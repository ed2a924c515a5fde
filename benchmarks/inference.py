#!/usr/bin/env python3
"""Inference speed, alone or against the libraries ELMo came with.

    python benchmarks/inference.py                          elmokit on random models, small and original
    python benchmarks/inference.py --peers                  and AllenNLP and simple-elmo, in turns with it
    python benchmarks/inference.py --text en-sample.txt     sentences from a text of your own

Peers are installed once, in environments of their own under .benchmarks/. A ratio of two figures of one run means
something on any machine; a figure by itself does not.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from contest import Contestant, ratio_row

from elmokit.bench import HEADER, SIZES, make_workload, write_random_model

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".benchmarks"
PEERS = {
    "AllenNLP": ("allennlp", [["torch==2.13.0", "numpy", "h5py"], ["--no-deps", "allennlp==2.10.1"]]),
    "simple-elmo": ("simple_elmo", [["simple-elmo", "tensorflow-cpu", "tf_keras"]]),
}


def main() -> None:
    """Measure, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="*", choices=PEERS, help="measure these too; all of them if none is named")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "original"])
    parser.add_argument("--text", type=Path, help="a UTF-8 text to take sentences from")
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    workload = make_workload(args.text, args.sentences)
    tokens = sum(map(len, workload[0]))
    print(f"{args.sentences} sentences, {tokens:,} tokens, {args.threads} threads, best of {args.rounds}\n")
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "workload.json").write_text(json.dumps(workload), encoding="utf-8")
        for size in args.sizes:
            write_random_model(size, Path(folder, size))
            contest(size, Path(folder), tokens, args)


def contest(size, folder, tokens, args) -> None:
    """All contestants on one model, in turns."""
    files = [str(folder / size), str(folder / "workload.json")]
    with ExitStack() as stack:
        ours = [
            stack.enter_context(contestant(f"elmokit {precision}", "elmokit", [*files, precision], args.threads))
            for precision in ("fp32", "int8")
        ]
        peers = [
            stack.enter_context(contestant(name, PEERS[name][0], files, args.threads, peer_python(name)))
            for name in ([] if args.peers is None else args.peers or PEERS)
        ]
        for number in range(args.rounds):
            for one in (*ours, *peers):
                print(f"{size}: {one.name}, round {number + 1}", file=sys.stderr)
                one.run_once()
        for one in (*ours, *peers):
            print(re.sub("nan( MB|%)?", "", one.figures().row(size, one.name, tokens)))
        for peer in peers:
            for one in ours:
                print(ratio_row(size, one, peer))
        compare_vectors(size, folder, ours, peers)
        sys.stdout.flush()


def compare_vectors(size, folder, ours, peers) -> None:
    """How far the vectors are from those of fp32, the peers' included."""
    files = [folder / f"{number}.npy" for number, _ in enumerate((*ours, *peers))]
    for one, file in zip((*ours, *peers), files, strict=True):
        one.ask(f"vectors {file}")
    reference = np.load(files[0])
    for one, file in zip((*ours[1:], *peers), files[1:], strict=True):
        vectors = np.load(file)
        norms = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(reference, axis=-1)
        cosines = (vectors * reference).sum(axis=-1) / norms  # (L + 1, N)
        difference, lowest = np.abs(vectors - reference).max(), cosines.min()
        by_layer = " ".join(f"{value:.5f}" for value in cosines.mean(axis=1))
        print(f"{size}, {one.name} against fp32: largest difference {difference:.1e}, ", end="")
        print(f"cosine by layer {by_layer}, lowest of a token {lowest:.5f}")


def contestant(name: str, module: str, arguments: list[str], threads: int, python: str = sys.executable) -> Contestant:
    """A runner in the folder peers as a contestant."""
    return Contestant(name, [python, str(HERE / "peers" / f"{module}_runner.py"), *arguments], threads)


def peer_python(name: str) -> str:
    """The interpreter of the peer's own environment, made if it is not there yet."""
    module, installs = PEERS[name]
    environment = ENVIRONMENTS / module
    if not (environment / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        for packages in installs:
            subprocess.run([environment / "bin" / "pip", "install", "--quiet", *packages], check=True)
        (environment / "installed").touch()
    return str(environment / "bin" / "python")


if __name__ == "__main__":
    main()
