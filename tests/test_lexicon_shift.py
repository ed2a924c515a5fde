"""Change over slices of time: the measures against plain computations, and words whose change is known."""

import csv
import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES
from test_lexicon import EMBEDDER, MONEY, RIVER, Recorder, around, cosine, plain_occurrences
from test_lexicon_cli import run
from test_lexicon_substitutes import random_predictor

import elmokit
from elmokit import lexicon
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon.aligned import aligned_distances
from elmokit.lexicon.distances import (
    MEASURES,
    adjusted,
    average_pairwise_distance,
    jensen_shannon_divergence,
    orthogonal_map,
    permutation_test,
)
from elmokit.lexicon.function_words import is_function_word
from elmokit.lexicon.occurrences import survey
from elmokit.lexicon.predictions import position_probabilities
from elmokit.lexicon.settings import ShiftSettings
from elmokit.lexicon.shift import find_shift, shift_rows
from elmokit.lexicon.shift_plots import trajectories, write_shift_plot
from elmokit.lexicon.substitute_vectors import SubstituteVectors
from elmokit.static.embedders import StaticVectors
from elmokit.text.corpus import make_corpus

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "change.py"


@pytest.fixture
def slices():
    """The bank moves from the river to the money; the oak stays."""
    early = around("bank", RIVER, 40) + around("oak", RIVER, 40, seed=1) + around("coin", MONEY, 30, seed=2)
    late = around("bank", MONEY, 35, seed=3) + around("oak", RIVER, 45, seed=4) + around("coin", MONEY, 30, seed=5)
    return {"early": make_corpus(early, document="early"), "late": make_corpus(late, document="late")}


@pytest.fixture
def decades(slices):
    """The same with a slice between, in which half of the banks have moved."""
    both = around("bank", RIVER, 20, seed=6) + around("bank", MONEY, 20, seed=7) + around("oak", RIVER, 40, seed=8)
    return {"1850s": slices["early"], "1900s": make_corpus(both), "1950s": slices["late"]}


@pytest.fixture(scope="module")
def predicted():
    """Two slices of sentences whose words a random model with a softmax knows, and it."""
    first = [["The", "bank", "of", "the", "river"], *SENTENCES[:2]] * 3
    second = [["wages", "at", "the", "bank", "."], ["her", "bank", "was", "green"], *SENTENCES[3:4]] * 3
    return {"a": make_corpus(first), "b": make_corpus(second)}, random_predictor("full")


