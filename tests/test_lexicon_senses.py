"""Senses: groups that stand apart are found, described and drawn."""

import json
import re

import numpy as np
import pytest
from test_lexicon import EMBEDDER, MONEY, RIVER, around
from test_lexicon_substitutes import random_predictor

from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.lexicon.clusters import agglomerate, cluster, linkage, silhouette
from elmokit.lexicon.occurrences import Occurrence, find_occurrences, survey, unit_vectors
from elmokit.lexicon.plots import COLORS, plane, write_plot
from elmokit.lexicon.senses import find_senses, group_senses, keywords
from elmokit.lexicon.settings import SenseSettings
from elmokit.lexicon.substitute_vectors import SubstituteVectors
from elmokit.lexicon.surroundings import Surroundings
from elmokit.text.corpus import make_corpus

STARS = "moon comet orbit planet galaxy eclipse nova dwarf zenith halo nebula meteor".split()

LEAST = 0.2  # between one topic and two as the embedder of these tests sees them; the default is that of real models
SETTINGS = SenseSettings(least_silhouette=LEAST)


def cloud(*sizes, spread=0.3, width=20, seed=0):
    """Unit vectors around random directions, and which of them each belongs to."""
    random = np.random.default_rng(seed)
    directions = random.normal(size=(len(sizes), width))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    vectors = directions[labels] + spread * random.normal(size=(len(labels), width))
    return unit_vectors(vectors.astype(np.float32)), labels


def agree(labels, others):
    """Whether two groupings are one but for their numbers."""
    pairs = set(zip(labels.tolist(), others.tolist(), strict=True))
    return len(pairs) == len(set(labels.tolist())) == len(set(others.tolist()))


class TestClustering:
    @pytest.mark.parametrize("sizes", [(50, 50), (90, 10), (40, 30, 20, 10)])
    def test_clouds_are_found(self, sizes):
        units, labels = cloud(*sizes)
        found = cluster(units, len(sizes))
        assert agree(found.labels, labels)
        sums = np.stack([units[found.labels == number].sum(axis=0) for number in range(len(sizes))])
        np.testing.assert_allclose(found.centers, unit_vectors(sums), atol=1e-6)
        assert found.likeness == pytest.approx((units * found.centers[found.labels]).sum(axis=1).mean(), abs=1e-6)

    def test_a_function_of_the_seed(self):
        units, _ = cloud(60, spread=1.0)
        runs = [cluster(units, 4, seed=seed, restarts=1) for seed in (0, 0, 1, 2, 3)]
        np.testing.assert_array_equal(runs[0].labels, runs[1].labels)
        assert len({run.likeness for run in runs}) > 1

    def test_more_restarts_are_no_worse(self):
        units, _ = cloud(80, spread=1.0)
        assert cluster(units, 5, restarts=20).likeness >= cluster(units, 5, restarts=1).likeness

    def test_silhouette_is_that_of_all_pairs(self):
        units, labels = cloud(20, 12, 1, spread=0.8)
        distances = 1 - units @ units.T
        scores = []
        for index, own in enumerate(labels):
            if (labels == own).sum() == 1:
                scores.append(0.0)
                continue
            a = distances[index, labels == own].sum() / ((labels == own).sum() - 1)
            b = min(distances[index, labels == other].mean() for other in set(labels.tolist()) - {own})
            scores.append((b - a) / max(a, b))
        assert silhouette(units, labels) == pytest.approx(np.mean(scores), abs=1e-5)  # single precision cosines

    @pytest.mark.parametrize("sizes", [(50, 50), (90, 10), (40, 30, 20, 10)])
    def test_agglomeration_finds_clouds(self, sizes):
        units, labels = cloud(*sizes)
        assert agree(agglomerate(units, len(sizes)).labels, labels)

    def test_linkage_is_average_linkage(self):
        hierarchy = pytest.importorskip("scipy.cluster.hierarchy", reason="needs scipy")
        units, _ = cloud(30, 20, spread=1.0)
        tree = hierarchy.linkage(units.astype(np.float64), "average", metric="cosine")
        for count in (2, 5, 20):
            owners = np.arange(50)
            for one, other in linkage(units)[: 50 - count].tolist():
                owners[owners == owners[one]] = owners[other]
            assert agree(owners, hierarchy.fcluster(tree, count, "maxclust"))

    def test_an_outlier_is_no_group(self):
        units, labels = cloud(40, 40, 1)
        found = agglomerate(units, 2).labels
        assert agree(found[:80], labels[:80])
        assert len(np.unique(found)) == 2
        assert len(np.unique(agglomerate(units, 3).labels)) == 3  # unless so many are asked for

    def test_impossible_agglomerations(self):
        units, _ = cloud(3)
        for count in (0, 4):
            with pytest.raises(ConfigError, match=f"3 occurrences cannot be put into {count} groups"):
                agglomerate(units, count)

    def test_points_that_coincide(self):
        units = np.repeat(unit_vectors(np.ones((1, 5), np.float32)), 6, axis=0)
        assert cluster(units, 3).likeness == pytest.approx(1)

    def test_impossible_numbers(self):
        units, _ = cloud(3)
        for count in (0, 4):
            with pytest.raises(ConfigError, match=f"3 occurrences cannot be put into {count} groups"):
                cluster(units, count)
        with pytest.raises(ConfigError, match="not defined"):
            silhouette(units, np.zeros(3, dtype=np.int64))


