"""Concordance, collocations and keyness, by hand; metadata on its way through all of them."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from conftest import random_elmo
from rich.cells import cell_len
from test_surprisal_tables import run

import elmokit
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon import (
    CachedCorpus,
    Surroundings,
    find_collocations,
    find_keyness,
    find_lines,
    find_occurrences,
    find_senses,
    make_corpus,
    open_corpus,
)
from elmokit.lexicon.association import log_likelihood, pointwise_mutual_information
from elmokit.static.embedders import StaticVectors
from elmokit.static.surroundings import StaticSurroundings
from elmokit.text.brackets import read_brackets
from elmokit.text.tables import read_table

TEXTS = {
    "a.txt": "The old bank of the river was steep. We sat on the bank.\nThe bank raised its rates.",
    "b.txt": "A bank holds money. No Bank is like this bank of the river.",
}
TABLE = "document,date,author\na.txt,1813,Austen\nb,1897,Stoker\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).write_text(text, encoding="utf-8")
    (tmp_path / "dates.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def corpus(folder):
    return open_corpus(folder / "texts", "words", metadata=folder / "dates.csv")


class TestLines:
    def test_in_the_order_of_the_text(self, corpus):
        lines = find_lines("bank", corpus)
        contexts = list(corpus)
        assert len(lines) == 5
        for line in lines:
            assert contexts[line.sentence].text == line.left + line.word + line.right
            assert contexts[line.sentence].words[line.position] == line.word == "bank"
            assert contexts[line.sentence].document == line.document
        assert [line.sentence for line in lines] == [0, 1, 2, 3, 4]
        assert [line.metadata["author"] for line in lines] == ["Austen"] * 3 + ["Stoker"] * 2
        assert len(find_lines("bank", corpus, ignore_case=True)) == 6

    def test_by_the_words_beside(self, corpus):
        right = [line.right.strip() for line in find_lines("bank", corpus, sort="right")]
        assert right == [".", "holds money.", "of the river.", "of the river was steep.", "raised its rates."]
        left = [line.left.split()[::-1] for line in find_lines("bank", corpus, sort="left")]
        assert [words[0] for words in left] == ["A", "old", "The", "the", "this"]  # the nearest word first, in any case

    def test_by_similarity(self, corpus, elmo):
        lines = find_lines("bank", corpus, sort="similarity", embedder=elmo, example="the [bank] of the river")
        query = read_brackets("the [bank] of the river", corpus.tokenizer)
        own = elmo.embed([query.context.words])[0][query.position]
        for line in lines:
            vector = elmo.embed([list(corpus)[line.sentence].words])[0][line.position]
            expected = vector @ own / np.linalg.norm(vector) / np.linalg.norm(own)
            assert line.similarity == pytest.approx(expected, abs=1e-5)
        assert [line.similarity for line in lines] == sorted((line.similarity for line in lines), reverse=True)

    def test_by_sense(self, elmo):
        sentences = [f"the {a} bank of {b}".split() for a in "abcdefgh" for b in ("money", "river")]
        corpus = make_corpus([*sentences, ["bank", "and", "bank"]])
        lines = find_lines("bank", corpus, sort="sense", embedder=Surroundings(elmo), layers="top")
        found = find_senses("bank", corpus, Surroundings(elmo), layers="top")
        assert Counter(line.sense for line in lines) == Counter((found.labels + 1).tolist())
        assert [line.sense for line in lines] == sorted(line.sense for line in lines)

    def test_by_static_vectors_of_the_words_around(self, corpus, elmo):
        vectors = StaticVectors(["river", "money", "the"], np.array([[1, 0], [0, 1], [0, 0]], np.float32))
        static = StaticSurroundings(vectors)
        lines = find_lines("bank", corpus, embedder=elmo, static=static, example="the [bank] of the river")
        assert [line.static_similarity for line in lines] == pytest.approx([1, 0, 0, 0, 1])

    def test_some_of_them(self, corpus):
        some = find_lines("bank", corpus, limit=2, seed=3)
        assert len(some) == 2
        assert [line for line in find_lines("bank", corpus) if line in some] == some

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sort": "up"}, "unknown order 'up'"),
            ({"sort": "similarity"}, r"give an example, as in 'He sat on the \[bank\]"),
            ({"sort": "sense"}, "need a model"),
            ({"sort": "sense", "ignore_case": True, "embedder": random_elmo()}, "those of one spelling"),
        ],
    )
    def test_mistakes(self, corpus, options, message):
        with pytest.raises(ConfigError, match=message):
            find_lines("bank", corpus, **options)

    def test_a_word_that_is_not_there(self, corpus):
        with pytest.raises(DataError, match="no word 'banq'; near spellings that it has: bank"):
            find_lines("banq", corpus)


def test_the_words_around_by_hand():
    vectors = StaticVectors(list("abc"), np.array([[1, 0], [0, 1], [2, 2]], np.float32))
    [found] = StaticSurroundings(vectors, window=1).embed([["a", "b", "?", "c"]])
    np.testing.assert_allclose(found, [[0, 1], [1, 0], [1, 1.5], [0, 0]])
    assert StaticSurroundings(vectors).embed([["a"]], layers="all")[0].tolist() == [[[0, 0]]]


class TestCommand:
    @pytest.mark.parametrize("width", [30, 60])
    def test_the_word_stands_in_one_column(self, tmp_path, width, capsys):
        text = "他在河边看见银行。银行很大，很多很多很多很多很多很多很多很多很多人去银行。ATM 在银行里。"
        (tmp_path / "zh.txt").write_text(text, encoding="utf-8")
        run("concordance", "银行", "--corpus", tmp_path / "zh.txt", "--width", width)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 4
        assert len({cell_len(line[: line.index("  银行  ") + 2]) for line in lines}) == 1
        assert all(cell_len(line) <= width for line in lines)

    def test_needs_no_model(self, folder, capsys):
        run("concordance", "bank", "--corpus", folder / "texts", "--metadata", folder / "dates.csv", "--sort", "left")
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 5
        assert lines[0].endswith("1897  Stoker")

    def test_unaligned_metadata(self, folder, caplog):
        (folder / "other.csv").write_text("document,date\nc.txt,1800\n")
        with pytest.raises(DataError, match="other.csv names none of the documents: it has c.txt …, the corpus"):
            open_corpus(folder / "texts", "words", metadata=folder / "other.csv")
        (folder / "half.csv").write_text("document,date\na,1813\n")
        with caplog.at_level("INFO", logger="elmokit"):
            found = list(open_corpus(folder / "texts", "words", metadata=folder / "half.csv"))
        assert "lacks 1 of 2 documents" in caplog.text
        assert {context.metadata["date"] for context in found} == {"1813", ""}
        (folder / "twice.csv").write_text("document,date\na,1813\na,1814\n")
        with pytest.raises(DataError, match="two rows for the document 'a'"):
            open_corpus(folder / "texts", "words", metadata=folder / "twice.csv")
        (folder / "none.csv").write_text("file,date\na,1813\n")
        with pytest.raises(DataError, match="none.csv has no column 'document': it has file, date"):
            open_corpus(folder / "texts", "words", metadata=folder / "none.csv")

    def test_a_column_that_is_there_already(self, folder):
        (folder / "word.csv").write_text("document,word\na,x\n")
        arguments = ["--corpus", folder / "texts", "--metadata", folder / "word.csv", "-o", folder / "t.csv"]
        with pytest.raises(ConfigError, match="two columns of the table would be named 'word'"):
            run("concordance", "bank", *arguments)
        assert not (folder / "t.csv").exists()


class TestMetadata:
    def test_goes_with_every_occurrence(self, corpus, elmo, folder):
        found = find_occurrences(corpus, elmo, ["bank"])["bank"]
        assert [one.context.metadata["date"] for one in found] == ["1813"] * 3 + ["1897"] * 2
        assert find_senses("bank", corpus, elmo).senses[0].examples[0].context.metadata["author"]

    def test_is_not_kept_but_read_anew(self, folder, elmo):
        def ask():
            corpus = open_corpus(folder / "texts", "words", metadata=folder / "dates.csv")
            near = CachedCorpus(corpus, elmo).context_neighbors("the [bank] of it", k=5)
            return sorted(one.context.metadata["date"] for one, _ in near)

        assert ask() == ["1813"] * 3 + ["1897"] * 2
        (folder / "dates.csv").write_text(TABLE.replace("1897", "1901"))
        assert ask() == ["1813"] * 3 + ["1901"] * 2

    def test_objects_of_a_jsonl_file(self, tmp_path):
        texts = "\n".join(json.dumps({"text": text}) for text in TEXTS.values())
        (tmp_path / "n.jsonl").write_text(texts)
        (tmp_path / "m.tsv").write_text("document\tyear\nn.jsonl:1\t1813\nn.jsonl:2\t1897\n")
        corpus = open_corpus(tmp_path / "n.jsonl", "words", metadata=tmp_path / "m.tsv")
        assert [context.metadata["year"] for context in corpus] == ["1813"] * 3 + ["1897"] * 2

    def test_index(self, folder, model_folder, capsys):
        pytest.importorskip("lancedb")
        arguments = [folder / "texts", "-m", model_folder, "--metadata", folder / "dates.csv", "-o", folder / "index"]
        run("index", "build", *arguments)
        capsys.readouterr()
        run("index", "search", folder / "index", "the [bank] of it", "-o", folder / "t.csv", "--json")
        found = json.loads(capsys.readouterr().out)["neighbors"]
        assert sorted(one["occurrence"]["metadata"]["date"] for one in found) == ["1813"] * 3 + ["1897"] * 2
        assert [row["date"] for row in read_table(folder / "t.csv").rows] == [
            one["occurrence"]["metadata"]["date"] for one in found
        ]


class TestAssociation:
    def test_log_likelihood_by_hand(self):
        """2 sum O ln(O / E) over the four cells, and the example of Dunning (1993): `the swiss`, 110 of 3,094."""
        observed = np.array([[8, 12], [22, 958]])
        expected = observed.sum(1, keepdims=True) * observed.sum(0) / observed.sum()
        by_hand = 2 * (observed * np.log(observed / expected)).sum()
        assert log_likelihood(8, 20, 30, 1000) == pytest.approx(by_hand)
        assert log_likelihood(110, 2552, 221, 31777) == pytest.approx(270.72, abs=0.3)
        assert log_likelihood(6, 20, 300, 1000) == pytest.approx(0)  # as chance has it

    def test_pmi(self):
        assert pointwise_mutual_information(8, 20, 100, 1000) == pytest.approx(2)  # four times as often as chance

    def test_collocations_by_hand(self, corpus):
        found = {one.word: one for one in find_collocations("bank", corpus, window=2, min_count=1, k=99)}
        words = [context.words for context in corpus]
        total = sum(word != "bank" for sentence in words for word in sentence)
        near = Counter()
        for sentence in words:
            hits = [at for at, word in enumerate(sentence) if word == "bank"]
            near.update(
                word for at, word in enumerate(sentence) if word != "bank" and any(abs(at - hit) <= 2 for hit in hits)
            )
        of = found["of"]
        assert (of.near, of.frequency) == (near["of"], 2)
        assert of.expected == pytest.approx(near.total() * 2 / total)
        assert of.pmi == pytest.approx(math.log2(near["of"] / of.expected))
        assert of.log_likelihood == pytest.approx(log_likelihood(near["of"], near.total(), 2, total))
        assert "bank" not in found
        assert all(one.near > one.expected for one in found.values())
        content = find_collocations("bank", corpus, min_count=1, k=99, content_words=True)
        assert not {"of", "the", "The"} & {one.word for one in content}

    def test_planted_collocation(self):
        common, rare = [["strong", "tea"]] * 40 + [["strong", "light"]] * 2, [["once", "tea"]] * 3
        corpus = make_corpus([*common, *rare, *[["the", "weak", "light"]] * 40])
        by_score, by_pmi = (find_collocations("tea", corpus, by=by, k=1)[0] for by in ("log-likelihood", "pmi"))
        assert (by_score.word, by_pmi.word) == ("strong", "once")  # sure, and rare elsewhere

    def test_keyness_by_hand(self):
        here, there = make_corpus([["sea", "ship", "the"]] * 10), make_corpus([["the", "land", "sea"]] * 20)
        found = find_keyness(here, there)
        assert [one.word for one in found] == ["ship"]  # the others have the same share
        ship = found[0]
        assert (ship.frequency, ship.reference_frequency) == (10, 0)
        expected = 10 * 30 / 90  # Rayson and Garside: 2 (a ln(a / E1) + b ln(b / E2)), and two cells of the rest
        rest = 20 * math.log(20 / (80 * 30 / 90)) + 60 * math.log(60 / (80 * 60 / 90))
        assert ship.log_likelihood == pytest.approx(2 * (10 * math.log(10 / expected) + rest))
        assert ship.log_ratio == pytest.approx(math.log2((10 / 30) / (0.5 / 60)))
        assert ship.p_value < 1e-4
        assert ship.per_million == pytest.approx(1e6 / 3)

    def test_mistakes(self, corpus):
        with pytest.raises(DataError, match="no word 'banq'"):
            find_collocations("banq", corpus)
        with pytest.raises(ConfigError, match="the window is 0"):
            find_collocations("bank", corpus, window=0)
        with pytest.raises(ConfigError, match="unknown measure 'x': known are log-likelihood, log-ratio"):
            find_keyness(corpus, corpus, by="x")


def test_similarity(model_folder, tmp_path, capsys):
    StaticVectors(["bank", "river"], np.array([[1, 0], [1, 1]], np.float32)).save(tmp_path / "v.txt")
    sentences = "the [bank] of it", "a [river]"
    run("similarity", *sentences, "-m", model_folder, "--static", tmp_path / "v.txt", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["similarity"] == pytest.approx(elmokit.load(model_folder).similarity(*sentences), abs=1e-6)
    assert found["static"] == pytest.approx(math.sqrt(0.5))
    run("similarity", "[zebra]", "[bank]", "-m", model_folder, "--static", tmp_path / "v.txt")
    assert capsys.readouterr().out.endswith(f"none has a vector  by {tmp_path / 'v.txt'}\n")
