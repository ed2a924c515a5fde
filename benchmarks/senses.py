#!/usr/bin/env python3
"""How well senses are found: on pseudo-words, on words with one sense, and on SemCor.

    python benchmarks/senses.py pseudo en-sample.txt -m en             # or -o DIR: train on the merged text first
    python benchmarks/senses.py calibrate en-fiction.heldout.txt.xz --inventory wordnet30.senses.tsv.xz -m en
    python benchmarks/senses.py semcor semcor.data.xml.xz --inventory wordnet30.senses.tsv.xz -m en

pseudo: two unrelated words of one part of speech and of like frequency are made one (Gale et al., 1992; Schütze, 1992),
and their occurrences put into two groups without labels. Purity is the share of occurrences whose word is the more
frequent one of their group; one group of all, as one static vector a word gives, reaches the larger share. With -o a
model is trained by the recipe `novel` on the text with the pseudo-words, which so has never seen the two words apart;
with -m a model is taken as it is, and reads the first word of the pair in the place of both.

calibrate: which silhouette groups must have to be called senses. Words with one sense in WordNet should not be split;
pseudo-words of two such words should. The threshold is what 93% of the former stay below; found on one half of the
words and tried on the other, it should split no more than a tenth. The columns least, even and slope are those of
`CALIBRATIONS` in elmokit/lexicon/senses.py.

semcor: nouns and verbs with two to five senses and at least 50 examples in SemCor, grouped as `elmokit senses` does and
into as many groups as they have senses; V-measure (Rosenberg and Hirschberg, 2007) and paired F (SemEval-2010, task 14)
against the gold senses, beside all occurrences in one cluster.
"""

import argparse
import tempfile
from collections import Counter, defaultdict
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from elmokit.elmo import load
from elmokit.lexicon.clusters import agglomerate, cluster
from elmokit.lexicon.function_words import is_function_word
from elmokit.lexicon.occurrences import survey
from elmokit.lexicon.senses import CALIBRATIONS, FEWEST, OWN_VECTORS, choose_clusters, sense_vectors
from elmokit.lexicon.settings import SenseSettings
from elmokit.lexicon.substitute_vectors import SubstituteVectors
from elmokit.lexicon.surroundings import Surroundings
from elmokit.pretrain.recipe import read_recipe, set_value
from elmokit.pretrain.run import pretrain
from elmokit.progress.drawing import watched
from elmokit.tasks.readers import read_inventory, read_senses
from elmokit.text.corpus import open_corpus
from elmokit.text.tokenizers import get_tokenizer

NOUNS = (
    *(("door", "life"), ("night", "friend"), ("hand", "house"), ("eyes", "place"), ("room", "way")),
    *(("letter", "heart"), ("mother", "morning"), ("father", "moment"), ("window", "world"), ("husband", "evening")),
)
VERBS = (("took", "thought"), ("looked", "told"), ("saw", "made"), ("asked", "felt"), ("hear", "give"))
OTHERS = (("young", "happy"), ("good", "long"), ("dear", "great"), ("never", "here"))
PAIRS = (*NOUNS, *VERBS, ("speak", "keep"), *OTHERS)
MERGED = {word: "".join(pair) for pair in PAIRS for word in pair}
MOST = 300  # occurrences of a word
BELOW = 0.93  # of words with one sense are below the threshold, so that of others no more than a tenth is split
LEAST_EXAMPLES, SENSES = 50, range(2, 6)  # of SemCor's words
NAMES = ("person", "group", "location")  # classes that proper names have for lemmas
INFLECTIONS = (("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ing", ""), ("ing", "e"), ("men", "man"))


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("pseudo", "calibrate", "semcor"))
    parser.add_argument("text", type=Path, nargs="+", help="texts, such as en-sample.txt; semcor.data.xml.xz")
    parser.add_argument("-m", "--model", default="en")
    parser.add_argument("-o", "--output", type=Path, help="pseudo: train there, or take what is there already")
    parser.add_argument("--inventory", type=Path, help="the senses of each lemma, wordnet30.senses.tsv.xz")
    parser.add_argument("--words", type=int, default=200, help="calibrate, semcor: at most so many words")
    args = parser.parse_args()
    {"pseudo": pseudo, "calibrate": calibrate, "semcor": semcor}[args.study](args)