@pytest.fixture(scope="module")
def corpus():
    banks = around("bank", RIVER, 60) + around("bank", MONEY, 40, seed=1)
    stars = around("star", STARS, 30) + around("star", MONEY, 45, seed=2) + around("star", RIVER, 25, seed=3)
    return make_corpus(banks + stars + around("moon", STARS, 60, seed=4))


class TestSenses:
    @pytest.mark.parametrize(("word", "topics"), [("bank", (RIVER, MONEY)), ("star", (MONEY, STARS, RIVER))])
    @pytest.mark.parametrize("count", [None, "given"])
    def test_planted_senses_are_found(self, corpus, word, topics, count):
        settings = SenseSettings(count=len(topics) if count else None, least_silhouette=LEAST)
        found = find_senses(word, corpus, EMBEDDER, layers="top", settings=settings)
        assert len(found.senses) == len(topics)
        assert [sense.share for sense in found.senses] == sorted((s.share for s in found.senses), reverse=True)
        for number, (sense, topic) in enumerate(zip(found.senses, topics, strict=True)):
            members = [o for o, label in zip(found.occurrences, found.labels, strict=True) if label == number]
            assert (len(members), len(members) / 100) == (sense.count, sense.share)
            assert all(set(member.context.words) <= {word, *topic} for member in members)
            assert {keyword.word for keyword in sense.words} <= set(topic)
            assert len(sense.examples) == 3
            assert found.apart
            assert found.confidence > 0.5
            assert found.claim == f"{len(topics)} senses"
            assert {example.bracketed for example in sense.examples} <= {member.bracketed for member in members}

    def test_one_sense(self, corpus):
        found = find_senses("moon", make_corpus(around("moon", [f"w{n}" for n in range(60)], 80)), EMBEDDER)
        assert len(found.senses) == 1
        assert found.senses[0].share == 1
        assert (found.claim, found.apart) == ("1 sense", False)
        assert found.silhouette < 0.2  # that of the two groups that were refused
        assert found.confidence > 0.5

    def test_groups_that_do_not_stand_apart_are_no_senses(self):
        corpus = make_corpus(around("moon", [f"w{n}" for n in range(60)], 80))
        found = find_senses("moon", corpus, EMBEDDER, settings=SenseSettings(count=3))
        assert (found.claim, found.apart, found.confidence) == ("3 groups", False, None)
        settled = find_senses("moon", corpus, EMBEDDER, settings=SenseSettings(count=3, least_silhouette=-1))
        assert settled.claim == "3 senses"

    def test_too_few_to_tell(self):
        """14 occurrences, seven and seven: not even these are called senses."""
        corpus = make_corpus(around("bank", RIVER, 7) + around("bank", MONEY, 7, seed=1))
        found = find_senses("bank", corpus, EMBEDDER)
        assert (found.claim, found.silhouette, found.confidence) == ("1 group", None, None)
        assert find_senses("bank", corpus, EMBEDDER, settings=SenseSettings(count=2)).claim == "2 groups"

    def test_examples_are_the_most_central(self, corpus):
        found = find_senses("bank", corpus, EMBEDDER, settings=SenseSettings(count=2, examples=1000))
        vectors = np.stack([occurrence.vector for occurrence in found.occurrences])
        units = unit_vectors(vectors - vectors.mean(axis=0))
        for number, sense in enumerate(found.senses):
            center = units[found.labels == number].sum(axis=0)
            order = np.argsort(-units[found.labels == number] @ center, kind="stable")
            members = [o for o, label in zip(found.occurrences, found.labels, strict=True) if label == number]
            assert [example.bracketed for example in sense.examples] == [members[index].bracketed for index in order]

    def test_a_few_occurrences(self):
        corpus = make_corpus([["a", "bank"], ["the", "bank"], ["my", "bank"]])
        assert len(find_senses("bank", corpus, EMBEDDER).senses) == 1
        assert len(find_senses("bank", corpus, EMBEDDER, settings=SenseSettings(count=2)).senses) == 2
        with pytest.raises(ConfigError, match="3 occurrences cannot be put into 4 groups"):
            find_senses("bank", corpus, EMBEDDER, settings=SenseSettings(count=4))

    def test_occurrences_that_do_not_differ(self):
        found = find_senses("bank", make_corpus([["a", "bank"]] * 20), EMBEDDER)
        assert [sense.count for sense in found.senses] == [20]
        assert [example.bracketed for example in found.senses[0].examples] == ["a [bank]"]

    def test_mistakes(self, corpus):
        with pytest.raises(DataError, match="near spellings that it has: bank"):
            find_senses("banks", corpus, EMBEDDER)
        with pytest.raises(ConfigError, match="must be at least 1"):
            find_senses("bank", corpus, EMBEDDER, settings=SenseSettings(most=0))


