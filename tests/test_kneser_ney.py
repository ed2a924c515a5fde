"""The n-gram yardstick: exact against the formulas written out with dictionaries, and on the biLM's own targets."""

import importlib.util
import math
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_pretrain_run import recipe

import elmokit
from elmokit.errors import ConfigError, DataError
from elmokit.pretrain.corpus import prepare
from elmokit.pretrain.evaluation import perplexity, sentences_of
from elmokit.pretrain.run import pretrain
from elmokit.text.vocabulary import BOS, EOS, Vocabulary, write_vocabulary

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "kneser_ney.py"
SPEC = importlib.util.spec_from_file_location("kneser_ney", SCRIPT)
kneser_ney = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kneser_ney)
KneserNey = kneser_ney.KneserNey

S, E, UNK = 0, 1, 2
VOCAB_SIZE = 9


class Plain:
    """The same model by the formulas, an n-gram at a time."""

    def __init__(self, sentences, order, vocab_size):
        self.order, self.vocab_size = order, vocab_size
        occurrences, before = Counter(), defaultdict(set)
        for sentence in sentences:
            for length in range(1, order + 1):
                for first in range(len(sentence) - length + 1):
                    ngram = tuple(sentence[first : first + length])
                    occurrences[ngram] += 1
                    before[ngram[1:]].add(ngram[0])
        start = sentences[0][0]
        self.counts = defaultdict(dict)  # context → word → a
        for ngram, count in occurrences.items():
            if ngram != (start,):
                kept = len(ngram) == order or ngram[0] == start
                self.counts[ngram[:-1]][ngram[-1]] = count if kept else len(before[ngram])
        self.discounts = [self._discounts(length) for length in range(1, order + 1)]

    def _discounts(self, length):
        n = Counter(
            count for context, words in self.counts.items() if len(context) == length - 1 for count in words.values()
        )
        if not (n[1] and n[2] and n[3]):
            return [0, 0.5, 1, 1.5]
        y = n[1] / (n[1] + 2 * n[2])
        found = [0, 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]]
        return found if min(found[1:]) > 0 else [0, 0.5, 1, 1.5]

    def probability(self, context, word):
        lower = self.probability(context[1:], word) if context else 1 / (self.vocab_size - 1)
        counts = self.counts.get(context)
        if not counts:
            return lower
        taken = {other: self.discounts[len(context)][min(count, 3)] for other, count in counts.items()}
        own = counts.get(word, 0) - taken.get(word, 0)
        return (own + sum(taken.values()) * lower) / sum(counts.values())

    def log_probabilities(self, sentences):
        return [
            math.log(self.probability(tuple(sentence[max(0, place - self.order + 1) : place]), sentence[place]))
            for sentence in sentences
            for place in range(1, len(sentence))
        ]


def flat(sentences):
    return np.array([word for sentence in sentences for word in sentence], dtype=np.int32)


