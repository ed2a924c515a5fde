"""Word senses by the nearest centroid: against plain arithmetic, on disk, and on the evaluation sets."""

import json

import numpy as np
import pytest
from conftest import random_elmo
from safetensors.numpy import save_file

from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.static.embedders import StaticVectors
from elmokit.tasks import Predictor, load, wsd
from elmokit.tasks.examples import Place, SenseInstance, SenseSentence
from elmokit.tasks.readers import read_inventory

RIVER, MONEY, TILT = "bank%1:17:01::", "bank%1:14:00::", "bank%2:38:01::"
INVENTORY = {
    ("bank", "NOUN"): (RIVER, MONEY),
    ("bank", "VERB"): (TILT,),
    ("river_bank", "NOUN"): (RIVER, MONEY),
    ("old", "ADJ"): ("old%3:00:02::", "old%3:00:01::"),
}
EXAMPLES = [
    (RIVER, "they sat on the bank of the river"),
    (RIVER, "the bank was green and steep"),
    (RIVER, "mud covers the bank"),
    (MONEY, "the bank lent her the money"),
    (MONEY, "wages are kept at a bank"),
    (MONEY, "my bank raised its rates"),
    (TILT, "pilots bank their planes"),
    (TILT, "watch it bank to the left"),
]


def sentence(text: str, *keys: str, word: str = "bank", lemma: str = "", pos: str = "") -> SenseSentence:
    """A text with one of its words, or more than one, to be told."""
    tokens, words = text.split(), word.split()
    start = next(place for place in range(len(tokens)) if tokens[place : place + len(words)] == words)
    pos = pos or ("VERB" if TILT in keys else "NOUN")
    instance = SenseInstance(f"i{start}", lemma or word, pos, start, start + len(words), keys)
    return SenseSentence(tuple(tokens), (instance,), Place("made here", 1))


SENTENCES = [sentence(text, key) for key, text in EXAMPLES]


def found_keys(senses: Predictor, sentences) -> list[tuple[str, ...]]:
    return [instance.keys for one in senses.predict(sentences) for instance in one.instances]


@pytest.fixture(scope="module")
def senses(elmo) -> Predictor:
    return wsd.fit(iter(SENTENCES), elmo, INVENTORY)


@pytest.fixture(scope="module")
def wordnet(shared_data):
    return read_inventory(shared_data / "wsd" / "wordnet30.senses.tsv.xz")


class TestLearning:
    def test_a_centroid_is_the_mean_of_its_examples(self, elmo, senses):
        for key in (RIVER, MONEY, TILT):
            texts = [text.split() for sense, text in EXAMPLES if sense == key]
            vectors = [elmo.embed([text], layers="top")[0][text.index("bank")] for text in texts]
            # batch mates and the order of a sum move the last bits
            np.testing.assert_allclose(
                senses.model.centroids[senses.model.rows[key]], np.mean(vectors, axis=0), atol=1e-5
            )
        assert senses.config.counts == (3, 3, 2)

    @pytest.mark.parametrize("layer", ["top", "average", 1, 2])
    def test_single_examples_are_known_by_heart(self, elmo, layer):
        examples = [sentence(text, f"bank%1:{number}") for number, (_, text) in enumerate(EXAMPLES)]
        inventory = {("bank", "NOUN"): tuple(f"bank%1:{number}" for number in range(8))}
        learned = wsd.fit(examples, elmo, inventory, layer=layer)
        assert list(learned.predict(examples)) == examples
        assert learned.evaluate(examples) == {"f1": 1, "f1 NOUN": 1}

    def test_the_nearest_candidate_is_taken(self, elmo, senses):
        asked = sentence("the bank is a place where money is kept")
        (vectors,) = elmo.embed([asked.tokens], layers="top")
        cosines = {
            key: vectors[1] @ centroid / np.linalg.norm(centroid)
            for key, centroid in zip(senses.config.keys, senses.model.centroids, strict=True)
            if key != TILT
        }
        assert found_keys(senses, [asked]) == [(max(cosines, key=cosines.__getitem__),)]

    @pytest.mark.parametrize(("prior", "expected"), [(0, RIVER), (0.2, RIVER), (0.4, MONEY)])
    def test_a_prior_favours_senses_of_many_examples(self, tmp_path, prior, expected):
        """Of cosines 0.8 and 0.6, with 1 and 2 examples, the second wins once prior · log 2 is more than 0.2."""
        vectors = StaticVectors(["river", "money", "bank"], np.array([[1, 0], [0, 1], [0.8, 0.6]], dtype=np.float32))
        examples = [sentence("river", RIVER, word="river"), *[sentence("money", MONEY, word="money")] * 2]
        learned = wsd.fit(examples, vectors, INVENTORY, prior=prior)
        learned.model.save(tmp_path / "senses")
        loaded = load(tmp_path / "senses", embedders=[vectors])
        assert found_keys(learned, [sentence("bank")]) == found_keys(loaded, [sentence("bank")]) == [(expected,)]

    def test_several_words_are_their_mean(self):
        vectors = StaticVectors(["river", "bank", "old", "city"], np.eye(4, dtype=np.float32))
        text = sentence("the river bank", RIVER, word="river bank", lemma="river_bank")
        learned = wsd.fit([text, sentence("city", MONEY, word="city", lemma="bank")], vectors, INVENTORY)
        assert learned.model.centroids.tolist() == [[0.5, 0.5, 0, 0], [0, 0, 0, 1]]
        assert found_keys(learned, [text]) == [(RIVER,)]

    def test_several_gold_senses_all_learn(self):
        vectors = StaticVectors(["bank"], np.ones((1, 2), dtype=np.float32))
        learned = wsd.fit([sentence("bank", RIVER, MONEY), sentence("bank", MONEY)], vectors, INVENTORY)
        assert dict(zip(learned.config.keys, learned.config.counts, strict=True)) == {RIVER: 1, MONEY: 2}
        assert learned.model.centroids.tolist() == [[1, 1], [1, 1]]

    def test_long_streams_are_embedded_in_pieces(self, monkeypatch, elmo, senses):
        monkeypatch.setattr(wsd, "TOKENS_AT_A_TIME", 10)
        learned = wsd.fit(iter(SENTENCES), elmo, INVENTORY)
        np.testing.assert_allclose(learned.model.centroids, senses.model.centroids, atol=1e-5)
        assert found_keys(learned, iter(SENTENCES)) == found_keys(senses, SENTENCES)

    def test_nothing_to_learn_from(self, elmo):
        with pytest.raises(DataError, match="no word of these sentences has a gold sense"):
            wsd.fit([sentence("the bank")], elmo, INVENTORY)
        with pytest.raises(ConfigError, match="'all' is neither"):
            wsd.fit(SENTENCES, elmo, INVENTORY, layer="all")
        for prior in (-1, float("nan"), "much"):
            with pytest.raises(ConfigError, match="is not a number from 0 up"):
                wsd.fit(SENTENCES, elmo, INVENTORY, prior=prior)


