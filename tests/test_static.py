"""Static vectors: embedders, training, counting, scores."""

import math
import re
import sys
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from conftest import SENTENCES

from elmokit.errors import ConfigError, DataError, MissingExtraError
from elmokit.static.cooccurrence import RECORD, Cooccurrences, SortedSums, count_cooccurrences, merge_sums
from elmokit.static.corpus import read_text
from elmokit.static.embedders import OneHot, StaticVectors
from elmokit.static.glove import Glove, train_glove
from elmokit.static.kernels import adagrad, compiled, count_pairs, sum_sorted, weighted_squares
from elmokit.static.settings import GloveSettings, SkipGramSettings, TextSettings
from elmokit.static.skip_gram import train_skip_gram

NOVEL = """\
It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a
wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood, this
truth is so well fixed in the minds of the surrounding families, that he is considered the rightful property of
some one or other of their daughters. “My dear Mr. Bennet,” said his lady to him one day, “have you heard that
Netherfield Park is let at last?” Mr. Bennet replied that he had not. “But it is,” returned she; “for Mrs. Long has
just been here, and she told me all about it.” Mr. Bennet made no answer. “Do you not want to know who has taken
it?” cried his wife impatiently. You want to tell me, and I have no objection to hearing it. This was invitation
enough. The the the man is the man of the wife .
"""
CHINESE = "今天天气很好，我们去公园。\n明天天气不好，我们不去公园。\n"


@pytest.fixture
def novel(tmp_path):
    return make_text(tmp_path, NOVEL)


def make_text(folder, content, **settings):
    (folder / "novel.txt").write_text(content, encoding="utf-8")
    (folder / "work").mkdir(exist_ok=True)
    settings = {"min_count": 1, "lower_case": True, "lines": "paragraphs"} | settings
    return read_text([folder / "novel.txt"], folder / "work", TextSettings(**settings), workers=1)


class Watcher:
    """Keeps what it is told."""

    def __init__(self):
        self.messages, self.updates = [], []

    def message(self, text, /):
        self.messages.append(text)

    def update(self, *progress, unit="", note=""):
        self.updates.append(progress)


def embedders() -> dict:
    words = sorted({word for sentence in SENTENCES[:4] for word in sentence})
    vectors = np.random.default_rng(0).standard_normal((len(words), 7)).astype(np.float32)
    return {"dense": StaticVectors(words, vectors), "one-hot": OneHot(words)}


@pytest.mark.parametrize("kind", ["dense", "one-hot"])
class TestEveryEmbedder:
    def test_shapes(self, kind):
        embedder = embedders()[kind]
        assert embedder.layer_count == 1
        for layers in ("average", "top", 0):
            for tokens, vectors in zip(SENTENCES, embedder.embed(SENTENCES, layers=layers), strict=True):
                assert vectors.dtype == np.float32
                assert vectors.shape == (len(tokens), embedder.width)
        assert embedder.embed(SENTENCES[:1], layers="all")[0].shape == (1, len(SENTENCES[0]), embedder.width)

    def test_batch_mates_and_order_change_nothing(self, kind):
        embedder = embedders()[kind]
        together = embedder.embed(SENTENCES)
        for tokens, vectors in zip(SENTENCES[::-1], together[::-1], strict=True):
            np.testing.assert_array_equal(embedder.embed([tokens])[0], vectors)

    def test_empty_sentence(self, kind):
        embedder = embedders()[kind]
        assert embedder.embed([[]])[0].shape == (0, embedder.width)
        assert embedder.embed([]) == []

    def test_raw_text_is_cut(self, kind):
        embedder = embedders()[kind]
        np.testing.assert_array_equal(embedder.embed(["The bank."])[0], embedder.embed([["The", "bank", "."]])[0])

    def test_an_unknown_word_has_zeros(self, kind):
        embedder = embedders()[kind]
        known, unknown = embedder.embed([["bank", "BANK"]])[0]
        assert known.any()
        assert not unknown.any()

    def test_lower_case_in_its_place_if_asked_for(self, kind):
        embedder = embedders()[kind]
        arguments = (embedder.words, embedder.vectors) if kind == "dense" else (embedder.words,)
        lower = type(embedder)(*arguments, lower_case=True)
        known, same, the, capital = lower.embed([["bank", "BANK", "the", "The"]])[0]
        np.testing.assert_array_equal(known, same)
        assert not np.array_equal(the, capital)  # both are words of their own

    @pytest.mark.parametrize("layers", [1, -1, "best", True])
    def test_unknown_layers(self, kind, layers):
        with pytest.raises(ConfigError, match="unknown layers"):
            embedders()[kind].embed(SENTENCES, layers=layers)

    def test_not_sentences(self, kind):
        assert len(embedders()[kind].embed("The bank .")) == 1  # a str is one sentence
        with pytest.raises(DataError, match="sentences came as bytes"):
            embedders()[kind].embed(b"The bank .")
        with pytest.raises(DataError, match="sentence 0 is 7"):
            embedders()[kind].embed([7])


