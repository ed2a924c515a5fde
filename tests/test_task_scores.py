"""Scores against the tools that the fields use: seqeval, scikit-learn, scorch, scipy, and torchmetrics for SQuAD."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scorch import scores as scorch
from seqeval import scheme as schemes
from seqeval.metrics import classification_report
from sklearn.metrics import accuracy_score, f1_score
from torchmetrics.functional.text import squad

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import LabelledSpan
from elmokit.tasks.readers import read_coreference, read_questions, read_tagged
from elmokit.tasks.scores import (
    F1,
    accuracy,
    chunks,
    coreference_scores,
    largest_assignment,
    macro_f1,
    normalise,
    role_f1,
    sense_f1,
    span_f1,
    squad_scores,
    to_bio,
    to_bioes,
)

close = pytest.approx  # others add in another order: the last bits differ


def tag_lists(prefixes: str):
    """Sentences of gold and predicted tags."""
    tags = ["O", *(f"{prefix}-{label}" for prefix in prefixes for label in ("PER", "a-b"))]
    return st.lists(st.lists(st.tuples(*[st.sampled_from(tags)] * 2), min_size=1, max_size=12), min_size=1, max_size=4)


def gold_and_ours(sentences):
    return ([[pair[side] for pair in sentence] for sentence in sentences] for side in (0, 1))


def check_against_seqeval(gold, ours, ours_scheme="loose", **options):
    found = span_f1(gold, ours, scheme=ours_scheme)
    if not any(chunks(tags, scheme=ours_scheme) for tags in [*gold, *ours]):
        assert found.all == F1(0, 0)  # seqeval has no report of nothing
        return
    report = classification_report(gold, ours, output_dict=True, zero_division=0, **options)
    for label, score in {**found.labels, "micro avg": found.all}.items():
        row = report[label]
        assert (*score, score.f1) == close((row["precision"], row["recall"], row["f1-score"]))


class TestSpans:
    @settings(deadline=None)
    @given(tag_lists("BIES"))
    def test_loose_is_the_default_of_seqeval(self, sentences):
        gold, ours = gold_and_ours(sentences)
        check_against_seqeval(gold, ours)

    @pytest.mark.parametrize(("scheme", "name"), [("bio", "IOB2"), ("bioes", "IOBES")])
    @settings(deadline=None)
    @given(data=st.data())
    def test_a_scheme_is_the_strict_mode_of_seqeval(self, scheme, name, data):
        gold, ours = gold_and_ours(data.draw(tag_lists("BI" if scheme == "bio" else "BIES")))
        check_against_seqeval(gold, ours, scheme, mode="strict", scheme=getattr(schemes, name))

    def test_real_tags(self, shared_data):
        gold = [list(sentence.tags) for sentence in read_tagged(shared_data / "tagging" / "wnut17" / "dev.conll")]
        chance = random.Random(0)
        known = sorted({tag for tags in gold for tag in tags})
        ours = [[tag if chance.random() < 0.95 else chance.choice(known) for tag in tags] for tags in gold]
        check_against_seqeval(gold, ours)
        assert span_f1(gold, gold).all == F1(1, 1)

    def test_by_hand(self):
        tags = ["I-PER", "I-PER", "B-PER", "O", "B-LOC", "I-PER"]
        person, other, place, last = (0, 2, "PER"), (2, 3, "PER"), (4, 5, "LOC"), (5, 6, "PER")
        assert chunks(tags) == [person, other, place, last]
        assert chunks(tags, scheme="bio") == [other, place]

    @settings(deadline=None)
    @given(st.sets(st.integers(0, 20), max_size=12), st.data())
    def test_tags_of_spans_give_the_spans(self, bounds, data):
        cuts = sorted(bounds)
        label = st.sampled_from(["A", "B-C"])
        spans = [LabelledSpan(*pair, data.draw(label)) for pair in zip(cuts[::2], cuts[1::2], strict=False)]
        assert chunks(to_bio(spans, 20), scheme="bio") == chunks(to_bio(spans, 20)) == spans
        assert chunks(to_bioes(spans, 20), scheme="bioes") == chunks(to_bioes(spans, 20)) == spans

    @pytest.mark.parametrize("tag", ["NN", "B", "O-PER", "", "X-PER", "BI-PER"])
    def test_tags_that_are_none(self, tag):
        with pytest.raises(DataError, match="stands for no part of a span"):
            chunks(["O", tag])

    def test_mistakes(self):
        with pytest.raises(DataError, match="'S-PER'.*expected O or a label after BI"):
            chunks(["S-PER"], scheme="bio")
        with pytest.raises(ConfigError, match="no scheme 'iob'"):
            chunks(["O"], scheme="iob")
        with pytest.raises(DataError, match="1 predictions for 2"):
            span_f1([["O", "O"]], [["O"]])


class TestClasses:
    @settings(deadline=None)
    @given(st.lists(st.tuples(*[st.sampled_from("abcd")] * 2), min_size=1))
    def test_as_scikit_learn(self, pairs):
        gold, ours = ([pair[side] for pair in pairs] for side in (0, 1))
        assert accuracy(gold, ours) == close(accuracy_score(gold, ours))
        assert macro_f1(gold, ours) == close(f1_score(gold, ours, average="macro", zero_division=0))

    def test_of_nothing(self):
        assert (accuracy([], []), macro_f1([], [])) == (0, 0)
        with pytest.raises(DataError, match="1 predictions for 0 gold answers"):
            accuracy([], ["a"])


class TestQuestions:
    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ("The Beatles!", ["beatles"]),
            ("an  apple, a day", ["apple", "day"]),
            ("U.S.A.", ["usa"]),
            ("the-end", ["theend"]),
            ("a–b", ["–b"]),
            ("“Theatre”", ["“theatre”"]),
            ("a the an", []),
        ],
    )
    def test_normalisation(self, answer, words):
        assert normalise(answer) == words

    def test_by_hand(self):
        asked = [("The cat sat", ["a cat", "dog"]), ("Paris", ["paris."]), ("x", ["y"])]
        assert squad_scores(asked) == (close(1 / 3), close((2 / 3 + 1 + 0) / 3))
        assert squad_scores([("the", ["a"])]) == (1, 0)  # so does the official script: no words, none in common
        assert squad_scores([]) == (0, 0)

    def test_as_torchmetrics(self, shared_data):
        chance = random.Random(0)
        questions = list(read_questions(shared_data / "qa" / "squadshifts" / "dev.json"))
        predicted = []
        for question in questions:
            answer = chance.choice(question.answers)
            start, end = answer.start + chance.choice((-9, -4, 0, 0)), answer.end + chance.choice((-3, 0, 0, 7, 30))
            predicted.append(question.context[max(0, start) : end])
        found = squad_scores(
            (text, [answer.text for answer in question.answers])
            for text, question in zip(predicted, questions, strict=True)
        )
        theirs = squad(
            [{"prediction_text": text, "id": str(number)} for number, text in enumerate(predicted)],
            [
                {
                    "answers": {"text": [one.text for one in question.answers], "answer_start": [0]},
                    "id": str(number),
                }
                for number, question in enumerate(questions)
            ],
        )
        assert 0.1 < found.exact < 0.9
        assert found.exact * 100 == close(theirs["exact_match"].item())
        assert found.f1 * 100 == close(theirs["f1"].item())


def random_clusters(chance: random.Random, mentions: list[int], clusters: int) -> list[set[int]]:
    """Each mention in one of some clusters, or left out."""
    found: list[set[int]] = [set() for _ in range(clusters)]
    for mention in mentions:
        if chance.random() < 0.9:
            chance.choice(found).add(mention)
    return [cluster for cluster in found if cluster]


def check_against_scorch(gold, ours):
    found = coreference_scores([(gold, ours)])
    gold, ours = [set(cluster) for cluster in gold], [set(cluster) for cluster in ours]
    for score, measure in zip(found, (scorch.muc, scorch.b_cubed, scorch.ceaf_e), strict=True):
        recall, precision, f1 = measure(gold, ours)
        assert (score.recall, score.precision, score.f1) == close((recall, precision, f1))
    assert found.average == close(scorch.conll2012(gold, ours))


class TestCoreference:
    @pytest.mark.parametrize("seed", range(60))
    def test_random_clusterings_as_scorch(self, seed):
        chance = random.Random(seed)
        mentions = list(range(chance.randint(4, 60)))
        gold, ours = (random_clusters(chance, mentions, chance.randint(1, 20)) for _ in range(2))
        check_against_scorch(gold, ours)

    def test_perturbed_documents_as_scorch(self, shared_data):
        chance = random.Random(0)
        documents = []
        for document in read_coreference(shared_data / "coref" / "litbank" / "dev"):
            documents.append((document.clusters, perturbed(chance, document.clusters)))
            check_against_scorch(*documents[-1])
        assert 0.2 < coreference_scores(documents).average < 0.95

    def test_documents_are_summed(self):
        """The mentions of one document are not those of another."""
        chance = random.Random(1)
        documents = [[random_clusters(chance, list(range(30)), 9) for _ in range(2)] for _ in range(4)]
        merged: tuple[list, list] = ([], [])
        for number, sides in enumerate(documents):
            for side, clusters in zip(merged, sides, strict=True):
                side += [{(number, mention) for mention in cluster} for cluster in clusters]
        together, apart = coreference_scores([merged]), coreference_scores(documents)
        assert [(*score,) for score in apart] == [close((*score,)) for score in together]

    def test_by_hand(self):
        """The example of Luo (2005): 12 mentions in clusters of 5, 2 and 5, the last two of which are put together."""
        gold = [{1, 2, 3, 4, 5}, {6, 7}, {8, 9, 10, 11, 12}]
        found = coreference_scores([(gold, [gold[0], gold[1] | gold[2]])])
        assert found.muc == (close(9 / 10), 1)
        assert found.b_cubed == (close((5 + (4 + 25) / 7) / 12), 1)
        assert found.ceaf_e == (close((1 + 10 / 12) / 2), close((1 + 10 / 12) / 3))

    def test_edges(self):
        assert coreference_scores([]).average == 0
        assert coreference_scores([([], [])]).average == 0
        assert coreference_scores([([{1, 2}], [])]).average == 0
        assert coreference_scores([([{1, 2}, set()], [{1, 2}])]).average == 1
        with pytest.raises(DataError, match="a mention is in two clusters"):
            coreference_scores([([{1, 2}], [{1}, {1, 2}])])

    @pytest.mark.parametrize("seed", range(30))
    def test_assignment_as_scipy(self, seed):
        generator = np.random.default_rng(seed)
        gains = generator.random(generator.integers(0, 30, size=2)) * generator.choice([1, 0], p=[0.4, 0.6])
        gains[generator.random(gains.shape) < 0.5] = 0
        expected = gains[linear_sum_assignment(gains, maximize=True)].sum()
        assert largest_assignment(gains) == close(expected)


def perturbed(chance: random.Random, clusters) -> list[set]:
    """Clusters after some mentions have gone, moved or come, and some clusters been joined."""
    found = [set(cluster) for cluster in clusters]
    for cluster in found:
        for mention in sorted(cluster):
            fate = chance.random()
            if fate < 0.2:
                cluster.discard(mention)
            if 0.1 < fate < 0.2:
                chance.choice(found).add(mention)
            if 0.2 < fate < 0.25:
                cluster.add((mention.start, mention.end + 1000))
    found[0] |= found.pop()
    return [cluster for cluster in found if cluster]


class TestRoles:
    def spans(self, text: str) -> list[LabelledSpan]:
        """ "A0:0-2 V:2-3" """
        cut = (item.split(":") for item in text.split())
        return [LabelledSpan(*map(int, bounds.split("-")), label) for label, bounds in cut]

    @pytest.mark.parametrize(
        ("gold", "ours", "correct", "found", "expected"),
        [
            ("A0:0-2 V:2-3 A1:3-5", "A0:0-2 V:2-3 A1:3-4", 1, 2, 2),
            ("A0:0-2 V:2-3", "A1:0-2 V:2-3", 0, 1, 1),
            ("V:2-3", "V:1-2", 0, 0, 0),
            ("V:2-3 C-V:4-5 A1:3-4", "V:2-3 A1:3-4", 1, 1, 1),
            ("A1:0-1 V:1-2 C-A1:2-4", "A1:0-1 V:1-2 C-A1:2-4", 1, 1, 1),
            ("A1:0-1 V:1-2 C-A1:2-4", "A1:0-1 V:1-2", 0, 1, 1),
            ("A1:0-1 V:1-2 C-A1:2-4", "A1:0-1 V:1-2 A1:2-4", 0, 2, 1),
            ("A1:2-4 V:1-2", "C-A1:2-4 V:1-2", 1, 1, 1),
            ("R-A0:0-1 A0:2-3 V:3-4", "A0:0-1 A0:2-3 V:3-4", 1, 2, 2),
        ],
    )
    def test_by_hand(self, gold, ours, correct, found, expected):
        score = role_f1([(self.spans(gold), self.spans(ours))]).all
        assert score == F1.of_counts(correct, found, expected)

    def test_predicates_are_apart(self):
        one, other = self.spans("A0:0-1 V:1-2"), self.spans("A0:2-3 V:1-2")
        assert role_f1([(one, one), (other, other)]).all == F1(1, 1)
        assert role_f1([(one, other), (other, one)]).all == F1(0, 0)
        assert role_f1([(one, one), (other, [])]).labels == {"A0": F1(1, 0.5)}


def test_senses():
    words = [
        ("NOUN", "a%1", ("a%1", "b%1")),
        ("NOUN", "c%1", ("a%1",)),
        ("VERB", None, ("d%2",)),
        ("VERB", "d%2", ("d%2",)),
    ]
    assert sense_f1(words) == {"ALL": F1(2 / 3, 0.5), "NOUN": F1(0.5, 0.5), "VERB": F1(1, 0.5)}
