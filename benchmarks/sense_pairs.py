#!/usr/bin/env python3
"""Words in two senses: are uses of one sense nearer to each other than uses of two?

    python benchmarks/sense_pairs.py my-model en
    python benchmarks/sense_pairs.py my-model zh-more

The sentences, and what counts as right, are in sense_pairs.toml; each sense gives a pair. A static vector gives a
cosine of 1 to every pair, and so does layer 0: both get none right.
"""

import argparse
import tomllib
from pathlib import Path

import numpy as np

from elmokit.elmo import load
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.text.brackets import read_brackets

PAIRS = Path(__file__).with_suffix(".toml")


def main() -> None:
    """Print one line per word, and the share of pairs that are right by layer, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model's folder, file or name")
    parser.add_argument("sentences", choices=["en", "en-more", "en-modern", "zh", "zh-more", "zh-modern"])
    args = parser.parse_args()
    elmo = load(args.model)
    words = tomllib.loads(PAIRS.read_text(encoding="utf-8"))[args.sentences]
    layers = [f"layer {number}" for number in range(elmo.layer_count)] + ["average"]
    print(f"| word | {' | '.join(layers)} |\n|---|{'---|' * len(layers)}")
    right = []
    for word, senses in words.items():
        margins = word_margins(senses, elmo)  # (senses, layers)
        print(f"| {word} | {' | '.join(' '.join(f'{value:+.2f}' for value in layer) for layer in margins.T)} |")
        right.extend(margins > 1e-6)
    shares = " | ".join(f"{share:.0%}" for share in np.mean(right, axis=0))
    print(f"| **right, of {len(right)}** | {shares} |")


def word_margins(senses, elmo):
    """How much nearer a sense's two uses are to each other than its first is to the other's first, (senses, layers)."""
    vectors = [[use_vectors(sentence, elmo) for sentence in sense] for sense in senses]  # each (layers, D), unit
    across = (vectors[0][0] * vectors[1][0]).sum(axis=-1)
    return np.stack([(first * second).sum(axis=-1) - across for first, second in vectors])


def use_vectors(sentence, elmo):
    """The vector of the word in brackets in every layer and in their average, of length 1."""
    use = read_brackets(sentence, elmo.tokenizer)
    layers = elmo.embed([use.context.words], layers="all")[0][:, use.position]
    return unit_vectors(np.vstack([layers, layers.mean(axis=0)]))


if __name__ == "__main__":
    main()