class TestKeywords:
    @pytest.fixture
    def sides(self):
        vector = np.zeros(1, np.float32)
        inside = make_corpus([["the", "steep", "bank"]] * 6 + [["the", "odd", "bank"]])
        outside = make_corpus([["the", "rich", "bank"]] * 7)
        return [[Occurrence(context, 2, vector) for context in side] for side in (inside, outside)]

    def test_frequent_on_one_side(self, sides):
        counts = survey([occurrence.context for side in sides for occurrence in side]).counts
        found = keywords(*sides, counts)
        assert [word.word for word in found][:2] == ["steep", "odd"]
        assert "bank" not in [word.word for word in found]
        assert found[0].score > found[1].score > 0

    def test_against_the_corpus(self, sides):
        """Where there is one sense alone, a word as frequent as everywhere tells nothing."""
        counts = {"the": 14, "steep": 6, "odd": 2000, "rich": 7, "bank": 14, "of": 2000}
        found = keywords(sides[0], [], counts)
        assert [word.word for word in found] == ["steep"]  # "the" is more frequent here too, but a function word
        assert found[0].score > 1

    def test_the_word_itself_is_none(self):
        """However often it stands in its own sentences."""
        corpus = make_corpus([["a", "bank", "by", "a", "steep", "bank"]] * 7)
        inside = [Occurrence(context, 1, np.zeros(1, np.float32)) for context in corpus]
        assert [word.word for word in keywords(inside, [], {"steep": 7, "bank": 14, "quiet": 2000})] == ["steep"]


class TestPlots:
    @pytest.fixture
    def found(self):
        wild = [["</script><script>alert(1)</script>", "bank", "&", "“引号”", "$x$"]] * 2
        corpus = make_corpus(
            [*around("bank", RIVER, 30), *around("bank", MONEY, 20, seed=1), *wild], document="a<b>.txt"
        )
        return find_senses("bank", corpus, EMBEDDER, settings=SenseSettings(count=2))

    def test_plane_is_the_principal_components(self):
        vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
        points = plane(vectors)
        units = unit_vectors(vectors - vectors.mean(axis=0))
        values = np.sort(np.linalg.eigvalsh(np.cov(units.T, bias=True)))[::-1]
        np.testing.assert_allclose(points.var(axis=0), values[:2], rtol=1e-4)
        np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-6)
        assert abs(np.corrcoef(points.T)[0, 1]) < 1e-4

    @pytest.mark.parametrize("count", [1, 2])
    def test_plane_of_very_few(self, count):
        assert plane(np.ones((count, 1), np.float32)).shape == (count, 2)

    def test_page(self, found, tmp_path):
        write_plot(tmp_path / "bank.html", found)
        page = (tmp_path / "bank.html").read_text(encoding="utf-8")
        assert "alert(1)</script>" not in page
        assert page.count("<script") == 2
        assert re.findall(r"https?://[^\"]*", page) == ["http://www.w3.org/2000/svg"]  # a name, not an address
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
        assert ["".join(point["sentence"]) for point in data["points"]] == [o.context.text for o in found.occurrences]
        assert [point["sense"] for point in data["points"]] == found.labels.tolist()
        assert {point["document"] for point in data["points"]} == {"a<b>.txt"}
        assert len({sense["color"] for sense in data["senses"]}) == 2

    def test_page_of_a_word_with_markup(self, tmp_path):
        corpus = make_corpus([["a", "<img src=x onerror=alert(1)>", "$data"]] * 3)
        write_plot(tmp_path / "x.html", find_senses("<img src=x onerror=alert(1)>", corpus, EMBEDDER))
        page = (tmp_path / "x.html").read_text(encoding="utf-8")
        assert "<img" not in page
        assert "&lt;img" in page

    def test_picture(self, found, tmp_path):
        image = pytest.importorskip("matplotlib.image", reason="needs the extra 'plots'")
        write_plot(tmp_path / "bank.png", found)
        pixels = image.imread(tmp_path / "bank.png")[..., :3]
        assert pixels.shape == (900, 1200, 3)
        for color in COLORS[:2]:
            wanted = np.array([int(color[start : start + 2], 16) for start in (1, 3, 5)]) / 255
            shown = 0.75 * wanted + 0.25  # as the points are drawn, on white
            assert (np.abs(pixels - shown).max(axis=-1) < 0.02).sum() > 100

    def test_picture_of_what_no_font_has(self, tmp_path):
        pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
        word = "\U0001f9ffʘ宝玉$\U000e0041"
        corpus = make_corpus([[word, "一", "二"], ["三", word]])
        write_plot(tmp_path / "odd.png", find_senses(word, corpus, EMBEDDER))
        assert (tmp_path / "odd.png").read_bytes().startswith(b"\x89PNG")

    def test_mistakes(self, found, tmp_path):
        with pytest.raises(ConfigError, match=r"unknown ending '.svg': a plot is written as .png or .html"):
            write_plot(tmp_path / "bank.svg", found)
        with pytest.raises(OutputError, match="cannot be written: No such file"):
            write_plot(tmp_path / "missing" / "bank.html", found)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_in_the_way(self, found, tmp_path):
        (tmp_path / "bank.html").mkdir()
        with pytest.raises(OutputError, match="is a folder: name a file in it"):
            write_plot(tmp_path / "bank.html", found)
        assert [path.name for path in tmp_path.iterdir()] == ["bank.html"]