class TestWords:
    @pytest.mark.parametrize("by", ["apd", "excess", "prt", None])
    def test_the_word_that_moved_is_first(self, slices, by):
        words = ["oak", "bank", "coin"]
        changes = find_shift(slices, EMBEDDER, words=words, layers="top", settings=ShiftSettings(by=by))
        assert changes[0].word == "bank"
        assert changes[0].counts == (40, 35)
        assert changes[0].overall.p == pytest.approx(1 / 1001)
        assert next(change.overall.p for change in changes if change.word == "oak") > 0.01
        assert changes[0].q <= 3 / 1001
        assert changes[0].by == (by or "excess")
        for side, topic, document in zip(changes[0].examples, (RIVER, MONEY), slices, strict=True):
            assert len(side) == 2
            for example in side:
                assert set(example.context.words) <= {"bank", *topic}
                assert example.context.document == document

    @pytest.mark.parametrize("layers", ["average", 1])
    def test_distances_are_those_of_all_pairs(self, slices, layers):
        for change in find_shift(slices, EMBEDDER, layers=layers, settings=ShiftSettings(min_count=30, limit=None)):
            here, there = (
                [entry[2] for entry in plain_occurrences(corpus, change.word, layers)] for corpus in slices.values()
            )
            pairs = np.array([[1 - cosine(one, other) for other in there] for one in here])
            found = change.overall
            every = np.stack([*here, *there])
            anywhere = [1 - cosine(one, other) for one, other in combinations(every, 2)]
            assert found.excess == pytest.approx(pairs.mean() - np.mean(anywhere), abs=1e-5)
            assert found.apd == pytest.approx(pairs.mean(), abs=1e-5)  # single precision cosines
            assert found.prt == pytest.approx(1 - cosine(np.mean(here, axis=0), np.mean(there, axis=0)), abs=1e-5)
            assert (found.jsd, found.static, change.substitutes) == (None, None, ())
            texts = [entry[0].text for entry in plain_occurrences(slices["early"], change.word, layers)]
            assert change.examples[0][0].context.text == texts[pairs.mean(axis=1).argmax()]

    def test_which_words(self, slices):
        changes = find_shift(slices, EMBEDDER, settings=ShiftSettings(by="apd", min_count=10, k=100))
        first, second = (survey(corpus).counts for corpus in slices.values())
        assert {change.word for change in changes} == {word for word in first if min(first[word], second[word]) >= 10}
        apd = [change.overall.apd for change in changes]
        assert apd == pytest.approx(sorted(apd, reverse=True))

    @pytest.mark.parametrize("content_words", [True, False])
    def test_function_words(self, content_words):
        sentences = [["他", "的", "银行", "very", "the", "bank"], ["the", "银行", "的", "bank", "他", "very"]] * 10
        corpora = {"a": make_corpus(sentences), "b": make_corpus(sentences)}
        settings = ShiftSettings(content_words=content_words, permutations=0)
        found = {change.word for change in find_shift(corpora, EMBEDDER, settings=settings)}
        assert found == {"银行", "bank"} | (set() if content_words else {"他", "的", "very", "the"})
        assert all(change.q is None for change in find_shift(corpora, EMBEDDER, settings=settings))
        given = find_shift(corpora, EMBEDDER, words=["the"], settings=settings)
        assert [change.word for change in given] == ["the"]  # what is asked for by name is not left out
        assert is_function_word("the")

    def test_a_word_alone_and_among_others(self, slices):
        settings = ShiftSettings(limit=10, permutations=50)
        alone = find_shift(slices, EMBEDDER, words=["bank"], settings=settings)[0]
        among = find_shift(slices, EMBEDDER, words=["oak", "coin", "bank"], settings=settings)[0]
        assert alone.distances == among.distances

    def test_every_slice_is_counted_once(self, slices):
        progress = Recorder()
        find_shift(slices, EMBEDDER, words=["bank"], progress=progress)
        stages = [f"{doing} {name}" for doing in ("counting", "embedding", "examples from") for name in slices]
        assert list(dict.fromkeys(stage for stage, *_ in progress.updates)) == stages
        assert len(progress.updates) == 3 * sum(map(len, slices.values()))

    def test_mistakes(self, slices):
        with pytest.raises(DataError, match="no content word occurs 1000 times in each of the 2 slices"):
            find_shift(slices, EMBEDDER, settings=ShiftSettings(min_count=1000))
        with pytest.raises(DataError, match="no word 'bnak'"):
            find_shift(slices, EMBEDDER, words=["bnak"])
        with pytest.raises(ConfigError, match="unknown measure 'cos'"):
            find_shift(slices, EMBEDDER, settings=ShiftSettings(by="cos"))
        with pytest.raises(ConfigError, match="1 slices: change is measured between two or more"):
            find_shift({"early": slices["early"]}, EMBEDDER)
        with pytest.raises(ConfigError, match="substitutes are found by a language model"):
            find_shift(slices, EMBEDDER, settings=ShiftSettings(by="jsd"))


class TestSlices:
    def test_steps_and_since_the_first(self, decades):
        change = find_shift(decades, EMBEDDER, words=["bank", "oak"], layers="top")[0]
        assert change.word == "bank"
        assert change.counts == (40, 40, 35)
        assert [(one.first, one.last) for one in change.distances] == [
            ("1850s", "1950s"),
            ("1850s", "1900s"),
            ("1900s", "1950s"),
        ]
        lines = trajectories(change, "prt")
        overall, first_step, second_step = (one.prt for one in change.distances)
        assert lines["from the first"] == [(0, 0.0), (1, first_step), (2, overall)]
        assert lines["from the one before"] == [(1, first_step), (2, second_step)]
        assert overall > max(first_step, second_step)

    def test_each_pair_is_that_of_two_slices(self, decades):
        three = find_shift(decades, EMBEDDER, words=["bank"])[0]
        for one in three.distances:
            two = {name: decades[name] for name in (one.first, one.last)}
            assert find_shift(two, EMBEDDER, words=["bank"])[0].overall == one


