"""Words in a corpus: read, drawn, compared; against plain computations with an embedder of known vectors."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from zlib import crc32

import numpy as np
import pytest

from elmokit import lexicon
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.neighbors import context_neighbors, word_neighbors
from elmokit.lexicon.occurrences import draw_occurrences, find_occurrences, survey, type_vectors
from elmokit.text.brackets import has_brackets, read_brackets
from elmokit.text.corpus import make_corpus, open_corpus
from elmokit.text.tokenizers import get_tokenizer

TOKENIZER = get_tokenizer("words")
RIVER = "water boat steep green shore reed fish mud willow stream ferry swan".split()
MONEY = "gold loan clerk cheque vault teller credit deposit account rate coin wage".split()


@cache
def _vector(word, width):
    return np.random.default_rng(crc32(word.encode())).normal(size=width)


class Neighborhood:
    """An embedder one can follow: layer 0 is a word's own random vector, layer 1 the mean of the words around it."""

    width, layer_count = 128, 2

    def embed(self, sentences, *, layers="average"):
        choose = {"average": lambda found: found.mean(axis=0), "top": lambda found: found[1]}
        return [choose.get(layers, lambda found: found[layers])(self._layers(sentence)) for sentence in sentences]

    def _layers(self, words):
        own = np.stack([_vector(word, self.width) for word in words])
        around = [np.delete(own, position, axis=0).mean(axis=0) for position in range(len(words))]
        return np.stack([own, np.stack(around)]).astype(np.float32)  # (2, T, D)


EMBEDDER = Neighborhood()


class Recorder:
    """Progress that is kept."""

    def __init__(self):
        self.updates = []

    def message(self, text, /):
        raise AssertionError(text)

    def update(self, stage, done, total=None, /, *, unit="", note=""):
        self.updates.append((stage, done, total, unit))


def around(word, topic, count, *, seed=0):
    """Sentences with the word between random words of a topic."""
    random = np.random.default_rng(seed)
    draws = (random.choice(topic, 6, replace=False).tolist() for _ in range(count))
    return [[*words[:3], word, *words[3:]] for words in draws]


def plain_occurrences(corpus, word, layers):
    """Every occurrence with its vector, one sentence at a time."""
    return [
        (context, position, EMBEDDER.embed([context.words], layers=layers)[0][position])
        for context in corpus
        for position, token in enumerate(context.words)
        if token == word
    ]


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.fixture(scope="module")
def corpus():
    banks = around("bank", RIVER, 30) + around("bank", MONEY, 20, seed=1)
    return make_corpus([*banks, *around("oak", RIVER, 25, seed=2), ["rare", "oak", "!", "oak"]])


