#!/usr/bin/env python3
"""Pretraining: how fast, and how good after how long.

    python benchmarks/pretraining.py speed TEXT             tokens/s in training, in turns with bilm-tf
    python benchmarks/pretraining.py race TEXT              how long elmokit takes to where bilm-tf is after 15 minutes
    python benchmarks/pretraining.py novel TEXT -o DIR      the novel recipe against a Kneser-Ney 3-gram model
    python benchmarks/pretraining.py compare TEXT           what different models and settings reach in the same time

bilm-tf is the original training code as simple-elmo carries it, installed once in an environment of its own under
.benchmarks/. A ratio of two figures of one run means something on any machine; a figure by itself does not.
"""

import argparse
import copy
import json
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import torch
from contest import Contestant
from inference import HERE, peer_python
from kneser_ney import perplexity_of

from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.cli.progress import watched
from elmokit.elmo import Elmo, load
from elmokit.lexicon.neighbors import word_neighbors
from elmokit.lexicon.occurrences import type_vectors
from elmokit.model.language_model import LanguageModel
from elmokit.pretrain.corpus import prepare, read_corpus
from elmokit.pretrain.evaluation import perplexity, sentences_of
from elmokit.pretrain.recipe import make_recipe, read_recipe, set_value
from elmokit.pretrain.run import CORPUS, pretrain
from elmokit.pretrain.trainer import Trainer, model_config
from elmokit.text.corpus import open_corpus

FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]]
MODEL = {"hidden": 512, "projection": 128, "forget_bias": 1.0}
BATCH, UNROLL, SAMPLES, DROPOUT = 128, 20, 2048, 0.1
VALID_SHARE = 0.05
SAME = {  # as bilm-tf is told below
    "model": MODEL
    | {"characters": {"filters": FILTERS, "highways": 1}, "softmax": {"kind": "sampled", "samples": SAMPLES}},
    "training": {
        "batch": BATCH,
        "unroll": UNROLL,
        "dropout": DROPOUT,
        "reset": "never",
        "optimizer": "adagrad",
        "learning_rate": 0.2,
        "warmup": 0,
        "decay": "none",
        "gradient_scale": UNROLL,
    },
}
BEST = {  # what we think best
    "model": MODEL | {"characters": {"filters": FILTERS, "highways": 1}, "softmax": {"kind": "adaptive"}},
    "training": {"batch": 64, "unroll": UNROLL, "learning_rate": 0.004, "warmup": 50, "decay": "none"},
}
SLICE = 30  # seconds of processor time that each setting has before it is the next one's turn
CHOICES = {  # each differs in one thing from the first
    "512/128, bytes, adaptive softmax, Adam, 64 × 20": {},
    "768/192": {"model.hidden": 768, "model.projection": 192},
    "1024/128": {"model.hidden": 1024},
    "Unicode characters": {"model.characters.alphabet": "unicode"},
    "words": {"model.characters": None, "model.words": {"dim": 128}},
    "sampled softmax, 2,048 words": {"model.softmax": {"kind": "sampled", "samples": 2048}},
    "Adagrad as bilm-tf": {
        "training.optimizer": "adagrad",
        "training.learning_rate": 0.2,
        "training.gradient_scale": 20,
    },
    "32 × 40": {"training.batch": 32, "training.unroll": 40},
    "128 × 20": {"training.batch": 128},
}


def main() -> None:
    """Measure, and print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (speed, race, novel, compare):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.add_argument("text", type=Path)
        command.add_argument("--threads", type=int, default=2)
        command.set_defaults(function=function)
    commands.choices["speed"].add_argument("--rounds", type=int, default=5)
    commands.choices["race"].add_argument("--minutes", type=float, default=15)
    commands.choices["novel"].add_argument("-o", "--output", type=Path, required=True)
    commands.choices["compare"].add_argument("--minutes", type=float, default=6, help="of processor time, each")
    commands.choices["compare"].add_argument("--vocab-size", type=int, default=30_000)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.function(args)


def speed(args) -> None:
    """Tokens/s with the same settings, in turns."""
    with contest(args) as (corpus, peer):
        ours = trainer(SAME, corpus)
        ours.advance()
        best = {"bilm-tf": 0.0, "elmokit": 0.0}
        for number in range(args.rounds):
            answer = peer.ask("train 15")
            rates = {"bilm-tf": answer["steps"] / answer["seconds"], "elmokit": 1 / seconds_a_step(ours, 15)}
            best = {name: max(rate, BATCH * UNROLL * rates[name]) for name, rate in best.items()}
            print(f"round {number + 1}: {best}", file=sys.stderr)
        print(f"\n| 512/128, {len(corpus.vocabulary):,} words, {SAMPLES:,} sampled | tokens/s |\n|---|---|")
        for name, rate in best.items():
            print(f"| {name} | {rate:,.0f} |")
        print(f"| ratio | {best['elmokit'] / best['bilm-tf']:.1f} × |")


def race(args) -> None:
    """Time to the held-out perplexity that bilm-tf has after so many minutes; measuring does not count as time."""
    with contest(args) as (corpus, peer):
        took = peer.ask(f"train {60 * args.minutes}")
        goal = peer.ask("perplexity")["perplexity"]
        print(f"bilm-tf: {goal:.1f} after {took['seconds']:.0f} s and {took['steps']:,} steps", flush=True)
        ours, seconds, reached = trainer(BEST, corpus), 0.0, float("inf")
        while reached > goal and seconds < 60 * args.minutes:
            start = time.perf_counter()
            while time.perf_counter() - start < 10:
                ours.advance()
            seconds += time.perf_counter() - start
            reached = held_out(ours, corpus).average
            print(f"elmokit: {reached:.1f} after {seconds:.0f} s and {ours.step:,} steps", flush=True)
        print(f"1/{took['seconds'] / seconds:.0f} of the time")


def novel(args) -> None:
    """A book by the novel recipe: perplexity, a 3-gram model's, and neighbours of names."""
    values = read_recipe("novel")
    set_value(values, "model.tokenizer", "jieba")
    start = time.perf_counter()
    with watched(args.text.name) as progress:
        found = pretrain([args.text], args.output, values, progress=progress)
    minutes = (time.perf_counter() - start) / 60
    settings = make_recipe(values).corpus
    corpus = read_corpus(args.output / CORPUS, vocab_size=settings.vocab_size, min_count=settings.min_count)
    grams = perplexity_of(corpus, order=3)
    print(f"\n{minutes:.1f} minutes; {len(corpus.vocabulary):,} words, {corpus.valid.oov_rate:.1%} of tokens <UNK>\n")
    print("| held-out perplexity | forward | backward | average |\n|---|---|---|---|")
    for name, one in (("Kneser-Ney 3-gram", grams), ("elmokit", found)):
        print(f"| {name} | {one.forward:.1f} | {one.backward:.1f} | {one.average:.1f} |")
    elmo = load(args.output)
    types = type_vectors(open_corpus([args.text], elmo.tokenizer), elmo, min_count=20)
    for word in ("宝玉", "黛玉", "丫头", "吃"):
        print(word, " ".join(f"{other} {cosine:.2f}" for other, cosine in word_neighbors(word, types)))