class TestFallingBack:
    def test_to_the_first_sense(self, senses):
        assert found_keys(senses, [sentence("an old man", word="old", pos="ADJ")]) == [("old%3:00:02::",)]

    def test_candidates_without_examples_are_passed_over(self, elmo):
        learned = wsd.fit([sentence(EXAMPLES[3][1], MONEY)], elmo, INVENTORY)
        assert found_keys(learned, [sentence("mud covers the bank")]) == [(MONEY,)]

    def test_an_unknown_lemma_has_no_sense(self, senses):
        assert found_keys(senses, [sentence("a zyx", word="zyx")]) == [()]

    def test_case_does_not_matter(self, senses):
        assert found_keys(senses, [sentence("The Bank", word="Bank")])[0][0] in (RIVER, MONEY)

    def test_sentences_without_instances(self, senses):
        empty = [SenseSentence((), (), Place("", 0)), SenseSentence(("Yes",), (), Place("", 0))]
        assert list(senses.predict(empty)) == empty


class TestObjects:
    def test_an_object_is_a_sentence(self, senses):
        asked = {"tokens": ["the", "bank"], "instances": [{"lemma": "bank", "pos": "VERB", "start": 1, "end": 2}]}
        (answer,) = senses.predict([asked])
        assert answer.instances == (SenseInstance("", "bank", "VERB", 1, 2, (TILT,)),)

    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"text": "the bank"}, "expected tokens, and instances.*missing required field `tokens`"),
            ({"tokens": "the bank", "instances": []}, "Expected `array`, got `str`"),
            (
                {"tokens": ["bank"], "instances": [{"lemma": "bank", "pos": "NOUN", "start": 0, "end": 2}]},
                "the instance 'bank' goes from 0 to 2 of 1 tokens",
            ),
            (
                {"tokens": ["bank"], "instances": [{"lemma": "bank", "pos": "NN", "start": 0, "end": 1}]},
                "the instance 'bank' has pos 'NN': expected NOUN, VERB",
            ),
        ],
    )
    def test_objects_that_are_none(self, senses, asked, message):
        with pytest.raises(DataError, match=f"example 2: .*{message}"):
            senses.predict([SENTENCES[0], asked])


