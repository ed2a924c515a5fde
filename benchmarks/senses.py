#!/usr/bin/env python3
"""Senses found: pseudo-words, two unrelated words of one part of speech merged into one, told apart by context.

    python benchmarks/senses.py en-sample.txt -o DIR

Every "door" and every "life" of the text becomes "doorlife" (Gale et al., 1992; Schütze, 1992), and so with all pairs,
before a model is trained on it by the recipe `novel`; a run that is in DIR already is taken as it is. So the model has
never seen the two words apart: all occurrences have the same token, and only the words around them differ.

They are grouped into two without their labels. Purity is the share of occurrences whose word is the more frequent one
of their group. One vector a word, as static vectors give, puts them all into one group and reaches the larger share,
which stands beside. The pairs were chosen by part of speech and like frequency, before anything was grouped.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from elmokit.cli.progress import watched
from elmokit.elmo import load
from elmokit.lexicon.senses import Surroundings, cluster, sense_vectors
from elmokit.pretrain.recipe import read_recipe, set_value
from elmokit.pretrain.run import pretrain
from elmokit.text.corpus import open_corpus
from elmokit.text.tokenizers import get_tokenizer

NOUNS = (
    *(("door", "life"), ("night", "friend"), ("hand", "house"), ("eyes", "place"), ("room", "way")),
    *(("letter", "heart"), ("mother", "morning"), ("father", "moment"), ("window", "world"), ("husband", "evening")),
)
VERBS = (
    ("took", "thought"),
    ("looked", "told"),
    ("saw", "made"),
    ("asked", "felt"),
    ("hear", "give"),
    ("speak", "keep"),
)
OTHERS = (("young", "happy"), ("good", "long"), ("dear", "great"), ("never", "here"))
PAIRS = (*NOUNS, *VERBS, *OTHERS)


MERGED = {word: "".join(pair) for pair in PAIRS for word in pair}


def main() -> None:
    """Group each pair by every layer, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="a text, such as en-sample.txt")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the run's folder")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    corpus = list(open_corpus([args.text], get_tokenizer("words")))
    if not args.output.exists():
        train(corpus, args.output)
    elmo = load(args.output)
    embedders = {"": elmo, "around ": Surroundings(elmo)}
    names = [f"{kind}layer {number}" for kind in embedders for number in range(1, elmo.layer_count)]
    names += [f"{kind}average" for kind in embedders]
    print(f"| pair | occurrences | larger share | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}")
    rows = []
    for pair in PAIRS:
        labels = np.array([pair.index(word) for context in corpus for word in context.words if word in pair])
        layers = [pair_vectors(corpus, pair, embedder) for embedder in embedders.values()]  # (L, N, D) each
        vectors = [*(layer for one in layers for layer in one[1:]), *(one.mean(axis=0) for one in layers)]
        share = np.bincount(labels).max() / len(labels)
        rows.append([share, *(purity(one, labels, args.seed) for one in vectors)])
        print(row("/".join(pair), f"{len(labels)}", rows[-1]), flush=True)
    print(row("**average**", "", np.mean(rows, axis=0)))


def train(corpus, folder: Path) -> None:
    """A model by the recipe `novel` on the text with the pseudo-words, a sentence a line."""
    values = read_recipe("novel")
    set_value(values, "corpus.lines", "sentences")
    with watched(str(folder)) as progress, tempfile.TemporaryDirectory() as name:
        text = Path(name, "merged.txt")
        text.write_text("".join(f"{merged_text(context)}\n" for context in corpus), encoding="utf-8")
        pretrain([text], folder, values, progress=progress)


def merged_text(context) -> str:
    """The sentence with the pseudo-words for the words of all pairs."""
    parts, end = [], 0
    for token in context.tokens:
        parts += [context.text[end : token.start], MERGED.get(token.text, token.text)]
        end = token.end
    return "".join([*parts, context.text[end:]])


def pair_vectors(corpus, pair, embedder):
    """The vectors of a pair's occurrences in every layer, (layers, N, D)."""
    found = [context.words for context in corpus if not set(pair).isdisjoint(context.words)]
    indices = [[index for index, word in enumerate(words) if word in pair] for words in found]
    arrays = embedder.embed([[MERGED.get(word, word) for word in words] for words in found], layers="all")
    return np.concatenate([array[:, own] for array, own in zip(arrays, indices, strict=True)], axis=1)


def purity(vectors, labels, seed) -> float:
    """The share of occurrences that are of the more frequent word in their group."""
    groups = cluster(sense_vectors(vectors), 2, seed=seed).labels
    return sum(np.bincount(labels[groups == number]).max() for number in set(groups.tolist())) / len(labels)


def row(name, count, values) -> str:
    """A line of the table."""
    return f"| {name} | {count} | {' | '.join(f'{value:.3f}' for value in values)} |"


if __name__ == "__main__":
    main()
