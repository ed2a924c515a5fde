#!/usr/bin/env python3
"""The paper's table on data of our own: static vectors against the same with ELMo beside them.

    python benchmarks/tasks.py DATA -o DIR --static glove.safetensors --static skip-gram.safetensors
    python benchmarks/tasks.py DATA -o DIR --static glove.safetensors --study layers ner sst
    python benchmarks/tasks.py DATA -o DIR --static glove.safetensors --study samples pos
    python benchmarks/tasks.py DATA -o DIR --static zh-glove.safetensors --model zh weibo
    python benchmarks/tasks.py DATA -o DIR --tables

DATA holds the folders tagging, classify, pairs, qa, srl, coref and wsd. Each trial (a data set, vectors, a mix, a share
of the data, a seed) leaves a line in trials.jsonl in DIR; a trial that is there is not run again, so that a benchmark
of hours may be stopped at any time. Scores are on the dev part, which also decides when to stop. The layers that a
frozen model gives are kept in DIR too, and shared by trials. What has been measured so far is in tasks.jsonl beside
this script: as DIR/trials.jsonl, --tables prints it.
"""

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import statistics
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

import elmokit
from elmokit.static.embedders import StaticVectors
from elmokit.tasks import train, wsd
from elmokit.tasks.loop import REPORT
from elmokit.tasks.readers import read_inventory

TRIALS = "trials.jsonl"


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A task and where its data is."""

    title: str
    task: str
    train: str
    dev: str
    language: str = "en"
    settings: dict = dataclasses.field(default_factory=dict)
    training: dict = dataclasses.field(default_factory=dict)


SETS = {
    "pos": DataSet(
        "parts of speech, UD-EWT",
        "tagging",
        "tagging/ud-ewt/train.conllu",
        "tagging/ud-ewt/dev.conllu",
        training={"epochs": 6, "patience": 2},
    ),
    "ner": DataSet(
        "entities, WNUT-17", "tagging", "tagging/wnut17/train.conll", "tagging/wnut17/dev.conll",
        training={"epochs": 12, "patience": 4},
    ),
    "books": DataSet(
        "entities, LitBank", "tagging", "tagging/litbank-ner/train.conll", "tagging/litbank-ner/dev.conll",
        training={"epochs": 8, "patience": 3},
    ),
    "weibo": DataSet(
        "entities, Weibo", "tagging", "tagging/weibo-ner/train.conll", "tagging/weibo-ner/dev.conll", "zh",
        training={"epochs": 12, "patience": 4},
    ),
    "sst": DataSet(
        "sentiment, SST-5", "classify", "classify/sst5/train.txt", "classify/sst5/dev.txt",
        training={"epochs": 6, "patience": 2},
    ),
    "sst-attention": DataSet(
        "sentiment, SST-5, biattentive", "classify", "classify/sst5/train.txt", "classify/sst5/dev.txt",
        settings={"attention": True},
        training={"epochs": 6, "patience": 2},
    ),
    "snli": DataSet(
        "entailment, part of SNLI", "pairs", "pairs/snli/train.jsonl", "pairs/snli/dev.jsonl",
        training={"epochs": 8, "patience": 3},
    ),
    "squad": DataSet(
        "answers, SQuADShifts", "span_qa", "qa/squadshifts/train.json", "qa/squadshifts/dev.json",
        training={"epochs": 5, "patience": 3},
    ),
    "srl": DataSet(
        "semantic roles, PropBank EWT", "srl", "srl/ewt/train.conll", "srl/ewt/dev.conll",
        training={"epochs": 2, "patience": 2},
    ),
    "coref": DataSet(
        "coreference, LitBank", "coref", "coref/litbank/train", "coref/litbank/dev",
        training={"epochs": 5, "patience": 3},
    ),
    "wsd": DataSet(
        "senses, SemCor and Raganato's ALL", "wsd", "wsd/semcor.data.xml.xz", "wsd/eval/ALL/ALL.data.xml",
        settings={"senses": "wsd/wordnet30.senses.tsv.xz"},
    ),
    "wsd-prior": DataSet(
        "the same, frequent senses favoured", "wsd", "wsd/semcor.data.xml.xz", "wsd/eval/ALL/ALL.data.xml",
        settings={"senses": "wsd/wordnet30.senses.tsv.xz", "prior": 0.1},  # best of ten on SemEval-2007
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trial:
    """One run of training and measuring."""

    data: str
    vectors: tuple[str, ...]
    """Names of static vectors and models, side by side."""
    mix: str = "learned"
    sample: float = 1.0
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.data}, {' + '.join(self.vectors)}, {self.mix} mix, {self.sample:.0%}, seed {self.seed}"


def main() -> None:
    """Run what has not been run, then print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", choices=[*SETS, []], help=f"of {', '.join(SETS)}; English ones unless named")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("-m", "--model", default="en")
    parser.add_argument("--static", action="append", default=[], help="a file of static vectors; may be repeated")
    parser.add_argument("--study", choices=["gain", "layers", "samples"], default="gain")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time, one thread each")
    parser.add_argument("--tables", action="store_true", help="print what is there, run nothing")
    args = parser.parse_intermixed_args()
    args.static = {Path(path).stem: path for path in args.static}
    args.output.mkdir(parents=True, exist_ok=True)
    if not args.tables:
        run_all(planned(args), args)
    print_tables(args)