def test_one_hot_indices():
    one_hot = OneHot(["a", "b", "a"])
    indices = one_hot.indices([["b", "c", "a"], []])
    assert [found.tolist() for found in indices] == [[1, -1, 0], []]
    np.testing.assert_array_equal(one_hot.embed([["b", "c", "a"]])[0], [[0, 1, 0], [0, 0, 0], [1, 0, 0]])


def test_the_example_of_the_front_door(tmp_path, monkeypatch):
    import doctest

    import elmokit.static

    monkeypatch.chdir(tmp_path)
    (tmp_path / "novel.txt").write_text(NOVEL * 3 + "The harbour was quiet.\n" * 3, encoding="utf-8")
    assert doctest.testmod(elmokit.static, raise_on_error=True).attempted > 3
    assert set(elmokit.static.__all__) == set(dir(elmokit.static))
    assert all(callable(getattr(elmokit.static, name)) for name in elmokit.static.__all__)


def test_words_and_vectors_must_agree():
    with pytest.raises(DataError, match=r"2 words, but vectors of shape \(3, 4\)"):
        StaticVectors(["a", "b"], np.zeros((3, 4), np.float32))


class TestText:
    def test_words_by_falling_count(self, novel):
        assert novel.counts.tolist() == sorted(novel.counts.tolist(), reverse=True)
        assert novel.words[:3] == (",", ".", "the")
        assert novel.tokens == sum(len(sentence) for sentence in novel.sentences())

    def test_lines_and_lower_case(self, novel):
        sentences = list(novel.sentences())
        assert len(sentences) == NOVEL.count("\n")
        assert sentences[0][:4] == ["it", "is", "a", "truth"]
        assert sentences[-1][-8:] == ["the", "man", "is", "the", "man", "of", "the", "wife", "."][-8:]

    def test_wrapped_lines_are_joined(self, tmp_path):
        """A window reaches over the ends of wrapped lines, not over those of paragraphs."""
        text = make_text(tmp_path, f"{NOVEL}\n{NOVEL}", lines="auto")
        first, second = text.sentences()
        assert first == second
        assert first[:2] == ["it", "is"]
        assert len(first) == make_text(tmp_path, NOVEL).tokens

    def test_case_and_sentences(self, tmp_path):
        text = make_text(tmp_path, NOVEL, lower_case=False, split=True)
        sentences = list(text.sentences())
        assert len(sentences) > NOVEL.count("\n")
        assert ["Mr.", "Bennet", "made", "no", "answer", "."] in sentences

    def test_rare_words_are_left_out(self, tmp_path):
        whole = make_text(tmp_path, NOVEL)
        text = make_text(tmp_path, NOVEL, min_count=3)
        assert text.words == tuple(word for word, count in zip(whole.words, whole.counts, strict=True) if count >= 3)
        kept = [[word for word in sentence if word in text.words] for sentence in whole.sentences()]
        assert list(text.sentences()) == kept
        assert make_text(tmp_path, NOVEL, vocab_size=5).words == whole.words[:5]

    def test_without_punctuation(self, tmp_path):
        whole, text = make_text(tmp_path, NOVEL), make_text(tmp_path, NOVEL, punctuation=False)
        assert set(whole.words) - set(text.words) == {",", ".", "“", "”", "?", ";"}
        assert next(text.sentences())[:7] == ["it", "is", "a", "truth", "universally", "acknowledged", "that"]

    def test_chinese(self, tmp_path):
        text = make_text(tmp_path, CHINESE, tokenizer="characters")
        assert list(text.sentences())[1][:4] == ["明", "天", "天", "气"]

    def test_nothing_left(self, tmp_path):
        with pytest.raises(DataError, match=r"novel.txt: no word occurs 99 times: the most frequent one occurs \d+"):
            make_text(tmp_path, NOVEL, min_count=99)
        with pytest.raises(DataError, match="there are none at all"):
            make_text(tmp_path, "\n \n")

    def test_settings_out_of_range(self):
        for settings in ({"min_count": 0}, {"vocab_size": 0}):
            with pytest.raises(ConfigError, match="must be at least 1"):
                TextSettings(**settings)


