#!/usr/bin/env python3
"""What each layer of a model knows, for its card: syntax, senses, words in context, by themselves, substitutes.

    python benchmarks/evaluation.py en en DATA --text en-fiction.txt.xz --static glove.safetensors
    python benchmarks/evaluation.py zh zh DATA --text zh-modern.txt.xz --text zh-sanguo.txt --static glove.safetensors

The first name is the model's, the second the language's; --parts names the tables to make. DATA holds the folders
tagging, similarity, wsd and lexsub. Words by themselves: a model's vector of a word is the mean over at most 20 of
its occurrences in the text, as it is and less the mean of all these words; static vectors of the same corpus are
measured on the same pairs, those whose words both have a vector everywhere.
"""

import argparse
import re
import statistics
import tempfile
from collections import defaultdict
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

import elmokit
from elmokit.lexicon import substitutes, survey, type_vectors
from elmokit.lexicon.neighbors import centered
from elmokit.pretrain.cloze import cloze_scores
from elmokit.pretrain.evaluation import mean_prediction
from elmokit.static.embedders import StaticVectors
from elmokit.static.evaluation import Dataset, evaluate, evaluate_in_context, read_dataset
from elmokit.static.files import read_vectors
from elmokit.tasks import FitOptions, FitSettings, fit, read, wsd
from elmokit.tasks.readers import read_inventory
from elmokit.text.brackets import BracketedWord
from elmokit.text.corpus import make_corpus, open_corpus
from elmokit.text.inputs import in_chunks

PARTS = ["layers", "similarity", "substitutes", "cloze"]
TAGS = {
    "en": ("parts of speech, UD-EWT dev", "tagging/ud-ewt/train.conllu", "tagging/ud-ewt/dev.conllu"),
    "zh": ("entities, Weibo dev", "tagging/weibo-ner/train.conll", "tagging/weibo-ner/dev.conll"),
}
POS = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}
SIMILARITY = {
    "en": ("EN-MEN-TR-3k.txt", "EN-WS-353-ALL.txt", "EN-SIMLEX-999.txt", "EN-SimVerb-3500.txt"),
    "zh": ("zh-240.txt", "zh-297.txt"),
}


def main() -> None:
    """Print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("language", choices=["en", "zh"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--text", type=Path, action="append", default=[], help="where words are found in contexts")
    parser.add_argument("--static", type=Path, action="append", default=[])
    parser.add_argument("--occurrences", type=int, default=20, help="of a word, whose mean is its vector")
    parser.add_argument("--heldout", type=Path, action="append", default=[], help="whose words are put in gaps")
    parser.add_argument("--gaps", type=int, default=20_000, help="of each held-out text, about")
    parser.add_argument("--lexsub", nargs="+", choices=["trial", "test"], default=["trial", "test"])
    args = parser.parse_args()
    if "similarity" in args.parts and not args.text:
        parser.error("similarity needs a --text where words are found in contexts")
    elmo = elmokit.load(args.model)
    if "layers" in args.parts:
        print_layers(elmo, args)
    if "similarity" in args.parts:
        print_similarity(elmo, args)
    if "substitutes" in args.parts and args.language == "en":
        print_substitutes(elmo, args)
    if "cloze" in args.parts:
        print_cloze(elmo, args)


def print_layers(elmo, args) -> None:
    """Syntax, senses and words in context, of every layer."""
    layers = [f"layer {number}" for number in range(elmo.layer_count)]
    print(f"| | {' | '.join(layers)} | average |\n|---|{'---|' * (len(layers) + 1)}", flush=True)
    row(TAGS[args.language][0] + ", a linear probe", [*probe(elmo, args), None], percent=True)
    if args.language == "en":
        row("senses, SemCor and Raganato's ALL, F1", senses(elmo, args.data), percent=True)
        in_context = read_dataset(args.data / "similarity/en/scws.ratings.txt")
        row("words in context, SCWS, Spearman", [one.value for one in evaluate_in_context(elmo, in_context)])


def row(name: str, values, *, percent: bool = False) -> None:
    """A line of the first table."""
    shown = ("" if value is None else f"{value:.1%}" if percent else f"{value:.3f}" for value in values)
    print(f"| {name} | {' | '.join(shown)} |", flush=True)


def probe(elmo, args) -> list[float]:
    """The accuracy of a linear layer on top of each of the model's."""
    train, dev = (read("probe", args.data / part) for part in TAGS[args.language][1:])
    with tempfile.TemporaryDirectory() as folder:
        options = FitOptions(training=FitSettings(epochs=8, patience=3, cache="float16"))
        trained = fit("probe", train, dev, {args.model: elmo}, Path(folder, "probe"), options)
        scores = trained.evaluate(dev)
    return [scores[f"layer {number}"] for number in range(elmo.layer_count)]