class TestMeasures:
    def test_divergence_of_what_is_the_same_or_has_nothing_in_common(self):
        p, q = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 1.0, 0])
        assert jensen_shannon_divergence(p, 1, p * 3, 3) == 0
        assert jensen_shannon_divergence(p, 1, q, 1) == 1
        half = np.array([0.5, 0, 0.5, 0])
        assert jensen_shannon_divergence(p, 1, half, 1) == pytest.approx(0.5)

    def test_permutations_against_all_of_them(self):
        rows = np.random.default_rng(0).normal(size=(7, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)

        def distance(inside):
            outside = [index for index in range(7) if index not in inside]
            return average_pairwise_distance(rows[list(inside)].sum(axis=0), 3, rows[outside].sum(axis=0), 4)

        every = np.array([distance(inside) for inside in combinations(range(7), 3)])
        exact = (every >= distance((0, 1, 2)) - 1e-9).mean()
        found = permutation_test(rows[:3], rows[3:], average_pairwise_distance, rounds=4000)
        assert found == pytest.approx(exact, abs=0.03)  # four standard errors

    @pytest.mark.parametrize("name", MEASURES)
    def test_p_values_of_no_change_are_spread_evenly(self, name):
        random = np.random.default_rng(0)
        found = []
        for seed in range(60):
            rows = np.abs(random.normal(size=(24, 5)))
            rows /= np.linalg.norm(rows, ord=1 if name == "jsd" else 2, axis=1, keepdims=True)
            found.append(permutation_test(rows[:10], rows[10:], MEASURES[name], rounds=99, seed=seed))
        assert 0.35 < np.mean(found) < 0.65
        assert np.mean(np.array(found) <= 0.1) < 0.25

    def test_adjusted_p_values(self):
        """The example of Benjamini and Hochberg (1995), where four of fifteen hold at 0.05."""
        p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528]
        q = adjusted([*p, 0.7590, 1.0], 15)
        assert [value <= 0.05 for value in q] == [True] * 4 + [False] * 11
        assert q[0] == pytest.approx(0.0015)
        assert adjusted([0.02, 0.01], 10) == pytest.approx([0.1, 0.1])

    def test_a_rotation_is_found(self):
        random = np.random.default_rng(0)
        rotation, _ = np.linalg.qr(random.normal(size=(6, 6)))
        points = random.normal(size=(30, 6))
        np.testing.assert_allclose(orthogonal_map(points, points @ rotation), rotation, atol=1e-10)

    def test_static_vectors_in_another_space(self):
        random = np.random.default_rng(0)
        words, vectors = [f"w{number}" for number in range(200)], random.normal(size=(200, 10)).astype(np.float32)
        moved = vectors @ np.linalg.qr(random.normal(size=(10, 10)))[0].astype(np.float32)
        moved[7] = -moved[7]
        first, second = StaticVectors(words, vectors), StaticVectors(words[:150], moved[:150])
        found = aligned_distances(first, second, [*words[:150], "w199"])
        assert found[150] is None
        assert int(np.argmax(found[:150])) == 7
        assert found[7] > 1.5
        assert max(found[:7]) < 0.1