def compare(args) -> None:
    """Held-out perplexity of one choice and another after the same processor time, each in turn."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare([args.text], Path(folder), valid_share=0.01, vocab_size=args.vocab_size)
        trainers = {name: trainer(varied(BEST, changes), corpus) for name, changes in CHOICES.items()}
        rounds = round(60 * args.minutes / SLICE)
        curves = {name: [] for name in trainers}
        for number in range(1, rounds + 1):
            for name, one in trainers.items():
                start = time.process_time()
                while time.process_time() - start < SLICE:
                    one.advance()
                if number % max(1, rounds // 4) == 0:
                    curves[name].append(held_out(one, corpus, tokens=50_000).average)
            print({name: curve[-1:] for name, curve in curves.items()}, file=sys.stderr, flush=True)
        print(f"\n{len(corpus.vocabulary):,} words, {corpus.valid.oov_rate:.1%} of held-out tokens <UNK>\n")
        print("| | million weights | tokens | perplexity after 1/4, 1/2, 3/4, all of the time |\n|---|---|---|---|")
        for name, one in trainers.items():
            size = sum(weight.numel() for weight in one.model.parameters()) / 1e6
            print(f"| {name} | {size:.1f} | {one.tokens:,} | {', '.join(f'{value:.0f}' for value in curves[name])} |")


def varied(values, changes):
    """The recipe with some of its values changed, each named by its path."""
    values = copy.deepcopy(values)
    for path, value in changes.items():
        *groups, last = path.split(".")
        place = values
        for group in groups:
            place = place[group]
        place[last] = value
    return values


@contextmanager
def contest(args):
    """The text tokenized once, its held-out part the same for both, and bilm-tf ready to train on it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = prepare([args.text], folder / "corpus", valid_share=VALID_SHARE)
        write_for_bilm(corpus, folder)
        command = [peer_python("simple-elmo"), str(HERE / "peers" / "bilm_training_runner.py"), str(folder)]
        with Contestant("bilm-tf", command, threads=args.threads) as peer:
            yield corpus, peer


def write_for_bilm(corpus, folder: Path) -> None:
    """The same text, vocabulary and settings in the files bilm-tf reads."""
    for name, part in (("train", corpus.train), ("heldout", corpus.valid)):
        lines = (" ".join(sentence) for sentence in sentences_of(part.ids, corpus.words))
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(corpus.vocabulary.words) + "\n", encoding="utf-8")
    lstm = {"dim": 512, "projection_dim": 128, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
    characters = {"activation": "relu", "embedding": {"dim": 16}, "filters": FILTERS, "n_highway": 1}
    options = {
        "bidirectional": True,
        "lstm": lstm | {"use_skip_connections": True},
        "char_cnn": characters | {"n_characters": 261, "max_characters_per_token": 50},
        "batch_size": BATCH,
        "unroll_steps": UNROLL,
        "n_negative_samples_batch": SAMPLES,
        "dropout": DROPOUT,
        "all_clip_norm_val": 10.0,
        "n_tokens_vocab": len(corpus.vocabulary),
        "n_train_tokens": corpus.train.tokens,
        "n_epochs": 1000,
    }
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")


def trainer(values, corpus) -> Trainer:
    """elmokit ready to train."""
    recipe = make_recipe(values)
    torch.manual_seed(0)
    return Trainer(LanguageModel(model_config(recipe, corpus)), recipe, corpus)


def seconds_a_step(ours: Trainer, seconds: float) -> float:
    """Mean over about so long."""
    start, first = time.perf_counter(), ours.step
    while time.perf_counter() - start < seconds:
        ours.advance()
    return (time.perf_counter() - start) / (ours.step - first)


def held_out(ours: Trainer, corpus, *, tokens: int | None = None):
    """Exact, each sentence from a zero state."""
    weights = {name: weight.detach() for name, weight in ours.model.weights().items()}
    elmo = Elmo(Checkpoint(ours.model.config, weights, corpus.vocabulary, "elmokit"))
    return perplexity(elmo, sentences_of(corpus.valid.ids, corpus.words, tokens=tokens))


if __name__ == "__main__":
    main()