def test_occurrences_found_before_can_be_grouped(corpus):
    known = survey(corpus)
    occurrences = find_occurrences(corpus, EMBEDDER, ["bank"], layers="top")["bank"]
    assert [sense.count for sense in group_senses("bank", occurrences, known, EMBEDDER, settings=SETTINGS).senses] == [
        60,
        40,
    ]


class TestSurroundings:
    SENTENCES = ("we sat on the bank of it".split(), [], ["bank"], "the bank".split())

    def test_what_the_neighbours_know(self, elmo):
        """The forward state of the token before, the backward state of the token after; bounds count as tokens."""
        found = Surroundings(elmo).embed(self.SENTENCES, layers="all")
        half = elmo.width // 2
        for words, vectors in zip(self.SENTENCES, found, strict=True):
            assert vectors.shape == (elmo.layer_count, len(words), elmo.width)
            states = elmo.run([["<S>", *words, "</S>"]], gradients=False).numpy()
            for position in range(len(words)):
                np.testing.assert_allclose(vectors[:, position, :half], states[:, position, :half], atol=1e-6)
                np.testing.assert_allclose(vectors[:, position, half:], states[:, position + 2, half:], atol=1e-6)

    def test_the_word_itself_is_unread(self, elmo):
        here, there, elsewhere = Surroundings(elmo).embed(["a bank here", "a well here", "a bank there"], layers="top")
        np.testing.assert_allclose(here[1], there[1], atol=1e-6)
        assert not np.allclose(here[1], elsewhere[1], atol=1e-3)

    @pytest.mark.parametrize("layers", ["average", "top", 0, 1])
    def test_layers(self, layers, elmo):
        everything = Surroundings(elmo).embed(self.SENTENCES, layers="all")
        choose = {"average": lambda one: one.mean(axis=0), "top": lambda one: one[-1]}
        chosen = choose.get(layers, lambda one: one[layers])
        for vectors, one in zip(Surroundings(elmo).embed(self.SENTENCES, layers=layers), everything, strict=True):
            np.testing.assert_allclose(vectors, chosen(one), atol=1e-6)

    def test_a_layer_that_there_is_not(self, elmo):
        with pytest.raises(ConfigError, match="unknown layers 'middle'"):
            Surroundings(elmo).embed(self.SENTENCES, layers="middle")


class TestSubstituteVectors:
    def test_occurrences_in_alike_places_are_alike(self):
        """The same context gives the same vector of length 1, whatever the word; another context another."""
        vectors = SubstituteVectors(random_predictor("full"))
        sentences = ["the bank of the river", "the well of the river", "her wages at the bank ."]
        rows = np.stack([array[position] for array, position in zip(vectors.embed(sentences), (1, 1, 4), strict=True)])
        units = vectors.compare("zebra", rows)
        np.testing.assert_allclose(units[0], units[1], atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(units[[0, 2]], axis=1), 1, atol=1e-5)
        assert units[0] @ units[2] < 0.999

    def test_senses_by_substitutes(self):
        """A context of each kind, many times: two groups, by what fits in either."""
        contexts = [["The", "river", "bank", "was", "green"], ["wages", "at", "the", "bank", "."]]
        corpus = make_corpus(contexts * 15)
        embedder = SubstituteVectors(random_predictor("full"))
        found = find_senses("bank", corpus, embedder, settings=SenseSettings(count=2))
        assert agree(found.labels, np.array([0, 1] * 15))

    def test_a_model_without_a_softmax(self, elmo):
        with pytest.raises(CheckpointError, match="no softmax"):
            SubstituteVectors(elmo)
