"""Similarity and analogy sets, the scores on them, and the commands."""

import io
import json
import sys

import numpy as np
import pytest
import zstandard
from cyclopts import ValidationError

from elmokit.cli.static import static
from elmokit.errors import ConfigError, DataError, OutputError
from elmokit.static.embedders import OneHot, StaticVectors
from elmokit.static.evaluation import Pair, evaluate, evaluate_in_context, read_dataset, spearman

PAIRS = [Pair("tiger", "cat", 7.35), Pair("Book", "paper", 7.46), Pair("king", "cabbage", 0.23)]
SCWS = (
    "1\tbank\tn\tmoney\tn\tHe sat on the <b> bank </b> of it .\tAll his <b> money </b> went .\t1.5\t1.0\t2.0\n"
    "2\tbank\tn\tbank\tn\tThe <b> bank </b> raised rates .\tOn the <b> bank </b> grew reeds .\t4.0\t3.0\t5.0\n"
    "3\trate\tn\tNew York\tn\tThe <b> rate </b> fell .\tHe left <b> New York </b> .\t3.0\t3.0\t3.0\n"
)


def write(path, content: str):
    path.write_text(content, encoding="utf-8")
    return path


class TestDatasets:
    @pytest.mark.parametrize(
        "content",
        [
            "tiger\tcat\t7.35\r\nBook\tpaper\t7.46\r\nking\tcabbage\t0.23\r\n",
            "Word 1,Word 2,Human (mean)\ntiger,cat,7.35\nBook,paper,7.46\nking,cabbage,0.23\n",
            "tiger cat 7.35\nBook paper 7.46\n\nking cabbage 0.23",
            "\ufeffword1\tword2\tPOS\tSimLex999\tconc(w1)\ntiger\tcat\tN\t7.35\t1\nBook\tpaper\tN\t7.46\t4\nking\tcabbage\tN\t0.23\t9\n",
            "# a remark\ntiger;cat;7.35\nBook;paper;7.46\nking;cabbage;0.23\n",
        ],
    )
    def test_pairs(self, tmp_path, content):
        found = read_dataset(write(tmp_path / "set.txt", content))
        assert found.name == "set"
        assert list(found.pairs) == PAIRS
        assert not found.questions
        assert not found.in_context

    def test_questions(self, tmp_path):
        content = ": family\r\nboy girl he she\r\nking queen man woman\r\n: 山\r\n山 一 水 二\r\n"
        found = read_dataset(write(tmp_path / "q.txt", content))
        assert found.questions == (
            ("family", (("boy", "girl", "he", "she"), ("king", "queen", "man", "woman"))),
            ("山", (("山", "一", "水", "二"),)),
        )

    def test_words_in_context(self, tmp_path):
        found = read_dataset(write(tmp_path / "scws.txt", SCWS)).in_context
        assert [pair.score for pair in found] == [1.5, 4.0, 3.0]
        assert found[0].first == ("He sat on the bank of it .".split(), 4, 5)
        assert found[2].second == ("He left New York .".split(), 2, 4)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "an empty file"),
            ("a\tb\t1\nc\td\n", "line 2: found 'c\\td'"),
            ("names\nof columns\n", "line 2: found 'of columns'"),
            (": g\na b c\n", "line 2: found 'a b c'"),
            (SCWS.replace("</b> raised", "raised"), "line 2: found"),
        ],
    )
    def test_mistakes_name_their_line(self, tmp_path, content, message):
        with pytest.raises(DataError) as caught:
            read_dataset(write(tmp_path / "set.txt", content))
        assert message in str(caught.value)

    def test_not_utf8_or_missing(self, tmp_path):
        (tmp_path / "set.txt").write_bytes(b"a\tb\t1\ncaf\xe9\tb\t2\n")
        with pytest.raises(DataError, match="line 2: not UTF-8"):
            read_dataset(tmp_path / "set.txt")
        with pytest.raises(DataError, match="cannot be read"):
            read_dataset(tmp_path / "missing.txt")

    @pytest.mark.parametrize(
        ("name", "pairs", "questions", "in_context"),
        [
            ("en/EN-WS-353-ALL.txt", 353, 0, 0),
            ("en/EN-SIMLEX-999.txt", 999, 0, 0),
            ("en/EN-MEN-TR-3k.txt", 3000, 0, 0),
            ("en/questions-words.txt", 0, 19544, 0),
            ("en/scws.ratings.txt", 0, 0, 2003),
            ("zh/zh-240.txt", 240, 0, 0),
            ("zh/zh-297.txt", 297, 0, 0),
            ("zh/ca8-morphological.txt", 0, 10177, 0),
            ("zh/ca8-semantic.txt", 0, 7636, 0),
        ],
    )
    def test_sets_as_they_are_handed_around(self, shared_data, name, pairs, questions, in_context):
        found = read_dataset(shared_data / "similarity" / name)
        counts = len(found.pairs), sum(len(group) for _, group in found.questions), len(found.in_context)
        assert counts == (pairs, questions, in_context)