def planned(args) -> list[Trial]:
    """The trials of a study, a seed after the other, so that all tables fill up evenly."""
    english = [name for name, chosen in SETS.items() if chosen.language == "en"]
    trials = []
    for seed, name, static in itertools.product(range(args.seeds), args.sets or english, args.static):
        if SETS[name].task == "wsd" and (seed or args.study != "gain"):
            continue  # nothing is random in it, and it takes one layer
        with_elmo = pair(name, static, args)
        samples = args.samples if args.study == "samples" else [1.0]
        for sample in samples:
            trials.append(Trial(data=name, vectors=(static,), sample=sample, seed=seed))
            trials.append(Trial(data=name, vectors=with_elmo, sample=sample, seed=seed))
            if args.study == "layers":
                trials.append(Trial(data=name, vectors=with_elmo, mix="last", sample=sample, seed=seed))
    return list(dict.fromkeys(trials))


def run_all(trials: list[Trial], args) -> None:
    """Run those that have left no line, some at a time."""
    known = {trial for trial, _ in read_trials(args)}
    left = [trial for trial in trials if trial not in known]
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.jobs, context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        runs = {pool.submit(run, trial, args): trial for trial in left}
        for done, future in enumerate(as_completed(runs), 1):
            trial, found = runs[future], future.result()
            with (args.output / TRIALS).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"trial": dataclasses.asdict(trial), **found}) + "\n")
            minutes = (time.perf_counter() - start) / 60
            print(f"{done}/{len(left)}, {minutes:.0f} minutes: {trial}: {mean([found]):.4f}", flush=True)


def read_trials(args) -> list[tuple[Trial, dict]]:
    """What has been run, and what each has found."""
    path = args.output / TRIALS
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return [(Trial(**one["trial"] | {"vectors": tuple(one["trial"]["vectors"])}), one) for one in found]


def run(trial: Trial, args) -> dict:
    """One trial."""
    return run_senses(trial, args) if SETS[trial.data].task == "wsd" else run_task(trial, args)


def run_task(trial: Trial, args) -> dict:
    """Train on the training part, and take the best dev score."""
    chosen = SETS[trial.data]
    paths = [args.static.get(name, name) for name in trial.vectors]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        train(
            chosen.task,
            train=args.data / chosen.train,
            dev=args.data / chosen.dev,
            embedders={path: load(path) for path in paths},
            folder=Path(folder, "task"),
            settings=chosen.settings,
            mix=trial.mix,
            seed=trial.seed,
            cache="float16",
            sample=trial.sample,
            cache_folder=args.output / "layers",
            **chosen.training | (longer(chosen.training, trial.sample) if trial.sample < 1 else {}),
        )
        report = json.loads(Path(folder, "task", REPORT).read_text(encoding="utf-8"))
    best = report["epochs"][report["best"] - 1]
    return {
        "scores": best["scores"],
        "mixes": best["mixes"],
        "epochs": len(report["epochs"]),
        "epoch_seconds": statistics.mean(epoch["seconds"] for epoch in report["epochs"]),
        "seconds": time.perf_counter() - start,
    }


def longer(training: dict, sample: float) -> dict:
    """How a share of the data is learned from: read more often, a hundredth of it ten times, at a steady rate."""
    more = sample**-0.5
    return {"epochs": round(more * training["epochs"]), "patience": round(more * training["patience"]), "anneal": 1.0}