def pseudo(args) -> None:
    """Two groups of the occurrences of each pair."""
    corpus = list(open_corpus(args.text, get_tokenizer("words")))
    if args.output and not args.output.exists():
        train(corpus, args.output)
    elmo = load(args.output or args.model)
    merged = MERGED if args.output else {word: pair[0] for pair in PAIRS for word in pair}
    kinds = embedders(elmo)
    print(f"| pair | occurrences | larger share | {' | '.join(kinds)} |\n|---|---|---|{'---|' * len(kinds)}")
    rows = []
    for pair in PAIRS:
        found = [place for places in places_of(corpus, pair).values() for place in places]
        labels = np.array([pair.index(words[position]) for words, position in found])
        sentences = [([merged.get(word, word) for word in words], position) for words, position in found]
        share = np.bincount(labels).max() / len(labels)
        purities = [purity(grouped(merged[pair[0]], sentences, one, 2), labels) for one in kinds.values()]
        rows.append([share, *purities])
        print(row("/".join(pair), f"{len(labels)}", *(f"{value:.3f}" for value in rows[-1])), flush=True)
    print(row("**average**", "", *(f"{value:.3f}" for value in np.mean(rows, axis=0))))


def calibrate(args) -> None:
    """The best silhouettes of words with one sense and of pseudo-words with two."""
    elmo = load(args.model)
    corpus = list(open_corpus(args.text, elmo.tokenizer))
    words = one_sense_words(corpus, read_inventory(args.inventory), args.words)
    places = {word: found[:MOST] for word, found in places_of(corpus, chain(*words.values())).items()}
    print(f"{len(places)} words with one sense: {', '.join(places)}\n")
    head = "| compared by | least | false splits, other half | two senses seen | even | slope | purity |"
    print(f"{head}\n|---|---|---|---|---|---|---|")
    for name, embedder in embedders(elmo).items():
        single = [best_silhouette(word, found, embedder) for word, found in places.items()]
        double, purities = [], []
        for one, other in [pair for group in words.values() for pair in zip(group[::2], group[1::2], strict=False)]:
            count = min(len(places[one]), len(places[other]))
            mixed = [*places[one][:count], *(replaced(*place, one) for place in places[other][:count])]
            double.append(best_silhouette(one, mixed, embedder))
            purities.append(purity(grouped(one, mixed, embedder, 2), np.repeat([0, 1], count)))
        least = [np.quantile(half, BELOW) for half in (single[::2], single[1::2], single)]
        false = np.mean([*(single[1::2] > least[0]), *(single[::2] > least[1])])
        even, slope = logistic(np.array(single), np.array(double))
        values = [least[2], false, np.mean(double > least[2]), even, slope, np.mean(purities)]
        print(row(name, *(f"{value:.3f}" for value in values)), flush=True)


def semcor(args) -> None:
    """Groups against the senses that people gave."""
    elmo = load(args.model)
    studied = dict(list(semcor_words(args.text[0]).items())[: args.words])
    print(f"{len(studied)} words with {sum(map(len, studied.values())):,} examples\n")
    print("| | senses | V-measure | paired F |\n|---|---|---|---|")
    gold = {word: np.unique([key for *_, key in found], return_inverse=True)[1] for word, found in studied.items()}
    print_scores("one cluster", gold, {word: np.zeros_like(labels) for word, labels in gold.items()})
    for name, embedder in embedders(elmo).items():
        chosen, given = {}, {}
        for word, found in studied.items():
            places = [(words, position) for words, position, _ in found]
            chosen[word] = grouped(word[0], places, embedder)
            given[word] = grouped(word[0], places, embedder, len(set(gold[word].tolist())))
        print_scores(f"{name}, as many as stand apart", gold, chosen)
        print_scores(f"{name}, as many as there are", gold, given)


def print_scores(name, gold, found) -> None:
    """The means over the words."""
    scores = [(labels.max() + 1, v_measure(gold[w], labels), paired_f(gold[w], labels)) for w, labels in found.items()]
    print(row(name, *(f"{value:.3f}" for value in np.mean(scores, axis=0))), flush=True)


def semcor_words(path):
    """The examples of nouns and verbs with two to five senses: (words, position, key) by lemma and part of speech."""
    found = defaultdict(list)
    for sentence in read_senses(path, path.with_name("semcor.gold.key.txt")):
        for one in sentence.instances:
            if one.pos in ("NOUN", "VERB") and one.end == one.start + 1:
                found[one.lemma, one.pos].append((list(sentence.tokens), one.start, one.keys[0]))
    wanted = (word for word, those in found.items() if len(those) >= LEAST_EXAMPLES and word[0] not in NAMES)
    return {word: found[word] for word in sorted(wanted) if len({key for *_, key in found[word]}) in SENSES}