def senses(elmo, data: Path) -> list[float]:
    """The F1 of every layer, and of their average."""
    inventory = read_inventory(data / "wsd/wordnet30.senses.tsv.xz")
    train, test = list(wsd.read(data / "wsd/semcor.data.xml.xz")), list(wsd.read(data / "wsd/eval/ALL/ALL.data.xml"))
    found = []
    for layer in (*range(elmo.layer_count), "average"):
        scores = wsd.fit(train, elmo, inventory, layer=layer).evaluate(test)
        found.append(next(iter(scores.values())))
    return found


def print_similarity(elmo, args) -> None:
    """Spearman's correlation with what people say of pairs of words, on pairs that all vectors know."""
    folder = args.data / "similarity" / args.language
    sets = [read_dataset(folder / name) for name in SIMILARITY[args.language]]
    wanted = {word for one in sets for pair in one.pairs for word in (pair.first, pair.second)}
    vectors = {path.stem: StaticVectors.load(path, lower_case=True) for path in args.static}
    corpus = open_corpus(args.text, elmo.tokenizer)
    counts = survey(corpus).counts
    words = [word for word in wanted if counts[word] >= 5]
    for layer in (*range(elmo.layer_count), "average"):
        types = type_vectors(corpus, elmo, layers=layer, max_words=0, also=words, limit=args.occurrences)
        name = f"layer {layer}" if isinstance(layer, int) else layer
        vectors[f"ELMo, {name}"] = StaticVectors(types.words, types.vectors, lower_case=True)
    for name, one in list(vectors.items()):
        vectors[f"{name}, less the common mean"] = StaticVectors(one.words, centered(one.vectors), lower_case=True)
    common = {one.name: shared(one, vectors.values()) for one in sets}
    heads = " | ".join(f"{one.name}, {len(common[one.name].pairs)} of {len(one.pairs)} pairs" for one in sets)
    print(f"\n| Spearman | {heads} | mean |\n|---|{'---|' * (len(sets) + 1)}")
    for name, one in vectors.items():
        values = [evaluate(one, some)[0].value for some in common.values()]
        shown = " | ".join(f"{value:.3f}" for value in (*values, statistics.mean(values)))
        print(f"| {name} | {shown} |", flush=True)


def shared(dataset: Dataset, vectors) -> Dataset:
    """The pairs whose words have a vector in all."""
    pairs = tuple(pair for pair in dataset.pairs if all(pair.first in one and pair.second in one for one in vectors))
    return Dataset(dataset.name, pairs=pairs)


def print_cloze(elmo, args) -> None:
    """Words of held-out text predicted from both sides: the product, less the mean prediction, by the layer for it."""
    print("\n| words in gaps | words | perplexity | first guess | mean reciprocal rank |\n|---|---|---|---|---|")
    for path in args.heldout:
        contexts = (context.words for context in open_corpus([path], elmo.tokenizer))
        sentences = next(in_chunks(contexts, args.gaps))
        for name, prior, cloze in (
            ("p(w before) p(w after)", None, None),
            ("the same over the mean prediction", elmo.prior, None),
            ("both sides at once", elmo.prior, elmo.language_model.cloze),
        ):
            kept = elmo.prior, elmo.language_model.cloze
            elmo.prior, elmo.language_model.cloze = prior, cloze
            found = cloze_scores(elmo, sentences)
            elmo.prior, elmo.language_model.cloze = kept
            row = f"{found.words:,} | {found.perplexity:.1f} | {found.first:.1%} | {found.reciprocal_rank:.3f}"
            print(f"| {path.name}: {name} | {row} |", flush=True)