class TestSubstitutes:
    def test_replacements_are_the_content_words_most_probable(self, predicted):
        slices, elmo = predicted
        words = slices["b"][0].words
        vectors = SubstituteVectors(elmo)
        found = vectors.replacements("bank", vectors.embed([words])[0][3:4])
        expected = position_probabilities(elmo, words, 3)
        kept = [word for word in elmo.vocabulary.words if word.isalnum() and not is_function_word(word)]
        ids = elmo.vocabulary.encode([word for word in kept if word != "bank"])
        best = ids[np.argsort(-expected[ids])][: len(ids) // 4]  # of few words, not all fit
        assert found.ids[0].tolist() == best.tolist()
        np.testing.assert_allclose(found.probabilities[0], expected[best] / expected[best].sum(), rtol=1e-4)

    def test_divergence_of_pooled_substitutes(self, predicted):
        slices, elmo = predicted
        vectors, pooled = SubstituteVectors(elmo), []
        for corpus in slices.values():
            rows = np.zeros(len(elmo.vocabulary))
            for context in corpus:
                for position in (position for position, word in enumerate(context.words) if word == "bank"):
                    own = vectors.embed([context.words])[0][position : position + 1]
                    found = vectors.replacements("bank", own)
                    rows[found.ids[0]] += found.probabilities[0]
            pooled.append(rows / rows.sum())
        mean = sum(pooled) / 2
        divergence = sum((p[p > 0] * np.log2(p[p > 0] / mean[p > 0])).sum() for p in pooled) / 2
        for by in ("jsd", "prt"):
            settings = ShiftSettings(by=by, min_count=2, permutations=20)
            change = find_shift(slices, elmo, words=["bank"], settings=settings)[0]
            assert change.overall.jsd == pytest.approx(divergence, abs=1e-5)  # single precision softmax
        terms = pooled[0] * np.log2(np.divide(pooled[0], mean, out=np.ones_like(mean), where=pooled[0] > 0))
        assert change.substitutes[0][0] == elmo.vocabulary.words[terms.argmax()]

    def test_ranked_by_it(self, predicted):
        slices, elmo = predicted
        settings = ShiftSettings(by="jsd", min_count=2, content_words=False, permutations=0)
        values = [change.overall.jsd for change in find_shift(slices, elmo, settings=settings)]
        assert len(values) > 2
        assert values == pytest.approx(sorted(values, reverse=True))


def test_static_baseline():
    pytest.importorskip("gensim", reason="needs the extra 'static'")
    early = around("bank", RIVER, 300) + around("oak", RIVER, 300, seed=1) + around("coin", MONEY, 300, seed=2)
    late = around("bank", MONEY, 300, seed=3) + around("oak", RIVER, 300, seed=4) + around("coin", MONEY, 300, seed=5)
    slices = {"early": make_corpus(early), "late": make_corpus(late)}
    settings = ShiftSettings(by="static", limit=20, permutations=10)
    runs = [find_shift(slices, EMBEDDER, words=["oak", "bank", "coin"], settings=settings) for _ in range(2)]
    assert runs[0][0].word == "bank"
    assert [change.overall.static for change in runs[0]] == [change.overall.static for change in runs[1]]
    assert runs[0][0].overall.p is None  # there are no occurrences to permute
    beside = find_shift(slices, EMBEDDER, words=["oak", "bank"], settings=ShiftSettings(static=True, limit=20))
    assert beside[0].overall.static == runs[0][0].overall.static


class TestOutput:
    """JSON, tables and Python give the same numbers."""

    @pytest.fixture
    def texts(self, decades, tmp_path):
        for name, corpus in decades.items():
            (tmp_path / f"{name}.txt").write_text("\n".join(context.text for context in corpus), encoding="utf-8")
        return [tmp_path / f"{name}.txt" for name in decades]

    @pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
    def test_the_same_numbers(self, ending, texts, model_folder, tmp_path, capsys):
        (tmp_path / "list.txt").write_text("bank\noak\n", encoding="utf-8")
        output = tmp_path / f"shift{ending}"
        run("shift", *texts, "-m", model_folder, "--word-list", tmp_path / "list.txt", "-o", output, "--json")
        found = json.loads(capsys.readouterr().out)
        elmo = elmokit.load(model_folder)
        slices = {path.name: lexicon.open_corpus([path], elmo.tokenizer) for path in texts}
        changes = find_shift(slices, elmo, words=["bank", "oak"])
        rows = list(shift_rows(changes))
        assert [one["word"] for one in found] == [change.word for change in changes]
        for one, change in zip(found, changes, strict=True):
            assert one["distances"] == [distances._asdict() for distances in change.distances]
        if ending == ".parquet":
            parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'parquet'")
            assert parquet.read_table(output).to_pylist() == rows
            return
        with output.open(encoding="utf-8", newline="") as file:
            read = list(csv.DictReader(file, delimiter="," if ending == ".csv" else "\t"))
        assert read == [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows]
        assert len(read) == 6  # two words, three pairs of slices

    def test_a_wrong_name_is_refused_at_once(self, texts, tmp_path):
        for option, name in (("--output", "shift.xls"), ("--plot", "shift.gif")):
            with pytest.raises(ConfigError, match="unknown ending"):
                run("shift", *texts, "-m", tmp_path / "missing", option, tmp_path / name)
        with pytest.raises(DataError, match="the list of words cannot be read"):
            run("shift", *texts, "--word-list", tmp_path / "missing.txt")

    @pytest.mark.parametrize("count", [1, 2])
    def test_page(self, count, decades, tmp_path):
        corpora = dict(list(decades.items())[:count])
        corpora["<1850s>"] = make_corpus([["<script>", "bank", "&"]] * 20)
        change = find_shift(corpora, EMBEDDER, words=["bank"])[0]
        write_shift_plot(tmp_path / "bank.html", change)
        page = (tmp_path / "bank.html").read_text(encoding="utf-8")
        assert "<script" not in page
        assert "&lt;1850s&gt;" in page
        assert len(re.findall(r"<li>.*?<b>bank</b>.*?</li>", page)) == sum(map(len, change.examples))
        assert page.count("<circle") == sum(map(len, trajectories(change, change.by).values()))
        assert f"PRT {change.overall.prt:.3f}" in page

    def test_picture(self, decades, tmp_path):
        image = pytest.importorskip("matplotlib.image", reason="needs the extra 'plots'")
        change = find_shift(decades, EMBEDDER, words=["bank"])[0]
        for by in ("apd", None, "jsd"):
            write_shift_plot(tmp_path / f"{by}.png", change, by=by)
            assert image.imread(tmp_path / f"{by}.png").shape[1] == 1200


def test_the_benchmark_finds_synthetic_change(shared_data, tmp_path):
    """Real text and the bundled model, a few words: the whole run is minutes long and stands in docs/words.md."""
    text = (shared_data / "corpora" / "en-sample.txt").read_text(encoding="utf-8")[:400_000]
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    options = "--pairs 10 --min-count 20 --limit 20 --by prt --no-static --rounds 50".split()
    command = [sys.executable, str(SCRIPT), str(tmp_path / "text.txt"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    [(_, spearman, below, *_)] = [row for row in rows if row[:1] == ["prt"]]
    assert float(spearman) > 0.5
    assert float(below) > 0.6