def v_measure(gold, found) -> float:
    """The harmonic mean of homogeneity, 1 - H(gold | found) / H(gold), and completeness, the same the other way."""
    joint = np.zeros((gold.max() + 1, found.max() + 1))
    np.add.at(joint, (gold, found), 1 / len(gold))
    both, each = entropy(joint.ravel()), (entropy(joint.sum(axis=1)), entropy(joint.sum(axis=0)))
    homogeneity, completeness = (1 - (both - other) / own if own else 1 for own, other in (each, each[::-1]))
    return 2 * homogeneity * completeness / (homogeneity + completeness) if homogeneity + completeness else 0


def entropy(shares) -> float:
    """In nats; an empty share counts nothing."""
    return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())


def paired_f(gold, found) -> float:
    """F1 of the pairs of occurrences that are put together."""
    here, there = (labels[:, None] == labels for labels in (gold, found))
    pairs = np.triu(np.ones_like(here), 1)
    both, *each = ((matrix & pairs).sum() for matrix in (here & there, here, there))
    return 2 * both / sum(each) if sum(each) else 0


def embedders(elmo):
    """The ways to compare occurrences."""
    return {"its own vectors": elmo, "what is around it": Surroundings(elmo), "substitutes": SubstituteVectors(elmo)}


def compared(word, places, embedder):
    """What occurrences, (words, position) each, are grouped by, (N, D), and how."""
    arrays = embedder.embed([words for words, _ in places], layers="top")
    vectors = np.stack([array[position] for array, (_, position) in zip(arrays, places, strict=True)])
    if isinstance(embedder, SubstituteVectors):
        return embedder.compare(word, vectors), agglomerate
    return sense_vectors(vectors), partial(cluster, seed=0)


def grouped(word, places, embedder, count=None):
    """The labels of the groups, as many as are asked for or as stand apart."""
    calibration = CALIBRATIONS.get(type(embedder), OWN_VECTORS)
    return choose_clusters(*compared(word, places, embedder), calibration, SenseSettings(count=count))[0].labels


def best_silhouette(word, places, embedder) -> float:
    """The silhouette of the best grouping of occurrences, which decides whether it is taken."""
    score = choose_clusters(*compared(word, places, embedder), OWN_VECTORS, SenseSettings())[1]
    return -1.0 if score is None else score


def one_sense_words(corpus, inventory, most):
    """Lower-case nouns and adverbs with one sense in all, no form of another word, by part of speech and frequency."""
    counts, senses, words = survey(corpus).counts, Counter(), defaultdict(list)
    for (lemma, _), keys in inventory.items():
        senses[lemma] += len(keys)
    for lemma, pos in inventory:
        forms = (lemma[: -len(end)] + base for end, base in INFLECTIONS if lemma.endswith(end))
        lone = senses[lemma] == 1 and pos in ("NOUN", "ADV") and not any(form in senses for form in forms)
        if lone and counts[lemma] >= FEWEST and len(lemma) > 3 and not is_function_word(lemma):
            words[pos].append(lemma)
    chosen = {word for word, _ in counts.most_common() if any(word in group for group in words.values())}
    kept = set(sorted(chosen, key=lambda word: (-counts[word], word))[:most])
    return {pos: sorted(kept.intersection(group), key=lambda word: -counts[word]) for pos, group in words.items()}


def places_of(corpus, words):
    """The occurrences of each word, (words, position)."""
    found = {word: [] for word in words}
    for context in corpus:
        tokens = context.words
        for position in (position for position, token in enumerate(tokens) if token in found):
            found[tokens[position]].append((tokens, position))
    return found


def replaced(words, position, word):
    """The sentence with another word in that place."""
    return [*words[:position], word, *words[position + 1 :]], position


def logistic(single, double):
    """Where one sense and two are equally probable, and the slope, by logistic regression with equal weights."""
    scores, labels = np.concatenate([single, double]), np.repeat([0.0, 1.0], [len(single), len(double)])
    weights = np.repeat([1 / len(single), 1 / len(double)], [len(single), len(double)])
    features, beta = np.stack([scores, np.ones_like(scores)], axis=1), np.zeros(2)
    for _ in range(50):  # Newton's method
        p = 1 / (1 + np.exp(-features @ beta))
        hessian = (features * (weights * p * (1 - p))[:, None]).T @ features + 1e-9 * np.eye(2)
        beta += np.linalg.solve(hessian, features.T @ (weights * (labels - p)))
    return -beta[1] / beta[0], beta[0]


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


def purity(groups, labels) -> float:
    """The share of occurrences that are of the more frequent word in their group."""
    return sum(np.bincount(labels[groups == number]).max() for number in set(groups.tolist())) / len(labels)


def row(*cells) -> str:
    """A line of the table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