class Instance(NamedTuple):
    """A word of LST-07 in its sentence, what people put in its place how often, and what is to be ranked."""

    target: str  # lemma.pos
    query: BracketedWord
    gold: dict[str, int]
    candidates: list[str]


def read_lexsub(folder: Path, part: str) -> list[Instance]:
    """The instances with a gold substitute; substitutes of several words are left out on both sides."""

    def parts(name: str, between: str) -> dict[str, list[str]]:
        lines = (line.split(between) for line in lines_of(folder / name))
        return {key.strip(): [one.strip() for one in values.split(";") if one.strip()] for key, values in lines}

    def lines_of(path: Path) -> list[str]:
        return path.read_text(encoding="utf-8", errors="replace").strip("\n").split("\n")  # some bytes are Latin-1

    candidates, gold, found = parts("lst.gold.candidates", "::"), parts(f"lst_{part}.gold", "::"), []
    for line in lines_of(folder / f"lst_{part}.preprocessed"):
        target, number, position, text = line.split("\t")
        target = ".".join(target.split(".")[:2])  # bar.n.v is a noun that was used as a verb
        counts = dict(one.rsplit(" ", 1) for one in gold.get(f"{target} {number}", ()))
        wanted = {word: int(count) for word, count in counts.items() if not re.search("[ -]", word)}
        if wanted:
            [context] = make_corpus([text.split(" ")])
            single = [word for word in candidates[target] if not re.search("[ -]", word)]
            found.append(Instance(target, BracketedWord(context, int(position)), wanted, single))
    return found


def average_precision(ranked: list[str], gold: dict[str, int]) -> float:
    """Generalised average precision (Kishida, 2005): sum_i I(x_i) mean(x_1…x_i) over the same of the ideal order.

    x_i is the number of people who gave the i-th word, I whether any did.
    """

    def precisions(weights: list[int]) -> float:
        sums = list(accumulate(weights))
        return sum(sums[i] / (i + 1) for i, weight in enumerate(weights) if weight)

    return precisions([gold.get(word, 0) for word in ranked]) / precisions(sorted(gold.values(), reverse=True))


def print_substitutes(elmo, args) -> None:
    """GAP on LST-07, trial and test, by part of speech and for each view."""
    if elmo.prior is None and args.text:
        every = islice(open_corpus(args.text, elmo.tokenizer), 0, 40_000, 40)
        elmo.prior = mean_prediction(elmo, [context.words for context in every])
        print(f"\n{args.model} keeps no mean prediction: here it is that of {args.text[0].name}")
    ways = {"what fits": {"view": "fits"}, "what means the same": {"view": "means-the-same"}}
    for path in args.static:
        ways[f"the same, like by {path.stem}"] = {"similar": read_vectors(path)}
    for part in args.lexsub:
        instances = read_lexsub(args.data / "lexsub", part)
        print(f"\n| GAP, LST-07 {part} | {' | '.join(POS.values())} | all |\n|---|{'---|' * (len(POS) + 1)}")
        for name, way in ways.items():
            scores = defaultdict(list)
            for target, query, gold, candidates in instances:
                found = substitutes(elmo, query, among=candidates, k=len(candidates), **way).candidates
                value = average_precision([one.word for one in found], gold)
                scores[target.rsplit(".", 1)[1]].append(value)
            everything = [value for values in scores.values() for value in values]
            row(name, [statistics.mean(values) for values in (*(scores[pos] for pos in POS), everything)], percent=True)


if __name__ == "__main__":
    main()
