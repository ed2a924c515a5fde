#!/usr/bin/env python3
"""Pretraining: how fast, and how good after how long.

    python benchmarks/pretraining.py speed TEXT             tokens/s in training, in turns with bilm-tf
    python benchmarks/pretraining.py race TEXT              how long elmokit takes to where bilm-tf is after 15 minutes
    python benchmarks/pretraining.py novel TEXT -o DIR      the novel recipe against a Kneser-Ney 3-gram model
    python benchmarks/pretraining.py compare TEXT -o CURVES what different models and settings reach in the same time

`compare` changes a recipe by choices of your own, `--choice "Muon: training.optimizer=muon"`, or by those below. Each
has the same processor time, in turns, and its rate falls as its time runs out. Other work on the machine makes a step
longer, by half or more: a step counts as the 20th percentile of all steps so far. CURVES gets a line of JSON for each
measurement.

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

import numpy as np
import torch
from contest import Contestant
from inference import HERE, peer_python
from kneser_ney import perplexity_of

from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.elmo import Elmo, load
from elmokit.lexicon.neighbors import word_neighbors
from elmokit.lexicon.occurrences import type_vectors
from elmokit.model.language_model import LanguageModel
from elmokit.pretrain.corpus import prepare, read_corpus
from elmokit.pretrain.evaluation import perplexity, sentences_of
from elmokit.pretrain.recipe import make_recipe, read_recipe, set_value
from elmokit.pretrain.run import CORPUS, pretrain
from elmokit.pretrain.trainer import Trainer, model_config
from elmokit.progress.drawing import watched
from elmokit.text.corpus import open_corpus
from elmokit.text.tokenizers import get_tokenizer

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
CHOICES = [  # each differs in one thing from the recipe
    "the recipe:",
    "768/192: model.hidden=768 model.projection=192",
    "1024/128: model.hidden=1024",
    "Unicode characters: model.characters.alphabet=unicode",
    "words: model.characters=none model.words.dim=128",
    "words and characters: model.words.dim=128",
    "sampled softmax, 2,048 words: model.softmax.kind=sampled model.softmax.samples=2048",
    "Adagrad as bilm-tf: training.optimizer=adagrad training.learning_rate=0.2 training.gradient_scale=20",
    "Muon: training.optimizer=muon",
    "32 × 40: training.batch=32 training.unroll=40",
    "128 × 20: training.batch=128",
    "rate 0.008: training.learning_rate=0.008",
    "no dropout: training.dropout=0.0",
    "16 bits: training.autocast=bf16",
]


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
    compared = commands.choices["compare"]
    compared.add_argument(
        "-o", "--output", type=Path, required=True, help="a file of JSON lines, added to if it is there"
    )
    compared.add_argument("--minutes", type=float, default=6, help="of processor time, each")
    compared.add_argument("--points", type=int, default=4, help="measurements, the last at the end")
    compared.add_argument("--recipe", default="en")
    compared.add_argument("--vocab-size", type=int, default=30_000)
    compared.add_argument("--choice", action="append", help="NAME: SETTING=VALUE ..., instead of those above")
    compared.add_argument("--heldout", type=Path, action="append", default=[], help="measured each by itself")
    compared.add_argument("--tokens", type=int, default=50_000, help="measured of each held-out text")
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
    base = read_recipe(args.recipe)
    with tempfile.TemporaryDirectory() as folder:
        name = base["model"].get("tokenizer", "words")
        corpus = prepare([args.text], Path(folder), valid_share=0.01, vocab_size=args.vocab_size, tokenizer=name)
        texts = {"text": sentences_of(corpus.valid.ids, corpus.words, tokens=args.tokens)}
        for path in args.heldout:
            texts[path.name] = (context.words for context in open_corpus([path], get_tokenizer(name)))
        texts = {name: list(first_tokens(sentences, args.tokens)) for name, sentences in texts.items()}
        runs = [Budgeted(choice, base, corpus, 60 * args.minutes) for choice in args.choice or CHOICES]
        for number in range(1, args.points + 1):
            while any(run.used < number / args.points * run.budget for run in runs):
                for run in runs:
                    run.advance(min(run.used + SLICE, number / args.points * run.budget))
            with args.output.open("a", encoding="utf-8") as curves:
                for run in runs:
                    curves.write(json.dumps(run.measure(corpus, texts)) + "\n")
        print(f"\n{len(corpus.vocabulary):,} words, {corpus.valid.oov_rate:.1%} of held-out tokens <UNK>\n")
        print(f"| | million weights | tokens | tokens/s | perplexity: {', '.join(texts)} |\n|---|---|---|---|---|")
        for run in runs:
            found = ", ".join(f"{value:.1f}" for value in run.last["perplexity"].values())
            row = f"{run.last['weights'] / 1e6:.1f} | {run.last['tokens']:,} | {run.last['tokens'] / run.used:,.0f}"
            print(f"| {run.name} | {row} | {found} |")


class Budgeted:
    """Training that ends when its processor time is used."""

    def __init__(self, choice: str, base, corpus, budget: float) -> None:
        self.name, _, settings = choice.partition(":")
        values = copy.deepcopy(base)
        for setting in settings.split():
            path, _, text = setting.partition("=")
            if text == "none":
                group, _, last = path.rpartition(".")
                values[group][last] = None
            else:
                set_value(values, path, text)
        self.trainer, self.budget, self.taken, self.used = trainer(values, corpus), budget, [], 0.0

    def advance(self, until: float) -> None:
        """Train until so many seconds are used; the schedule expects as many steps as the budget will do."""
        while self.used < until:
            start = time.process_time()
            self.trainer.advance()
            self.taken.append(time.process_time() - start)
            self.used = float(np.percentile(self.taken[1:] or self.taken, 20)) * len(self.taken)
            self.trainer.total_steps = round(self.trainer.step * max(1.0, self.budget / self.used))

    def measure(self, corpus, texts) -> dict:
        """Where it stands, exact; measuring does not count as time."""
        elmo = model_so_far(self.trainer, corpus)
        found = {name: round(perplexity(elmo, sentences).average, 2) for name, sentences in texts.items()}
        weights = sum(weight.numel() for weight in self.trainer.model.parameters())
        times = {"seconds": round(self.used, 1), "seconds_really": round(sum(self.taken), 1)}
        place = {"step": self.trainer.step, "tokens": self.trainer.tokens, "weights": weights}
        self.last = {"name": self.name, **times, **place, "perplexity": found}
        print(self.last, file=sys.stderr, flush=True)
        return self.last


def first_tokens(sentences, tokens: int):
    """The first sentences, about so many tokens."""
    seen = 0
    for sentence in sentences:
        if seen >= tokens:
            return
        seen += len(sentence)
        yield sentence


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


def held_out(ours: Trainer, corpus):
    """Exact, each sentence from a zero state."""
    return perplexity(model_so_far(ours, corpus), sentences_of(corpus.valid.ids, corpus.words))


def model_so_far(ours: Trainer, corpus) -> Elmo:
    """What has been learned."""
    weights = {name: weight.detach() for name, weight in ours.model.weights().items()}
    return Elmo(Checkpoint(ours.model.config, weights, corpus.vocabulary, "elmokit"))


if __name__ == "__main__":
    main()