class TestDisk:
    def test_it_says_the_same_when_loaded(self, senses, elmo, tmp_path):
        senses.model.save(tmp_path / "senses")
        loaded = load(tmp_path / "senses", embedders=[elmo])
        assert (loaded.config, loaded.model.inventory) == (senses.config, senses.model.inventory)
        np.testing.assert_array_equal(loaded.model.centroids, senses.model.centroids)
        assert found_keys(loaded, SENTENCES) == found_keys(senses, SENTENCES)

    def test_the_embedder_is_found_again(self, model_folder, tmp_path):
        import elmokit

        learned = wsd.fit(SENTENCES, elmokit.load(model_folder), INVENTORY, name=str(model_folder), layer=1)
        learned.model.save(tmp_path / "senses")
        assert found_keys(load(tmp_path / "senses"), SENTENCES) == found_keys(learned, SENTENCES)

    def test_a_copy_of_the_embedder(self, senses, tmp_path):
        senses.model.save(tmp_path / "senses", bundle=True)
        assert found_keys(load(tmp_path / "senses"), SENTENCES) == found_keys(senses, SENTENCES)

    def test_a_folder_of_the_first_version_is_read(self, tmp_path):
        """It had no prior; its files are written here as they were then."""
        vectors = StaticVectors(["river", "money"], np.eye(2, dtype=np.float32))
        vectors.save(tmp_path / "words.safetensors")
        embedder = {"kind": "static", "name": str(tmp_path / "words.safetensors"), "lower_case": False}
        digest = "55247365027afdda64f82e14d4f4885a3431b0b94a087ff8a6c01ad77b68f20c"
        config = {"format": "elmokit senses", "version": 1, "layer": "top", "embedder": embedder | {"digest": digest}}
        folder = tmp_path / "senses"
        folder.mkdir()
        (folder / "task.json").write_text(json.dumps(config | {"keys": [RIVER, MONEY], "counts": [2, 1]}))
        save_file({"centroids": np.eye(2, dtype=np.float32)}, folder / "task.safetensors")
        (folder / "senses.tsv").write_text(f"bank\tNOUN\t{MONEY} {RIVER}\n")
        assert found_keys(load(folder), [sentence("river", word="river", lemma="bank")]) == [(RIVER,)]

    def test_another_embedder_is_refused(self, senses, tmp_path):
        senses.model.save(tmp_path / "senses")
        with pytest.raises(CheckpointError, match="trained with another elmo embedder"):
            load(tmp_path / "senses", embedders=[random_elmo(seed=1)])

    @pytest.mark.parametrize(
        ("file", "content", "message"),
        [
            ("task.json", b"{}", "damaged, or of another version"),
            ("task.json", None, "no trained task: there is no task.json"),
            ("task.safetensors", b"\0" * 20, "cannot be read as the centroids"),
            ("task.safetensors", None, "cannot be read as the centroids"),
            ("senses.tsv", b"bank\n", "senses.tsv, line 1: found 'bank'"),
            ("senses.tsv", None, "senses.tsv: cannot be read"),
        ],
    )
    def test_damage(self, senses, elmo, tmp_path, file, content, message):
        senses.model.save(tmp_path / "senses")
        path = tmp_path / "senses" / file
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        with pytest.raises((CheckpointError, DataError), match=message):
            load(tmp_path / "senses", embedders=[elmo])

    def test_centroids_of_another_run(self, senses, elmo, tmp_path):
        senses.model.save(tmp_path / "senses")
        wsd.fit(SENTENCES[:1], elmo, INVENTORY).model.save(tmp_path / "other")
        (tmp_path / "other" / "task.safetensors").replace(tmp_path / "senses" / "task.safetensors")
        with pytest.raises(CheckpointError, match=r"centroids are \(1, 20\), expected 3 senses of width 20"):
            load(tmp_path / "senses", embedders=[elmo])

    def test_nothing_is_overwritten_or_left_behind(self, senses, tmp_path):
        senses.model.save(tmp_path / "senses")
        with pytest.raises(OutputError, match="is not empty"):
            senses.model.save(tmp_path / "senses")
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError, match="is a file"):
            senses.model.save(tmp_path / "file")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "senses"]


class TestScore:
    def test_parts_of_speech(self, senses):
        gold = [sentence("the bank", RIVER), sentence("they bank", TILT), sentence("a zyx", "zyx%1", word="zyx")]
        answers = [sentence("the bank", MONEY, RIVER), sentence("they bank", TILT), sentence("a zyx", word="zyx")]
        assert wsd.score(gold, answers) == {"f1": pytest.approx(0.4), "f1 NOUN": 0, "f1 VERB": 1}

    @pytest.mark.parametrize(
        ("name", "published"),
        [("senseval2", 66.8), ("senseval3", 66.2), ("semeval2007", 55.2), ("semeval2013", 63.0), ("semeval2015", 67.8)],
    )
    def test_the_first_senses_score_as_published(self, shared_data, wordnet, name, published):
        """With a single centroid of a word that occurs nowhere, every answer is WordNet's first sense."""
        vectors = StaticVectors(["bank"], np.ones((1, 1), dtype=np.float32))
        learned = wsd.fit([sentence("bank", "zyx%1")], vectors, wordnet)
        scores = learned.evaluate(wsd.read(shared_data / "wsd" / "eval" / name / f"{name}.data.xml"))
        assert round(100 * scores["f1"], 1) == published