class TestScores:
    def test_spearman_is_scipys(self):
        """With ties."""
        from scipy.stats import spearmanr

        random = np.random.default_rng(0)
        for high in (3, 20, 10**6):
            first, second = random.integers(high, size=(2, 50)).astype(float)
            assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
        assert spearman(np.array([1.0, 2.0]), np.array([3.0, 3.0])) is None
        assert spearman(np.array([]), np.array([])) is None

    def test_similarity_and_its_coverage(self, tmp_path):
        vectors = np.array([[1, 0], [1, 0.1], [0, 1], [-1, 0.2]], np.float32)
        static_vectors = StaticVectors(["a", "b", "c", "d"], vectors, lower_case=True)
        content = "a\tB\t9\na\tc\t5\na\td\t1\na\tmissing\t7\n"
        (result,) = evaluate(static_vectors, read_dataset(write(tmp_path / "s.txt", content)))
        assert (result.value, result.found, result.total) == (pytest.approx(1), 3, 4)
        strict = StaticVectors(["a", "b", "c", "d"], vectors)
        assert evaluate(strict, read_dataset(tmp_path / "s.txt"))[0].found == 2

    @pytest.mark.parametrize("method", ["add", "mul"])
    def test_analogies(self, tmp_path, method):
        """Vectors that are sums of what the words mean; the question's own words would be nearer, and do not count."""
        royal, male, female, young = np.eye(4, dtype=np.float32) + 0.05
        vectors = [royal + male, royal + female, male, female, young + male, young + female]
        words = ["king", "queen", "man", "woman", "boy", "girl"]
        static_vectors = StaticVectors(words, np.stack(vectors))
        content = ": family\nman woman king queen\nboy girl king queen\nman woman king girl\nman dog king queen\n"
        family, everything = evaluate(static_vectors, read_dataset(write(tmp_path / "q.txt", content)), method=method)
        assert (family.part, family.measure, family.found, family.total) == ("family", "accuracy", 3, 4)
        assert family.value == everything.value == pytest.approx(2 / 3)
        limited = evaluate(static_vectors, read_dataset(tmp_path / "q.txt"), method=method, limit=4)[0]
        assert (limited.found, limited.value) == (1, 1.0)

    @pytest.mark.filterwarnings("ignore:Call to deprecated `init_sims`")  # gensim's own
    @pytest.mark.parametrize("method", ["add", "mul"])
    def test_analogies_in_blocks_are_those_of_gensim(self, tmp_path, method, monkeypatch):
        from gensim.models import KeyedVectors

        from elmokit.static import evaluation

        random = np.random.default_rng(1)
        words = [f"w{number}" for number in range(60)]
        theirs = KeyedVectors(8)
        theirs.add_vectors(words, random.standard_normal((60, 8)).astype(np.float32))
        monkeypatch.setattr(evaluation, "SCORES_AT_A_TIME", 500)
        ask = theirs.most_similar if method == "add" else theirs.most_similar_cosmul
        questions = [random.choice(words, 3, replace=False).tolist() for _ in range(100)]
        lines = [f"{a} {b} {c} {ask(positive=[b, c], negative=[a], topn=1)[0][0]}" for a, b, c in questions]
        dataset = read_dataset(write(tmp_path / "q.txt", "\n".join([": all of them", *lines])))
        assert evaluate(StaticVectors(words, theirs.vectors), dataset, method=method)[-1].value == 1.0

    def test_words_in_context_layer_by_layer(self, tmp_path, elmo):
        dataset = read_dataset(write(tmp_path / "scws.txt", SCWS))
        results = evaluate_in_context(elmo, dataset)
        assert [result.part for result in results] == ["layer 0", "layer 1", "layer 2", "average"]
        assert all((result.found, result.total) == (3, 3) for result in results)
        for number, result in enumerate(results[:3]):
            cosines = []
            for first, second, _ in dataset.in_context:
                one, other = (elmo.embed([side.tokens], layers=number)[0] for side in (first, second))
                one, other = one[first.start : first.end].mean(axis=0), other[second.start : second.end].mean(axis=0)
                cosines.append(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
            assert result.value == pytest.approx(spearman(np.array(cosines), np.array([1.5, 4.0, 3.0])))

    def test_words_in_context_for_static_vectors(self, tmp_path):
        vectors = StaticVectors(["bank", "money", "rate", "York"], np.random.default_rng(0).random((4, 3), np.float32))
        (result,) = evaluate(vectors, read_dataset(write(tmp_path / "scws.txt", SCWS)))
        assert (result.part, result.found) == ("layer 0", 3)
        fewer = StaticVectors(["bank", "money"], np.ones((2, 3), np.float32))
        assert evaluate(fewer, read_dataset(tmp_path / "scws.txt"))[0].found == 2

    def test_words_without_context_are_not_for_a_model(self, tmp_path, elmo):
        with pytest.raises(DataError, match="set for static vectors"):
            evaluate_in_context(elmo, read_dataset(write(tmp_path / "s.txt", "a\tb\t1\n")))


def run(*arguments) -> None:
    static([str(argument) for argument in arguments], exit_on_error=False, result_action="return_none")


@pytest.fixture
def corpus(tmp_path):
    lines = ["the cat runs home and eats meat .", "The dog runs home and eats fish .", "A stone lies under water ."]
    return write(tmp_path / "corpus.txt", "\n".join(lines * 5))


class TestCommands:
    @pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".vec", ".bin", ".safetensors"])
    @pytest.mark.parametrize("kind", ["one-hot", "skip-gram", "glove"])
    def test_train(self, corpus, tmp_path, capsys, kind, ending):
        output = tmp_path / f"vectors{ending}"
        options = [] if kind == "one-hot" else ["--epochs", 2, "--dimensions", 6, "--window", 3, "--threads", 1]
        run("train", kind, corpus, "-o", output, "--lower-case", *options)
        width = 15 if kind == "one-hot" else 6
        assert capsys.readouterr().out == f"{output}: 15 vectors of width {width}\n"
        vectors = StaticVectors.load(output)
        assert vectors.vectors.shape == (15, width)
        assert {"the", "cat", "."} < set(vectors.words)
        assert (kind == "one-hot") == np.array_equal(vectors.vectors, np.eye(15, width))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", output.name]

    def test_options(self, corpus, tmp_path, capsys):
        run("train", "one-hot", corpus, "-o", tmp_path / "v.txt", "--min-count", 10, "--no-header")
        assert (tmp_path / "v.txt").read_text().startswith(". 1 0 0")
        assert OneHot.load(tmp_path / "v.txt").words == (".", "and", "eats", "home", "runs")
        run("train", "glove", corpus, "-o", tmp_path / "v.txt", "--dimensions", 3, "--epochs", 1, "--vocab-size", 4)
        assert "4 vectors of width 3" in capsys.readouterr().out

    def test_text_from_standard_input_and_packed(self, corpus, tmp_path, monkeypatch):
        (tmp_path / "corpus.txt.zst").write_bytes(zstandard.compress(corpus.read_bytes()))
        for name, source in (("a", corpus), ("b", tmp_path / "corpus.txt.zst"), ("c", "-")):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(corpus.read_bytes())))
            run("train", "one-hot", source, "-o", tmp_path / f"{name}.txt", "--lines", "sentences")
        assert len({(tmp_path / f"{name}.txt").read_bytes() for name in "abc"}) == 1

    def test_evaluate(self, tmp_path, capsys):
        vectors = np.array([[1, 0], [1, 0.1], [0, 1], [-1, 0.2]], np.float32)
        StaticVectors(["a", "b", "c", "d"], vectors).save(tmp_path / "v.txt")
        pairs = write(tmp_path / "pairs.txt", "a\tb\t9\na\tc\t5\na\td\t1\na\tmissing\t7\n")
        questions = write(tmp_path / "questions.txt", ": letters\na b c x\n")
        run("evaluate", tmp_path / "v.txt", pairs, questions)
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert rows == [
            ["set", "part", "measure", "value", "found", "of"],
            ["pairs", "all", "spearman", "1.000", "3", "4"],
            ["questions", "letters", "accuracy", "–", "0", "1"],
            ["questions", "all", "accuracy", "–", "0", "1"],
        ]
        run("evaluate", tmp_path / "v.txt", pairs, questions, "--json")
        found = json.loads(capsys.readouterr().out)
        assert [result["value"] for result in found] == [pytest.approx(1), None, None]

    def test_evaluate_a_model(self, tmp_path, capsys, model_folder):
        run("evaluate", write(tmp_path / "scws.txt", SCWS), "--model", model_folder, "--json")
        parts = [result["part"] for result in json.loads(capsys.readouterr().out)]
        assert parts == ["layer 0", "layer 1", "layer 2", "average"]

    def test_mistakes(self, corpus, tmp_path, capsys):
        with pytest.raises(ConfigError, match="unknown ending '.csv'"):
            run("train", "glove", corpus, "-o", tmp_path / "v.csv")
        with pytest.raises(OutputError, match="cannot be written"):
            run("train", "glove", corpus, "-o", tmp_path / "missing" / "v.txt")
        with pytest.raises(DataError, match="no such file"):
            run("train", "skip-gram", tmp_path / "missing.txt", "-o", tmp_path / "v.txt")
        with pytest.raises(DataError, match="no word occurs 99 times"):
            run("train", "glove", corpus, "-o", tmp_path / "v.txt", "--min-count", 99)
        with pytest.raises(ConfigError, match="window is 0"):
            run("train", "glove", corpus, "-o", tmp_path / "v.txt", "--window", 0)
        with pytest.raises(ConfigError, match="name the vectors, then"):
            run("evaluate", tmp_path / "v.txt")
        with pytest.raises(ValidationError, match="--limit"):
            run("evaluate", tmp_path / "v.txt", corpus, "--limit", 0)
        assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]