class TestCorpus:
    def test_files_of_every_kind(self, tmp_path):
        (tmp_path / "a.txt").write_text("He came. She went.\n\n他来了。她走了。\n", encoding="utf-8")
        (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Mr. Bennet sat."))
        objects = [{"text": "One fish. Two fish."}, {"text": "Red fish."}]
        (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
        corpus = open_corpus([tmp_path], TOKENIZER)
        texts = [
            "He came.",
            "She went.",
            "他来了。",
            "她走了。",
            "Mr. Bennet sat.",
            "One fish.",
            "Two fish.",
            "Red fish.",
        ]
        assert [context.text for context in corpus] == texts
        documents = [context.document.removeprefix(f"{tmp_path}/") for context in corpus]
        assert documents == [*["a.txt"] * 4, "b.txt.gz", "c.jsonl:1", "c.jsonl:1", "c.jsonl:2"]
        for context in corpus:
            assert all(context.text[start:end] == token for token, start, end in context.tokens)

    def test_lines_that_are_sentences(self, tmp_path):
        (tmp_path / "a.txt").write_text("He came. She went.\nThen\n", encoding="utf-8")
        corpus = open_corpus([tmp_path / "a.txt"], TOKENIZER, lines="sentences")
        assert [context.words for context in corpus] == [["He", "came", ".", "She", "went", "."], ["Then"]]

    def test_text_without_an_end(self, tmp_path):
        (tmp_path / "a.txt").write_text("word " * 25_000, encoding="utf-8")
        assert [len(context.tokens) for context in open_corpus([tmp_path / "a.txt"], TOKENIZER)] == [
            10_000,
            10_000,
            5_000,
        ]

    def test_survey(self, corpus):
        known = survey(corpus)
        assert known.sentences == 76
        assert known.counts == Counter(word for context in corpus for word in context.words)

    def test_no_words(self, tmp_path):
        (tmp_path / "a.txt").write_text(" \n\n", encoding="utf-8")
        with pytest.raises(DataError, match="no words"):
            survey(open_corpus([tmp_path / "a.txt"], TOKENIZER))

    @pytest.mark.parametrize(("word", "near"), [("bnak", "bank"), ("Water", "water"), ("depositt", "deposit")])
    def test_near_spellings(self, corpus, word, near):
        with pytest.raises(DataError, match=rf"no word '{word}'; near spellings that it has: {near}"):
            survey(corpus).check_words(word)

    def test_near_spellings_in_chinese(self):
        known = survey(make_corpus([["宝玉", "见", "黛玉", "来", "了"]]))
        with pytest.raises(DataError, match="宝玉"):
            known.check_words("宝王")

    def test_no_near_spelling(self, corpus):
        with pytest.raises(DataError, match="no word 'zzz', nor one spelled nearly so"):
            survey(corpus).check_words("zzz")


class TestBrackets:
    @pytest.mark.parametrize(
        ("tokenizer", "text", "words", "position"),
        [
            ("words", "He sat on the [bank] of it.", ["He", "sat", "on", "the", "bank", "of", "it", "."], 4),
            ("words", "[Don't] go", ["Don't", "go"], 0),
            ("words", "A [New York] minute", ["A", "New York", "minute"], 1),
            ("words", "[ bank ]", ["bank"], 0),
            ("jieba", "他在【银行】工作。", ["他", "在", "银行", "工作", "。"], 2),
            ("jieba", "读［红楼］梦", ["读", "红楼", "梦"], 1),
            ("characters", "他在[银行]工作", ["他", "在", "银行", "工", "作"], 2),
        ],
    )
    def test_the_word_in_brackets_is_one_token(self, tokenizer, text, words, position):
        found = read_brackets(text, get_tokenizer(tokenizer))
        assert (found.context.words, found.position, found.word) == (words, position, words[position])
        assert all(found.context.text[start:end] == token for token, start, end in found.context.tokens)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("He sat on the bank.", "no word in brackets"),
            ("He sat on the [bank.", "no word in brackets"),
            ("He sat on the [bank】.", "no word in brackets"),
            ("He [sat] on the [bank].", "more brackets than one pair"),
            ("He [sat] on the 【bank】.", "more brackets than one pair"),
            ("He [[sat]] down.", "more brackets than one pair"),
            ("He [] down.", "nothing in its brackets"),
        ],
    )
    def test_mistakes(self, text, message):
        with pytest.raises(DataError, match=message):
            read_brackets(text, TOKENIZER)

    def test_has_brackets(self):
        assert [has_brackets(text) for text in ("宝玉", "【宝玉】", "bank]")] == [False, True, True]