def plain_counts(text, window: int, *, symmetric: bool) -> dict:
    """X by a dictionary of fractions, without any cleverness."""
    counts: dict = defaultdict(Fraction)
    for sentence in text.sentences():
        for place, later in enumerate(sentence):
            for distance in range(1, min(window, place) + 1):
                earlier = sentence[place - distance]
                counts[earlier, later] += Fraction(1, distance)
                if symmetric:
                    counts[later, earlier] += Fraction(1, distance)
    return counts


def written_out(cooccurrences, words) -> dict:
    """X as a dictionary; no pair may be there twice."""
    counts = {}
    for row, column, count in (record for part in cooccurrences.parts for record in part.tolist()):
        for pair in {(row, column), (column, row)} if cooccurrences.symmetric else {(row, column)}:
            assert (words[pair[0]], words[pair[1]]) not in counts
            counts[words[pair[0]], words[pair[1]]] = count
    return counts


class TestCounts:
    @pytest.mark.parametrize("symmetric", [True, False])
    @pytest.mark.parametrize(("memory_mb", "threads"), [(100, 1), (100, 3), (0.001, 1), (0.002, 2)])
    @pytest.mark.parametrize("window", [1, 10])
    def test_are_those_of_a_dictionary(self, novel, tmp_path, symmetric, memory_mb, threads, window):
        """Also when nearly nothing fits into memory: then sums are put aside often, and there are several parts."""
        found = count_cooccurrences(
            novel, GloveSettings(window=window, symmetric=symmetric, memory_mb=memory_mb, threads=threads)
        )
        expected = plain_counts(novel, window, symmetric=symmetric)
        assert written_out(found, novel.words) == {pair: np.float32(float(count)) for pair, count in expected.items()}
        assert found.pairs == len(expected)
        aside = len(list((tmp_path / "work").glob("sums-*")))
        assert (aside, len(found.parts)) == (0, 1) if memory_mb > 1 else aside > 2 * threads and len(found.parts) > 1

    def test_far_windows_are_rounded_to_a_unit(self, novel, tmp_path):
        """Beyond a distance of 22 no whole number fits all; the error of a count is far below that of float32."""
        found = written_out(count_cooccurrences(novel, GloveSettings(window=60)), novel.words)
        expected = plain_counts(novel, 60, symmetric=True)
        assert found.keys() == expected.keys()
        for pair, count in expected.items():
            assert found[pair] == pytest.approx(float(count), rel=1.2e-7)  # a step of float32, which rounding may take

    def test_the_order_is_the_seeds(self, novel, tmp_path):
        orders = [
            np.concatenate(count_cooccurrences(novel, GloveSettings(seed=seed)).parts).tolist() for seed in (1, 1, 2)
        ]
        assert orders[0] == orders[1] != orders[2]
        assert sorted(orders[0]) == sorted(orders[2])

    def test_progress(self, novel, tmp_path):
        watcher = Watcher()
        count_cooccurrences(novel, progress=watcher)
        assert watcher.updates[-1] == ("counting", len(novel.ids), len(novel.ids))

    def test_merging_keeps_every_pair_once(self):
        random = np.random.default_rng(0)
        pairs = [np.unique(random.integers(1000, size=size)) for size in (1, 300, 700, 40)]
        parts = [SortedSums(numbers, random.integers(1, 9, size=len(numbers))) for numbers in pairs]
        expected: dict = defaultdict(int)
        for part in parts:
            for pair, number in zip(*map(np.ndarray.tolist, part), strict=True):
                expected[pair] += number
        for items in (1, 50, 10**6):
            blocks = list(merge_sums(parts, items))
            found = [entry for block in blocks for entry in zip(*map(np.ndarray.tolist, block), strict=True)]
            assert found == sorted(expected.items())
            assert len(blocks) > 1 or items > 1000

    def test_kernels_as_plain_python_do_the_same(self, novel):
        """What is compiled is what is written."""
        words = len(novel.words)
        weights = np.array([0, 6, 3, 2])
        rows, columns = np.zeros(words, np.int64), np.zeros(words, np.int64)  # no table at all
        buffer, sums = np.empty(10_000, np.int64), np.empty(10_000, np.int64)
        end, used = count_pairs(novel.ids, 0, len(novel.ids), False, weights, rows, columns, sums, buffer)
        assert end == len(novel.ids)
        buffer[:used].sort()
        length = sum_sorted(buffer[:used], weights, sums)
        expected = plain_counts(novel, 3, symmetric=False)
        assert length == len(expected)
        for pair, number in zip(buffer[:length].tolist(), sums[:length].tolist(), strict=True):
            assert expected[novel.words[pair // words], novel.words[pair % words]] == Fraction(number, 6)


def direct_loss(glove, counts: dict, words, settings) -> float:
    """J as it is defined, pair by pair, in double precision."""
    v, u = glove.vectors_and_contexts.astype(np.float64)
    b, c = glove.biases.astype(np.float64)
    ids = {word: number for number, word in enumerate(words)}
    total = 0.0
    for (first, second), count in counts.items():
        x, i, j = float(count), ids[first], ids[second]
        weight = min(1.0, (x / settings.x_max) ** settings.alpha)
        total += weight * (v[i] @ u[j] + b[i] + c[j] - math.log(x)) ** 2
    return total


def as_records(*records):
    """Not to be written to, as the files that they come from: for others the kernels would be compiled again."""
    found = np.array(list(records), dtype=RECORD)
    found.flags.writeable = False
    return found


class TestGlove:
    @pytest.mark.parametrize("symmetric", [True, False])
    def test_the_loss_is_j(self, novel, tmp_path, symmetric):
        """After every epoch, and before the first; float32 products of 20 numbers leave about 1e-6."""
        settings = GloveSettings(dimensions=20, x_max=2.5, alpha=0.6, symmetric=symmetric, threads=1)
        glove = Glove(count_cooccurrences(novel, GloveSettings(symmetric=symmetric)), settings)
        counts = plain_counts(novel, 10, symmetric=symmetric)
        losses = [glove.loss()]
        assert losses[0] == pytest.approx(direct_loss(glove, counts, novel.words, settings), rel=1e-6)
        for _ in range(4):
            epoch = glove.train()
            assert epoch.loss == pytest.approx(direct_loss(glove, counts, novel.words, settings), rel=1e-6)
            losses.append(epoch.loss)
        assert losses == sorted(losses, reverse=True)
        assert epoch.number == 4

    def test_one_step_is_the_formula(self):
        """AdaGrad on f · difference² / 2, in double precision beside the kernel's float32."""
        records = as_records((1, 2, 3.0))
        settings = GloveSettings(dimensions=5, x_max=10, learning_rate=0.1, threads=1)
        glove = Glove(Cooccurrences([records], 4, symmetric=False), settings)
        glove.state[:, :, 1] = 2.5  # as if there had been steps before
        before = glove.state.astype(np.float64)
        epoch = glove.train()
        v, u = before[0, 1, 0], before[1, 2, 0]
        weight = (3 / 10) ** 0.75
        difference = v[:5] @ u[:5] + v[-1] + u[-1] - math.log(3)
        for row, other, found in ((v, u, glove.state[0, 1]), (u, v, glove.state[1, 2])):
            gradient = weight * difference * np.append(other[:5], 1.0)
            numbers = np.append(row[:5], row[-1]) - 0.1 * gradient / math.sqrt(2.5)
            squares = 2.5 + (0.1 * gradient) ** 2
            np.testing.assert_allclose(np.append(found[0, :5], found[0, -1]), numbers, rtol=1e-5)  # of float32
            np.testing.assert_allclose(np.append(found[1, :5], found[1, -1]), squares, rtol=1e-6)
        assert epoch.cost == pytest.approx(weight * difference**2 / 2, rel=1e-6)
        untouched = np.ones((2, 4), bool)
        untouched[0, 1] = untouched[1, 2] = False
        np.testing.assert_array_equal(glove.state[untouched], before[untouched])

    def test_a_symmetric_record_is_two_steps(self):
        once = Cooccurrences([as_records((0, 1, 2.0), (1, 1, 0.5))], 2, symmetric=True)
        twice = Cooccurrences([as_records((0, 1, 2.0), (1, 0, 2.0), (1, 1, 0.5))], 2, symmetric=False)
        found = [Glove(counts, GloveSettings(dimensions=3, threads=1)) for counts in (once, twice)]
        epochs = [glove.train() for glove in found]
        assert epochs[0] == epochs[1]
        np.testing.assert_array_equal(found[0].state, found[1].state)

    def test_compiled_is_what_is_written(self, novel, tmp_path):
        counts = count_cooccurrences(novel)
        settings = GloveSettings(dimensions=12, x_max=10, threads=1)
        glove = Glove(counts, settings)
        state = glove.state.copy()
        epoch = glove.train()
        records = counts.parts[0]
        met = adagrad(records, state, True, settings.x_max, settings.alpha, settings.learning_rate)
        # Sums in another order differ in the last bits of float32, here over some thousand steps.
        np.testing.assert_allclose(glove.state, state, rtol=1e-3, atol=1e-5)
        assert epoch.cost == pytest.approx(met / counts.pairs, rel=1e-5)
        assert epoch.loss == pytest.approx(weighted_squares(records, state, True, 10, 0.75), rel=1e-5)

    def test_one_thread_gives_the_same_to_the_bit(self, novel, tmp_path):
        def vectors(seed: int):
            settings = GloveSettings(dimensions=10, epochs=3, threads=1, seed=seed)
            return train_glove(novel, settings).vectors

        np.testing.assert_array_equal(vectors(1), vectors(1))
        assert not np.array_equal(vectors(1), vectors(2))

    def test_two_threads_learn_as_well(self, novel, tmp_path):
        """Threads that write over each other lose a step now and then, no more."""
        losses = {}
        for threads in (1, 2):
            glove = Glove(count_cooccurrences(novel), GloveSettings(dimensions=10, x_max=5, threads=threads))
            losses[threads] = [glove.train().loss for _ in range(10)][-1]
        assert losses[2] < 1.1 * losses[1]

    def test_contexts_added_or_not(self, novel, tmp_path):
        counts = count_cooccurrences(novel)
        for added in (True, False):
            glove = Glove(counts, GloveSettings(dimensions=9, add_contexts=added))
            v, u = glove.vectors_and_contexts
            np.testing.assert_array_equal(glove.vectors(), v + u if added else v)
            assert glove.vectors().shape == (len(novel.words), 9)

    def test_progress(self, novel, tmp_path):
        watcher = Watcher()
        train_glove(novel, GloveSettings(dimensions=4, epochs=2, threads=1), progress=watcher)
        counted, *trained = watcher.updates
        assert counted == ("counting", len(novel.ids), len(novel.ids))
        assert [(stage, done / total) for stage, done, total in trained] == [("training", 0.5), ("training", 1)]
        assert [re.sub(r"[\d,.]+$", "…", text) for text in watcher.messages] == [
            f"epoch {number}: J {loss}, mean cost on the way …"
            for number, loss in ((1, watcher.messages[0].split()[3][:-1]), (2, watcher.messages[1].split()[3][:-1]))
        ]

    def test_words_that_never_meet(self, tmp_path):
        text = make_text(tmp_path, "one\ntwo\nthree\n")
        with pytest.raises(DataError, match="no two words"):
            train_glove(text, GloveSettings())

    def test_a_rate_that_is_too_large(self, novel, tmp_path):
        settings = GloveSettings(dimensions=4, learning_rate=1e30, epochs=3, threads=1)
        with pytest.raises(ConfigError, match="lower learning_rate"):
            train_glove(novel, settings)

    @pytest.mark.parametrize(
        "settings", [{"dimensions": 0}, {"window": 0}, {"x_max": 0}, {"learning_rate": -1}, {"alpha": math.nan}]
    )
    def test_settings_out_of_range(self, settings):
        with pytest.raises(ConfigError, match=f"{next(iter(settings))} is .*: it must be"):
            GloveSettings(**settings)


class TestSkipGram:
    def test_learns_what_stands_in_like_places(self, tmp_path):
        """Cats and dogs do the same things here, and stones other things."""
        lines = ["the cat runs home and eats meat", "the dog runs home and eats meat", "a stone lies under blue water"]
        text = make_text(tmp_path, "\n".join(lines * 200))
        settings = SkipGramSettings(dimensions=16, epochs=10, subsampling=0, threads=1)
        cat, dog, stone = train_skip_gram(text, settings).vectors_of(["cat", "dog", "stone"])

        def cosine(one, other):
            return one @ other / np.linalg.norm(one) / np.linalg.norm(other)

        assert cosine(cat, dog) > cosine(cat, stone) + 0.1

    def test_one_thread_gives_the_same_to_the_bit(self, novel):
        def vectors(seed: int):
            return train_skip_gram(novel, SkipGramSettings(dimensions=8, epochs=2, threads=1, seed=seed))

        assert vectors(1).words == novel.words
        np.testing.assert_array_equal(vectors(1).vectors, vectors(1).vectors)
        assert not np.array_equal(vectors(1).vectors, vectors(2).vectors)

    def test_progress(self, novel):
        watcher = Watcher()
        train_skip_gram(novel, SkipGramSettings(dimensions=4, epochs=3, threads=1), progress=watcher)
        assert watcher.updates[-1] == ("training", 3 * novel.tokens, 3 * novel.tokens)

    def test_settings_out_of_range(self):
        with pytest.raises(ConfigError, match="negatives is 0: it must be at least 1"):
            SkipGramSettings(negatives=0)


def test_a_missing_extra_says_what_to_install(novel, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(MissingExtraError, match=r"needs gensim: pip install \"elmokit\[static\]\""):
        train_skip_gram(novel, SkipGramSettings())
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r"needs numba: pip install \"elmokit\[static\]\""):
        compiled.__wrapped__(adagrad)  # without what was compiled before