def run_senses(trial: Trial, args) -> dict:
    """Learn all senses in one reading, and measure them."""
    chosen = SETS[trial.data]
    start = time.perf_counter()
    [name] = trial.vectors
    embedder = load(args.static.get(name, name))
    inventory = read_inventory(args.data / chosen.settings["senses"])
    prior = chosen.settings.get("prior", 0)
    learned = wsd.fit(wsd.read(args.data / chosen.train), embedder, inventory, prior=prior)
    scores = learned.evaluate(wsd.read(args.data / chosen.dev))
    return {"scores": scores, "mixes": [], "seconds": time.perf_counter() - start}


def load(name: str):
    """Static vectors from a file, else a model."""
    if Path(name).is_file() and Path(name).name != "model.safetensors":
        return StaticVectors.load(name, lower_case=True)
    return elmokit.load(name)


def print_tables(args) -> None:
    """What all trials have found, in Markdown."""
    found = defaultdict(list)
    for trial, one in read_trials(args):
        found[trial.data, trial.vectors, trial.mix, trial.sample].append(one)
    print_gains(found, args)
    print_layers(found, args)
    print_samples(found, args)


def print_gains(found, args) -> None:
    """The paper's table."""
    print("\n| task | score | static vectors | alone | with ELMo | absolute | error reduction | seeds |")
    print("|---|---|---|---|---|---|---|---|")
    for name, static in itertools.product(SETS, args.static):
        alone = found.get((name, (static,), "learned", 1.0))
        both = found.get((name, pair(name, static, args), "learned", 1.0))
        if not alone or not both:
            continue
        seeds = seeds_of(alone) & seeds_of(both)
        alone, both = ([one for one in some if one["trial"]["seed"] in seeds] for some in (alone, both))
        base, better = mean(alone), mean(both)
        score = next(iter(both[0]["scores"]))
        print(
            f"| {SETS[name].title} | {score} | {static} | {spread(alone)} | {spread(both)} "
            f"| {100 * (better - base):+.1f} | {(better - base) / (1 - base):.1%} | {len(both)} |"
        )


def print_layers(found, args) -> None:
    """The top layer alone against all of them, what the task made of them, and how long it took."""
    print("\n| task | static vectors | top layer | all layers | weights of the layers | γ | seconds an epoch |")
    print("|---|---|---|---|---|---|---|")
    for name, static in itertools.product(SETS, args.static):
        both = found.get((name, pair(name, static, args), "learned", 1.0))
        if not both or not both[0]["mixes"]:
            continue
        last = found.get((name, pair(name, static, args), "last", 1.0))
        mixes = [one["mixes"][0] for one in both]
        weights = [statistics.mean(values) for values in zip(*(mix["weights"] for mix in mixes), strict=True)]
        gamma = statistics.mean(mix["gamma"] for mix in mixes)
        seconds = statistics.mean(one["epoch_seconds"] for one in both)
        print(
            f"| {SETS[name].title} | {static} | {spread(last) if last else ''} | {spread(both)} "
            f"| {' '.join(f'{weight:.2f}' for weight in weights)} | {gamma:.2f} | {seconds:.0f} |"
        )


def print_samples(found, args) -> None:
    """How much labelled data each needs."""
    shares = sorted({sample for _, _, _, sample in found})
    if len(shares) < 2:
        return
    print(f"\n| task | vectors | {' | '.join(f'{share:.0%}' for share in shares)} |\n|---|---|{'---|' * len(shares)}")
    for name, static in itertools.product(SETS, args.static):
        for vectors in ((static,), pair(name, static, args)):
            each = [found.get((name, vectors, "learned", share)) for share in shares]
            if sum(map(bool, each)) > 1:
                scores = " | ".join(spread(one) if one else "" for one in each)
                print(f"| {SETS[name].title} | {' + '.join(vectors)} | {scores} |")


def pair(name: str, static: str, args) -> tuple[str, ...]:
    """The vectors that static ones are measured against."""
    return (args.model,) if SETS[name].task == "wsd" else (static, args.model)


def seeds_of(trials: list) -> set[int]:
    """Those that have been run."""
    return {one["trial"]["seed"] for one in trials}


def mean(trials: list) -> float:
    """Of all seeds' scores that count, the first of each."""
    return statistics.mean(next(iter(one["scores"].values())) for one in trials)


def spread(trials: list) -> str:
    """The mean and the standard deviation over seeds, in percent."""
    each = [100 * mean([one]) for one in trials]
    return f"{statistics.mean(each):.1f}" + (f" ± {statistics.stdev(each):.1f}" if len(each) > 1 else "")


if __name__ == "__main__":
    main()