class TestOccurrences:
    @pytest.mark.parametrize("layers", ["average", "top", 0, 1])
    def test_all_of_them(self, corpus, layers):
        found = find_occurrences(corpus, EMBEDDER, ["bank", "oak"], layers=layers, limit=None)
        for word, occurrences in found.items():
            plain = plain_occurrences(corpus, word, layers)
            assert [(context, position) for context, position, _ in occurrences] == [entry[:2] for entry in plain]
            for occurrence, (_, _, vector) in zip(occurrences, plain, strict=True):
                np.testing.assert_array_equal(occurrence.vector, vector)
                assert occurrence.token == word
        assert found["oak"][-1].bracketed == "rare oak ! [oak]"

    def test_a_limit_draws_so_many(self, corpus):
        draws = [find_occurrences(corpus, EMBEDDER, ["bank", "rare"], limit=7, seed=seed) for seed in (0, 0, 1)]
        texts = [[occurrence.bracketed for occurrence in draw["bank"]] for draw in draws]
        assert [len(draw) for draw in texts] == [7, 7, 7]
        assert texts[0] == texts[1] != texts[2]
        assert len(draws[0]["rare"]) == 1

    def test_each_occurrence_is_as_likely(self):
        """Of 5 occurrences 2 are drawn, 4,000 times: each 1,600 times, give or take 4 standard deviations (31)."""
        corpus = make_corpus([["a"], ["a", "b", "a"], ["a", "a"]])
        drawn: Counter[tuple[int, int]] = Counter()
        for seed in range(4000):
            for context, positions in draw_occurrences(corpus, {"a": 5}, limit=2, seed=seed):
                drawn.update((corpus.index(context), position) for position in positions)
        assert drawn.total() == 8000
        assert len(drawn) == 5
        assert all(abs(count - 1600) < 124 for count in drawn.values())

    def test_what_is_drawn_of_a_word_does_not_depend_on_others(self, corpus):
        alone, beside = (
            find_occurrences(corpus, EMBEDDER, words, limit=5)["bank"] for words in (["bank"], ["oak", "bank"])
        )
        assert [one.bracketed for one in alone] == [one.bracketed for one in beside]

    def test_sentences_that_are_not_needed_are_not_embedded(self, corpus):
        class Counting(Neighborhood):
            seen = 0

            def embed(self, sentences, *, layers="average"):
                self.seen += len(sentences)
                return super().embed(sentences, layers=layers)

        embedder = Counting()
        find_occurrences(corpus, embedder, ["bank"], limit=5)
        assert embedder.seen == 5

    def test_both_readings_are_reported(self, corpus):
        progress = Recorder()
        find_occurrences(corpus, EMBEDDER, ["bank"], limit=5, progress=progress)
        counting = [("counting words", number, None, "sentences") for number in range(1, 77)]
        assert progress.updates == counting + [("embedding", number, 76, "sentences") for number in range(1, 77)]

    def test_a_generator_is_refused(self):
        with pytest.raises(DataError, match="not a generator"):
            find_occurrences((context for context in make_corpus([["a"]])), EMBEDDER, ["a"])

    @pytest.mark.parametrize(
        ("settings", "message"), [({"layers": "all"}, "'all' is not one"), ({"limit": 0}, "must be at least 1")]
    )
    def test_settings(self, corpus, settings, message):
        with pytest.raises(ConfigError, match=message):
            find_occurrences(corpus, EMBEDDER, ["bank"], **settings)


class TestTypes:
    @pytest.mark.parametrize("layers", ["average", 1])
    def test_means(self, corpus, layers):
        types = type_vectors(corpus, EMBEDDER, layers=layers, min_count=10)
        counts = survey(corpus).counts
        assert list(types.words) == [word for word, count in counts.most_common() if count >= 10]
        assert list(types.counts) == [counts[word] for word in types.words]
        for word, vector in zip(types.words, types.vectors, strict=True):
            plain = np.mean([entry[2] for entry in plain_occurrences(corpus, word, layers)], axis=0)
            np.testing.assert_allclose(vector, plain, atol=1e-6)  # sums here are in double precision

    def test_which_words(self, corpus):
        types = type_vectors(corpus, EMBEDDER, min_count=1, max_words=2, also=["rare"])
        assert types.words[0] == "bank"
        assert (len(types.words), types.words[2]) == (3, "rare")
        assert "!" not in type_vectors(corpus, EMBEDDER, min_count=1).words

    def test_a_word_that_is_missing(self, corpus):
        with pytest.raises(DataError, match="near spellings"):
            type_vectors(corpus, EMBEDDER, also=["banks"])


