#!/usr/bin/env python3
"""Change found: words swapped at known rates in one half of a corpus that does not change.

    python benchmarks/change.py en-fiction.heldout.txt.xz -m en
    python benchmarks/change.py zh-hongloumeng.txt -m zh

The sentences are dealt out at random into two halves, so that no word changes by itself. Content words of like
frequency are paired, and in the second half each occurrence of the one becomes the other with a probability of 0.1 to
1.0, and the other way round: a synthetic change of a known degree, as Shoemark et al. (2019) and others make it. As
many words stay as they are; these are the controls.

Spearman is the correlation of a measure with the rate, 0 for the controls. A control should rank below the median of
all words. The permutation test should find few controls (as many as its level, 0.05) and many of the swapped words.
"""

import argparse
from pathlib import Path
from random import Random

import numpy as np

from elmokit.elmo import load
from elmokit.lexicon.distances import MEASURES
from elmokit.lexicon.function_words import is_function_word
from elmokit.lexicon.occurrences import survey
from elmokit.lexicon.settings import ShiftSettings
from elmokit.lexicon.shift import find_shift
from elmokit.progress.drawing import watched
from elmokit.static.evaluation import spearman
from elmokit.text.corpus import make_corpus, open_corpus

RATES = tuple(rate / 10 for rate in range(1, 11))
LEVEL = 0.05


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, nargs="+")
    parser.add_argument("-m", "--model", default="en")
    parser.add_argument("--pairs", type=int, default=30, help="words swapped, by pairs")
    parser.add_argument("--min-count", type=int, default=80, help="occurrences of a word in the whole corpus")
    parser.add_argument("--limit", type=int, default=100, help="occurrences that are compared in each half")
    parser.add_argument("--layers", default="average")
    parser.add_argument("--rounds", type=int, default=200, help="of the permutation test")
    parser.add_argument("--by", default="jsd", choices=list(MEASURES), help="the measure of the permutation test")
    parser.add_argument("--no-static", dest="static", action="store_false")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    elmo = load(args.model)
    sentences = [context.words for context in open_corpus(args.text, elmo.tokenizer)]
    Random(args.seed).shuffle(sentences)
    pairs, controls = draw_words(sentences, args)
    rates = {word: RATES[number % len(RATES)] for number, pair in enumerate(pairs) for word in pair}
    words = [*rates, *controls]
    gold = np.array([rates.get(word, 0.0) for word in words])
    print(f"{len(rates)} words swapped, {len(controls)} controls, {len(sentences):,} sentences\n")
    half = len(sentences) // 2
    slices = {"first": make_corpus(sentences[:half]), "second": make_corpus(swap(sentences[half:], pairs, rates, args))}
    columns = ("", "Spearman", "controls below the median", "controls with p < 0.05", "swapped with p < 0.05")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    test = {"by": args.by, "permutations": args.rounds, "static": args.static}
    settings = ShiftSettings(k=len(words), examples=0, limit=args.limit, **test)
    layers = int(args.layers) if args.layers.isdecimal() else args.layers
    with watched("change") as progress:
        found = find_shift(slices, elmo, words=words, settings=settings, layers=layers, progress=progress)
    changes = {change.word: change.overall for change in found}
    for name in (*MEASURES, "static") if args.static else MEASURES:
        values = np.array([getattr(changes[word], name) or 0.0 for word in words])
        p = np.array([changes[word].p for word in words]) if name == args.by else None
        print(row(name, values, gold, p), flush=True)


def draw_words(sentences, args):
    """Pairs of content words of like frequency, and as many words that stay as they are."""
    counts = survey(make_corpus(sentences)).counts
    words = [
        word
        for word, count in counts.most_common()
        if count >= args.min_count and word.isalpha() and word == word.lower() and not is_function_word(word)
    ]
    random, wanted = Random(args.seed), 4 * args.pairs
    if len(words) < wanted:
        raise SystemExit(f"{len(words)} words occur {args.min_count} times: {wanted} are needed for {args.pairs} pairs")
    first = random.randrange(0, len(words) - wanted + 1)
    blocks = [words[start : start + 4] for start in range(first, first + wanted, 4)]  # of like frequency
    for block in blocks:
        random.shuffle(block)
    random.shuffle(blocks)
    return [(one, other) for one, other, *_ in blocks], [word for *_, one, other in blocks for word in (one, other)]


def swap(sentences, pairs, rates, args):
    """The sentences with each word of a pair for the other, at its rate."""
    others = {one: other for pair in pairs for one, other in (pair, pair[::-1])}
    random = Random(args.seed + 1)
    return [
        [others[word] if word in others and random.random() < rates[word] else word for word in words]
        for words in sentences
    ]


def row(name, values, gold, p) -> str:
    """A line of the table."""
    below = np.mean(values[gold == 0] < np.median(values))
    tests = [np.mean(p[part] < LEVEL) for part in (gold == 0, gold > 0)] if p is not None else []
    cells = [f"{spearman(values, gold):.3f}", f"{below:.3f}", *(f"{share:.3f}" for share in tests)]
    return f"| {name} | {' | '.join(cells + ['-'] * (4 - len(cells)))} |"


if __name__ == "__main__":
    main()
