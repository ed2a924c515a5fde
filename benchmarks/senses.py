#!/usr/bin/env python3
"""Senses found: pseudo-words, two unrelated words of one part of speech merged into one, told apart by context.

    python benchmarks/senses.py --model my-model --text en-sample.txt

Every "door" and every "life" is replaced by "doorlife" before the model reads the text (Gale et al., 1992; Schütze,
1992). A model that reads characters could else tell the two by their spelling, which would give the answer away; and if
the one were written for the other, it might be told by how ill it fits there. So all occurrences have the same token
and the same context-free vector, layer 0, and only the words around them differ.

They are grouped into two without their labels. Purity is the share of occurrences whose word is the more frequent one
of their group. One vector a word, as static vectors give, puts them all into one group and reaches the larger share,
which stands beside. The pairs were chosen by part of speech and like frequency, before anything was grouped.
"""

import argparse
from pathlib import Path

import numpy as np

from elmokit.elmo import load
from elmokit.lexicon.corpus import Context, open_corpus
from elmokit.lexicon.grouping import group
from elmokit.lexicon.senses import sense_vectors

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


def main() -> None:
    """Group each pair by every layer, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a model's folder or file")
    parser.add_argument("--text", type=Path, required=True, help="a text, such as en-sample.txt")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    elmo = load(args.model)
    corpus = list(open_corpus([args.text], elmo.tokenizer))
    choices = [*range(elmo.layer_count), "average"]
    print(f"| pair | occurrences | larger share | {' | '.join(f'layer {choice}' for choice in choices)} |")
    print(f"|---|---|---|{'---|' * len(choices)}")
    rows = []
    for pair in PAIRS:
        labels, layers = read_pair(corpus, pair, elmo)
        mixes = [*layers, layers.mean(axis=0)]
        share = np.bincount(labels).max() / len(labels)
        rows.append([share, *(purity(vectors, labels, args.seed) for vectors in mixes)])
        print(row("/".join(pair), f"{len(labels)}", rows[-1]), flush=True)
    print(row("**average**", "", np.mean(rows, axis=0)))


def read_pair(corpus, pair, elmo):
    """Which of the two words each occurrence is, (N,), and its vectors, (layers, N, D)."""
    contexts = [merged(context, pair) for context in corpus if not set(pair).isdisjoint(context.words)]
    places = [[i for i, word in enumerate(context.words) if word == "".join(pair)] for context in contexts]
    arrays = elmo.embed_stream((context.words for context in contexts), layers="all")
    vectors = [array[:, own] for array, own in zip(arrays, places, strict=True)]
    labels = [
        pair.index(context.text[context.tokens[i].start : context.tokens[i].end])
        for context, own in zip(contexts, places, strict=True)
        for i in own
    ]
    return np.array(labels), np.concatenate(vectors, axis=1)


def merged(context, pair) -> Context:
    """The sentence with the pseudo-word for each of the two; its text keeps the words themselves."""
    name = "".join(pair)
    tokens = [token._replace(text=name) if token.text in pair else token for token in context.tokens]
    return context._replace(tokens=tokens)


def purity(vectors, labels, seed) -> float:
    """The share of occurrences that are of the more frequent word in their group."""
    groups = group(sense_vectors(vectors), 2, seed=seed).labels
    return sum(np.bincount(labels[groups == number]).max() for number in set(groups.tolist())) / len(labels)


def row(name, count, values) -> str:
    """A line of the table."""
    return f"| {name} | {count} | {' | '.join(f'{value:.3f}' for value in values)} |"


if __name__ == "__main__":
    main()