class TestNeighbors:
    def test_of_a_word(self, corpus):
        types = type_vectors(corpus, EMBEDDER, min_count=5)
        found = word_neighbors("bank", types, k=4)
        own = types.vectors[types.words.index("bank")]
        cosines = {word: cosine(own, vector) for word, vector in zip(types.words, types.vectors, strict=True)}
        del cosines["bank"]
        assert [word for word, _ in found] == sorted(cosines, key=cosines.get, reverse=True)[:4]
        assert [value for _, value in found] == pytest.approx([cosines[word] for word, _ in found], abs=1e-6)

    def test_words_in_like_contexts_are_near(self, corpus):
        """By layer 1 all words of the river, and the bank, come before any word of money."""
        types = type_vectors(corpus, EMBEDDER, layers=1, min_count=5)
        assert {near.word for near in word_neighbors("oak", types, k=13)} == {"bank", *RIVER}

    def test_fewer_words_than_asked_for(self, corpus):
        types = type_vectors(corpus, EMBEDDER, min_count=25)
        assert len(word_neighbors("bank", types, k=50)) == len(types.words) - 1

    @pytest.mark.parametrize("any_word", [False, True])
    @pytest.mark.parametrize("layers", ["average", 1])
    def test_in_context(self, corpus, any_word, layers):
        query = read_brackets("the steep green [bank] of the stream", TOKENIZER)
        found = context_neighbors(query, corpus, EMBEDDER, k=12, any_word=any_word, layers=layers)
        own = EMBEDDER.embed([query.context.words], layers=layers)[0][3]
        words = {word for context in corpus for word in context.words} if any_word else {"bank"}
        plain = [entry for word in words for entry in plain_occurrences(corpus, word, layers)]
        cosines = sorted((cosine(own, vector) for _, _, vector in plain), reverse=True)
        assert [near.cosine for near in found] == pytest.approx(cosines[:12], abs=1e-6)
        for occurrence, value in found:
            assert cosine(own, occurrence.vector) == pytest.approx(value, abs=1e-6)

    def test_the_sense_is_found(self, corpus):
        for text, topic in (("coin rate [bank] loan vault", MONEY), ("boat shore [bank] swan reed", RIVER)):
            for occurrence, _ in context_neighbors(
                read_brackets(text, TOKENIZER), corpus, EMBEDDER, k=10, layers="top"
            ):
                assert len(set(occurrence.context.words) & set(topic)) == 6

    def test_a_query_as_a_string(self, corpus, tmp_path):
        """By the tokenizer of the corpus, or of the model."""
        (tmp_path / "bank.txt").write_text("A green bank. A rich bank.", encoding="utf-8")
        text = open_corpus([tmp_path / "bank.txt"], TOKENIZER)
        found = context_neighbors("The green [bank].", text, EMBEDDER, k=1)
        assert [near.occurrence.bracketed for near in found] == ["A green [bank]."]
        with pytest.raises(ConfigError, match="neither the corpus nor the embedder has a tokenizer"):
            context_neighbors("The green [bank].", corpus, EMBEDDER)

    def test_no_sentence_twice_nor_the_query_itself(self):
        corpus = make_corpus([["by", "the", "bank"], ["a", "bank"], ["a", "bank"], ["bank", "bank"]])
        found = context_neighbors(read_brackets("by the [bank]", TOKENIZER), corpus, EMBEDDER, k=10)
        assert sorted(near.occurrence.bracketed for near in found) == ["[bank] bank", "a [bank]", "bank [bank]"]

    def test_mistakes(self, corpus):
        types = type_vectors(corpus, EMBEDDER)
        with pytest.raises(DataError, match="no vector for 'zebra'"):
            word_neighbors("zebra", types)
        with pytest.raises(ConfigError, match="k is 0"):
            word_neighbors("bank", types, k=0)
        with pytest.raises(DataError, match="near spellings that it has: bank"):
            context_neighbors(read_brackets("the [banks]", TOKENIZER), corpus, EMBEDDER)


class TestFrontDoor:
    def test_names(self):
        assert set(dir(lexicon)) == set(lexicon.__all__)
        for name in lexicon.__all__:
            assert getattr(lexicon, name).__name__ == name  # a verb or a class, never the module of that name
        with pytest.raises(AttributeError, match="nonsense"):
            _ = lexicon.nonsense

    def test_import_leaves_torch_alone(self):
        code = "import sys, elmokit.lexicon; sys.exit(any(name in sys.modules for name in ('torch', 'numpy')))"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