def ngrams_of(ids, order, vocab_size=VOCAB_SIZE):
    """What was counted, by words instead of keys."""
    found, names = {}, [()]
    for keys, counts in kneser_ney.count_ngrams(ids, order, vocab_size=vocab_size):
        names = [(*names[key // vocab_size], key % vocab_size) for key in keys.tolist()]
        found.update(zip(names, counts.tolist(), strict=True))
    return found


def zipf_sentences(count, vocab_size, seed=0):
    """Words that depend on the one before, the first of them often and the last ones never."""
    generator = np.random.default_rng(seed)
    rare = 1 / np.arange(1, vocab_size - 4)
    sentences = []
    for _ in range(count):
        words = generator.choice(len(rare), size=generator.integers(0, 12), p=rare / rare.sum())
        words = (np.cumsum(words) % len(rare) if generator.random() < 0.5 else words) + UNK
        sentences.append([S, *words.tolist(), E])
    return sentences


texts = st.lists(st.lists(st.integers(UNK, VOCAB_SIZE - 1), max_size=6).map(lambda words: [S, *words, E]), min_size=1)


class TestAgainstTheFormulas:
    @settings(deadline=None)
    @given(texts, texts, st.integers(1, 5))
    def test_on_small_texts(self, train, held_out, order):
        plain = Plain(train, order, VOCAB_SIZE)
        model = KneserNey(flat(train), order, vocab_size=VOCAB_SIZE)
        found = model.log_probabilities(flat(held_out))
        np.testing.assert_allclose(found, plain.log_probabilities(held_out), rtol=1e-12, atol=1e-14)

    @settings(deadline=None)
    @given(texts, st.integers(1, 5))
    def test_counts(self, train, order):
        plain = Plain(train, order, VOCAB_SIZE).counts
        expected = {(*context, word): count for context, words in plain.items() for word, count in words.items()}
        assert ngrams_of(flat(train), order) == expected | {(S,): 0}

    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    @pytest.mark.parametrize("step", [1, -1])
    def test_with_discounts_of_its_own(self, order, step):
        """Enough text that the discounts follow from the counts, in both directions."""
        train, held_out = zipf_sentences(600, 400), zipf_sentences(60, 400, seed=1)
        model = KneserNey(flat(train)[::step], order, vocab_size=400)
        train, held_out = ([sentence[::step] for sentence in sentences[::step]] for sentences in (train, held_out))
        plain = Plain(train, order, 400)
        assert [0, 0.5, 1, 1.5] not in plain.discounts
        counted = kneser_ney.count_ngrams(flat(train), order, vocab_size=400)
        found = [kneser_ney.discounts(counts) for _, counts in counted]
        np.testing.assert_allclose(found, plain.discounts, rtol=1e-12)
        np.testing.assert_allclose(
            model.log_probabilities(flat(held_out)), plain.log_probabilities(held_out), rtol=1e-12
        )


def test_discounts_by_hand():
    counts = np.repeat([0, 1, 2, 3, 4, 5, 70], [1, 8, 4, 2, 1, 9, 1])
    assert kneser_ney.discounts(counts).tolist() == [0, 0.5, 1.25, 2]  # y = 8 / (8 + 2 * 4)


@pytest.mark.parametrize("counts", [[], [1, 2], [1, 1, 3, 3], [2, 3], [1, 1, 2, 3, 3, 3, 3]])
def test_too_few_counts_to_tell_the_discounts(counts):
    """One of the first three counts does not occur; or, at the end, a discount would be below 0."""
    assert kneser_ney.discounts(np.array(counts, dtype=np.int64)).tolist() == [0, 0.5, 1, 1.5]


def test_by_hand():
    """`a b` and `a`: three words follow one other word each, </S> follows two; the discounts are the fallback."""
    a, b = 3, 4
    model = KneserNey(np.array([S, a, b, E, S, a, E]), 2, vocab_size=5)
    # Unigrams: a and b 0.5/4, </S> 1/4, and of the half that was taken off an eighth to each of four words.
    probabilities = np.exp(model.log_probabilities(np.array([S, a, b, E, S, a, E, S, b, UNK, a, a])))
    after_start = [1 / 2 + 1 / 2 * 0.25, 1 / 2 * 0.25]  # a, b
    after_a = [0.5 / 2 + 1 / 2 * 0.25, 0.5 / 2 + 1 / 2 * 0.375, 1 / 2 * 0.25]  # b, </S>, a
    after_b = [0.5 + 0.5 * 0.375, 0.5 * 0.125]  # </S>, <UNK>
    after_unknown = 0.25  # a
    expected = [after_start[0], after_a[0], after_b[0], after_start[0], after_a[1]]
    expected += [after_start[1], after_b[1], after_unknown, after_a[2]]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-14)


def test_parity_with_kenlm():
    """Logarithms from the ARPA file of `lmplz -o 3 --discount_fallback`, KenLM 0.3.0, which prints six digits."""
    text = ["the cat sees the dog", "the dog sees the cat and the cat sees the moon", "a cat sees"]
    logarithms = {
        "the cat sees the moon": [-0.737256, -0.486284, -0.334445, -0.371718, -0.599105, -0.122512],
        "a dog and the bird sees": [-0.63261, -1.547273, -1.246243, -0.293792, -1.514993, -0.748188, -0.682704],
        "cat": [-0.89645, -1.29439],
    }
    vocabulary = Vocabulary.from_counts(Counter(" ".join(text).split()))
    train, held_out = (
        flat(vocabulary.encode([BOS, *sentence.split(), EOS]) for sentence in sentences)
        for sentences in (text, logarithms)
    )
    found = KneserNey(train, 3, vocab_size=len(vocabulary)).log_probabilities(held_out) / math.log(10)
    np.testing.assert_allclose(found, [number for numbers in logarithms.values() for number in numbers], atol=2e-6)


class TestProbabilities:
    def sum_after(self, model, context):
        """Over all words but the one that begins a sentence."""
        words = [word for word in range(model.vocab_size) if word != model.start]
        ids = flat([[model.start, *context, word] for word in words])
        return np.exp(model.log_probabilities(ids)).reshape(len(words), -1)[:, -1].sum()

    @pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
    def test_sum_to_one_after_any_context(self, order):
        sentences = zipf_sentences(200, 30)
        model, choose = KneserNey(flat(sentences), order, vocab_size=30), random.Random(0)
        seen = [sentence[1 : choose.randrange(1, len(sentence))] for sentence in sentences[:60]]
        wild = [[choose.randrange(UNK, 30) for _ in range(choose.randrange(7))] for _ in range(60)]
        half_seen = [[*one, *other] for one, other in zip(wild, seen, strict=True)]
        assert {len(context) for context in seen} >= set(range(order + 1))
        beyond_the_end = [[E], [2, E], [2, 3, E, E]]
        for context in seen + wild + half_seen + beyond_the_end:
            assert self.sum_after(model, context) == pytest.approx(1, abs=1e-12)

    def test_sum_to_one_backwards(self):
        model = KneserNey(flat(zipf_sentences(200, 30))[::-1], 3, vocab_size=30)
        assert model.start == E
        for context in ([], [2], [3, 2], [29, 29], [4, 3, 2, 5]):
            assert self.sum_after(model, context) == pytest.approx(1, abs=1e-12)

    def test_every_order_helps_on_text_that_repeats_itself(self):
        rhyme = [[S, 3, 4, 3, 5, 3, 4, 6, E], [S, 6, 3, 4, 3, 7, E], [S, 5, 3, 4, 8, E]]
        train, held_out = flat(rhyme * 20), flat(rhyme)
        means = [
            KneserNey(train, order, vocab_size=VOCAB_SIZE).log_probabilities(held_out).mean() for order in range(1, 6)
        ]
        assert means == sorted(means)
        assert means[0] < means[-1]

    def test_sentences_do_not_touch(self):
        """Neither their order nor what stands beside them changes anything."""
        sentences, held_out = zipf_sentences(80, 20), zipf_sentences(20, 20, seed=1)
        model = KneserNey(flat(sentences), 4, vocab_size=20)
        shuffled = KneserNey(flat(random.Random(0).sample(sentences, 80)), 4, vocab_size=20)
        together = model.log_probabilities(flat(held_out))
        assert together.tolist() == shuffled.log_probabilities(flat(held_out)).tolist()
        alone = [model.log_probabilities(flat([sentence])) for sentence in held_out]
        assert together.tolist() == np.concatenate(alone).tolist()


class TestOddTexts:
    @pytest.mark.parametrize("sentences", [[[S, E]], [[S, 3, E]], [[S, 3, E]] * 5, [[S, E], [S, 3, 3, 3, 3, E]]])
    @pytest.mark.parametrize("order", [1, 3, 7])
    def test_hardly_any_text(self, sentences, order):
        model = KneserNey(flat(sentences), order, vocab_size=4)
        held_out = [[S, 3, 2, E], [S, E], [S, 3, 3, 3, 3, 3, 3, 3, E]]
        expected = Plain(sentences, order, 4).log_probabilities(held_out)
        np.testing.assert_allclose(model.log_probabilities(flat(held_out)), expected, rtol=1e-12)

    def test_large_ids(self):
        """Keys are wider than 32 bits."""
        size, generator = 3_000_000, np.random.default_rng(0)
        sentences = [[S, *words, E] for words in generator.integers(size - 3000, size, size=(500, 8)).tolist()]
        found = KneserNey(flat(sentences), 3, vocab_size=size).log_probabilities(flat(sentences[:50]))
        np.testing.assert_allclose(found, Plain(sentences, 3, size).log_probabilities(sentences[:50]), rtol=1e-12)

    def test_mistakes(self):
        ids = np.array([S, 3, E])
        with pytest.raises(ConfigError, match="order 0"):
            KneserNey(ids, 0, vocab_size=4)
        with pytest.raises(DataError, match="no text"):
            KneserNey(ids[:0], 2, vocab_size=4)
        with pytest.raises(DataError, match="from 0 to 3, but the vocabulary has 3"):
            KneserNey(ids, 2, vocab_size=3)
        with pytest.raises(DataError, match="begins with id 1"):
            KneserNey(ids, 2, vocab_size=4).log_probabilities(ids[::-1])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on text with many rare words, which its vocabulary lacks."""
    folder = tmp_path_factory.mktemp("kneser_ney")
    choose = random.Random(0)
    names = [f"name{number}" for number in range(300)]
    lines = [
        f"{choose.choice(['the cat', 'a dog', '小猫'])} {choose.choice(['sees', 'hears'])} {choose.choice(names)} ."
        for _ in range(900)
    ]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = recipe(training__epochs=0.05, corpus__min_count=4, corpus__valid_share=0.1)
    pretrain([folder / "text.txt"], folder / "run", settings)
    return folder / "run"


def perplexity_of(corpus, order):
    (found,) = kneser_ney.perplexities_of(corpus, order, [kneser_ney.held_out_of(corpus)])
    return found


class TestOfARun:
    @pytest.fixture
    def corpus(self, run):
        return kneser_ney.read_run(run)

    def test_the_targets_are_those_of_the_bilm(self, run, corpus):
        elmo = elmokit.load(run)
        theirs = perplexity(elmo, sentences_of(corpus.valid.ids, corpus.words))
        ours = perplexity_of(corpus, 3)
        assert corpus.vocabulary.words == elmo.vocabulary.words
        assert (ours.targets, ours.unknown) == (theirs.targets, theirs.unknown)
        assert ours.unknown > 20
        assert 1 < ours.average < theirs.average  # the run was stopped after a few steps

    @pytest.mark.parametrize("order", [1, 3])
    def test_equals_the_formulas_on_the_words_that_the_bilm_reads(self, corpus, order):
        train, held_out = (
            [corpus.vocabulary.encode([BOS, *words, EOS]).tolist() for words in sentences_of(part.ids, corpus.words)]
            for part in (corpus.train, corpus.valid)
        )
        found = perplexity_of(corpus, order)
        for direction, step in ((found.forward, 1), (found.backward, -1)):
            plain = Plain([sentence[::step] for sentence in train], order, len(corpus.vocabulary))
            logs = plain.log_probabilities([sentence[::step] for sentence in held_out])
            assert len(logs) == found.targets
            assert direction == pytest.approx(math.exp(-np.mean(logs)), rel=1e-12)

    def test_on_the_command_line(self, run, corpus, monkeypatch, capsys):
        monkeypatch.setattr(sys, "argv", ["kneser_ney.py", str(run), "--order", "2"])
        kneser_ney.main()
        found = perplexity_of(corpus, 2)
        lines = capsys.readouterr().out.splitlines()
        assert lines[:3] == [
            f"forward   {found.forward:.2f}",
            f"backward  {found.backward:.2f}",
            f"average   {found.average:.2f}",
        ]
        assert f"{found.targets:,} words predicted" in lines[3]
        assert f"vocabulary {len(corpus.vocabulary)};" in lines[3]
        assert f"{100 * found.unknown / corpus.valid.tokens:.2f}%" in lines[3]

    def test_on_other_texts(self, run, corpus, tmp_path, monkeypatch, capsys):
        held_out = [" ".join(words) + "\n" for words in sentences_of(corpus.valid.ids, corpus.words)]
        (tmp_path / "same.txt").write_text("".join(held_out), encoding="utf-8")
        (tmp_path / "first.txt").write_text(held_out[0], encoding="utf-8")
        texts = ["--text", str(tmp_path / "same.txt"), "--text", str(tmp_path / "first.txt")]
        monkeypatch.setattr(sys, "argv", ["kneser_ney.py", str(run), "--order", "2", *texts])
        kneser_ney.main()
        found, lines = perplexity_of(corpus, 2), capsys.readouterr().out.splitlines()
        assert lines[0] == "same.txt"
        assert lines[3] == f"average   {found.average:.2f}"
        assert lines[4].startswith(f"{found.targets:,} words predicted")
        assert lines[5] == "first.txt"
        elmo = elmokit.load(run)
        first = perplexity(elmo, [held_out[0].split()])
        assert lines[9].startswith(f"{first.targets} words predicted")

    @pytest.mark.parametrize("arguments", [["missing"], ["{run}", "--order", "0"], ["{run}/corpus"]])
    def test_mistakes_on_the_command_line(self, arguments, run, monkeypatch, capsys):
        monkeypatch.setattr(sys, "argv", ["kneser_ney.py", *(argument.format(run=run) for argument in arguments)])
        with pytest.raises(SystemExit) as caught:
            kneser_ney.main()
        assert caught.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


class TestVocabularyOfARun:
    """Of a run that was given a vocabulary, or one that has grown."""

    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "text.txt").write_text("one two three two three three .\n" * 4, encoding="utf-8")
        given = Vocabulary([BOS, EOS, "<UNK>", "two", "absent"])
        prepare([tmp_path / "text.txt"], tmp_path / "corpus", vocabulary=given, valid_share=0.0, workers=1)
        return tmp_path

    @pytest.mark.parametrize("words", [("two", "absent"), ("two", "absent", "three")])
    def test_is_taken(self, words, folder):
        write_vocabulary(folder / "vocab.txt", Vocabulary([BOS, EOS, "<UNK>", *words]))
        corpus = kneser_ney.read_run(folder)
        assert corpus.vocabulary.words[3:] == words
        assert corpus.train.unknown == 28 - sum({"two": 8, "three": 12}.get(word, 0) for word in words)

    def test_of_another_run(self, folder):
        write_vocabulary(folder / "vocab.txt", Vocabulary([BOS, EOS, "<UNK>", "two", "four"]))
        with pytest.raises(DataError, match="same run"):
            kneser_ney.read_run(folder)

    def test_nothing_held_out(self, folder):
        write_vocabulary(folder / "vocab.txt", Vocabulary([BOS, EOS, "<UNK>", "two", "absent"]))
        with pytest.raises(DataError, match="held out"):
            perplexity_of(kneser_ney.read_run(folder), 3)
