"""The component `elmo` in spaCy's pipelines, and the layer in those that are trained."""

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from conftest import random_elmo
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

import elmokit
from elmokit.errors import CheckpointError, ConfigError, DataError
from elmokit.integrations.spacy import elmo_tok2vec

TEXTS = [
    "He sat on the bank of the river.",
    "The bank raised its rates.",
    "",
    "Two  blanks,\na new line. 🎉",
    "今天天气很好",
]
CONFIG = Path(__file__).parents[1] / "docs" / "spacy" / "tagger.cfg"
TAGGED = """
The/DET bank/NOUN was/AUX steep/ADJ ./PUNCT|She/PRON put/VERB her/PRON money/NOUN in/ADP the/DET bank/NOUN ./PUNCT
He/PRON can/AUX swim/VERB ./PUNCT|The/DET can/NOUN was/AUX empty/ADJ ./PUNCT|They/PRON play/VERB ./PUNCT
The/DET play/NOUN was/AUX long/ADJ ./PUNCT|I/PRON saw/VERB a/DET saw/NOUN ./PUNCT|We/PRON walk/VERB home/ADV ./PUNCT
The/DET walk/NOUN was/AUX short/ADJ ./PUNCT|You/PRON watch/VERB the/DET river/NOUN ./PUNCT
Dogs/NOUN bark/VERB ./PUNCT|My/PRON watch/NOUN is/AUX old/ADJ ./PUNCT
The/DET bark/NOUN of/ADP the/DET tree/NOUN is/AUX hard/ADJ ./PUNCT|He/PRON rose/VERB early/ADV ./PUNCT
A/DET red/ADJ rose/NOUN stood/VERB there/ADV ./PUNCT|Ships/NOUN sail/VERB ./PUNCT
The/DET sail/NOUN was/AUX white/ADJ ./PUNCT|They/PRON land/VERB at/ADP noon/NOUN ./PUNCT
The/DET land/NOUN is/AUX flat/ADJ|We/PRON fish/VERB in/ADP the/DET lake/NOUN ./PUNCT
The/DET fish/NOUN swam/VERB away/ADV ./PUNCT|Birds/NOUN fly/VERB ./PUNCT
A/DET fly/NOUN sat/VERB on/ADP the/DET wall/NOUN ./PUNCT|She/PRON left/VERB ./PUNCT
He/PRON has/AUX a/DET plan/NOUN ./PUNCT|They/PRON plan/VERB it/PRON ./PUNCT|It/PRON rains/VERB ./PUNCT
The/DET rains/NOUN came/VERB late/ADV ./PUNCT|I/PRON cook/VERB ./PUNCT|The/DET cook/NOUN is/AUX ill/ADJ ./PUNCT
We/PRON rest/VERB ./PUNCT|The/DET rest/NOUN is/AUX easy/ADJ
"""
SENTENCES = [[pair.rsplit("/", 1) for pair in line.split()] for line in TAGGED.strip().replace("\n", "|").split("|")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spacy") / "model"
    random_elmo().save(folder)
    return str(folder)


@pytest.fixture
def nlp(folder):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": folder})
    return nlp


def vectors_of(nlp):
    return np.concatenate([doc.tensor for doc in nlp.pipe(TEXTS)])


class TestComponent:
    def test_the_bundled_model_of_the_language(self):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo")
        doc = nlp("He sat on the bank.")
        [expected] = elmokit.load("en").embed([["He", "sat", "on", "the", "bank", "."]])
        np.testing.assert_allclose(doc.tensor, expected, atol=2e-6)

    def test_a_language_without_one(self):
        with pytest.raises(ConfigError, match="language 'de' comes with elmokit: bundled are en, zh; name another"):
            spacy.blank("de").add_pipe("elmo")

    def test_an_unknown_model(self):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": "nowhere"})
        with pytest.raises(CheckpointError, match=r"no model of that name comes with elmokit \(en, zh\)"):
            nlp("He sat.")

    def test_all_layers_are_no_vector(self):
        with pytest.raises(ConfigError, match=r"token\._\.elmo_layers"):
            spacy.blank("en").add_pipe("elmo", config={"layers": "all"})

    def test_batches_are_single_calls(self, nlp):
        docs = list(nlp.pipe(TEXTS, batch_size=2))
        for doc, text in zip(docs, TEXTS, strict=True):
            np.testing.assert_allclose(doc.tensor, nlp(text).tensor, atol=2e-6)
            assert doc.text == text
            assert doc.tensor.shape == (len(doc), elmokit.load(nlp.get_pipe("elmo").model.name).width)

    def test_white_space_is_left_out(self, nlp, folder):
        doc = nlp("He  sat\n here")
        words = [token.text for token in doc if not token.is_space]
        assert words == ["He", "sat", "here"]
        [expected] = elmokit.load(folder).embed([words])
        np.testing.assert_allclose(doc.tensor[[not token.is_space for token in doc]], expected, atol=2e-6)
        np.testing.assert_allclose(doc.vector, expected.mean(axis=0), atol=2e-6)
        assert not doc[1].vector.any()
        assert not doc[1].has_vector
        assert not doc[1:2].has_vector

    def test_sentences_by_themselves_where_they_are_known(self, nlp):
        whole = nlp("He sat. She ran.").tensor
        nlp.add_pipe("sentencizer", before="elmo")
        apart = nlp("He sat. She ran.").tensor
        np.testing.assert_allclose(apart[3:], nlp("She ran.").tensor, atol=2e-6)
        assert np.abs(whole - apart).max() > 1e-3

    def test_vectors_and_similarities(self, nlp):
        nlp.vocab.set_vector("bank", np.ones(7, np.float32))  # static vectors of the vocabulary do not count
        one, other = nlp.pipe(TEXTS[:2])
        np.testing.assert_array_equal(one[4].vector, one.tensor[4])
        np.testing.assert_allclose(one[1:4].vector, one.tensor[1:4].mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(one.vector, one.tensor.mean(axis=0), atol=1e-6)
        assert one[4].has_vector
        assert one[1:4].has_vector
        left, right = one[4].vector, other[1].vector
        cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert one[4].similarity(other[1]) == pytest.approx(cosine, abs=1e-6)
        assert one[4:5].similarity(other[1:2]) == pytest.approx(cosine, abs=1e-6)
        assert one.similarity(one) == pytest.approx(1, abs=1e-6)
        assert one.similarity(nlp("")) == 0
        assert one[1:4].as_doc()[0].vector.tolist() == one[1].vector.tolist()

    def test_layers_on_demand(self, nlp, folder):
        doc = nlp("He sat on the bank.")
        [expected] = elmokit.load(folder).embed([[token.text for token in doc]], layers="all")
        np.testing.assert_allclose(doc[4]._.elmo_layers, expected[:, 4], atol=2e-6)
        assert doc[4]._.elmo_layers.base is doc[0]._.elmo_layers.base  # computed once
        with pytest.raises(DataError, match="run its document through a pipeline with 'elmo'"):
            _ = spacy.blank("en")("He sat.")[0]._.elmo_layers

    @pytest.mark.parametrize("layers", ["top", 0])
    def test_a_layer(self, folder, layers):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": folder, "layers": layers})
        doc = nlp("He sat.")
        np.testing.assert_allclose(doc.tensor[1], doc[1]._.elmo_layers[-1 if layers == "top" else 0], atol=2e-6)

    def test_words_of_ones_own(self, nlp):
        doc = nlp(Doc(nlp.vocab, words=["don't", "split", "这个词"]))
        assert len(doc.tensor) == 3
        assert doc.tensor.any(axis=1).all()

    def test_several_processes(self, nlp):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\[W109\]")  # hooks do not travel; spaCy takes the tensor itself
            docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=2))
        for doc, expected in zip(docs, nlp.pipe(TEXTS), strict=True):
            np.testing.assert_allclose(doc.tensor, expected.tensor, atol=2e-6)
        np.testing.assert_array_equal(docs[0][4].vector, docs[0].tensor[4])
        assert docs[0][4]._.elmo_layers.any()


class TestStoring:
    @pytest.fixture
    def gone(self, nlp, folder, tmp_path):
        """A pipeline whose model's folder is gone, and its vectors."""
        elmokit.load(folder).save(tmp_path / "gone")
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": str(tmp_path / "gone"), "layers": "top"})
        vectors = vectors_of(nlp)
        for path in (tmp_path / "gone").iterdir():
            path.unlink()
        return nlp, vectors

    def test_disk(self, gone, tmp_path):
        nlp, vectors = gone
        for _ in range(2):  # the second time over the first
            nlp.to_disk(tmp_path / "pipeline")
        np.testing.assert_array_equal(vectors_of(spacy.load(tmp_path / "pipeline")), vectors)

    def test_bytes(self, gone):
        nlp, vectors = gone
        copy = spacy.blank("en")
        copy.add_pipe("elmo", config={"layers": "top"})
        np.testing.assert_array_equal(vectors_of(copy.from_bytes(nlp.to_bytes())), vectors)

    def test_pickles(self, gone):
        nlp, vectors = gone
        component = pickle.loads(pickle.dumps(nlp.get_pipe("elmo")))
        doc = component(nlp.make_doc(TEXTS[0]))
        np.testing.assert_array_equal(doc.tensor, vectors[: len(doc)])

    def test_documents(self, nlp):
        doc = nlp(TEXTS[0])
        assert len(pickle.dumps(doc)) - len(pickle.dumps(nlp.make_doc(TEXTS[0]))) < doc.tensor.nbytes + 2000
        copy = pickle.loads(pickle.dumps(doc))
        assert copy.similarity(doc) == pytest.approx(1, abs=1e-6)
        np.testing.assert_array_equal(copy[4]._.elmo_layers, doc[4]._.elmo_layers)
        kept = DocBin(store_user_data=True, docs=[doc]).get_docs(nlp.vocab)
        assert next(kept)[4]._.elmo_layers.tolist() == doc[4]._.elmo_layers.tolist()


class TestLayer:
    def documents(self):
        return [Doc(Vocab(), words=[word for word, _ in sentence]) for sentence in SENTENCES[:3]]

    @pytest.mark.parametrize("layers", ["average", "all", 1])
    def test_vectors_that_do_not_learn(self, folder, layers):
        docs, elmo = self.documents(), elmokit.load(folder)
        model = elmo_tok2vec(folder, layers=layers).initialize(docs)
        found, backprop = model.begin_update(docs)
        for doc, vectors, expected in zip(
            docs, found, elmo.embed([[token.text for token in doc] for doc in docs], layers=layers), strict=True
        ):
            flat = np.concatenate(expected, axis=1) if layers == "all" else expected
            np.testing.assert_allclose(vectors, flat, atol=2e-6)
            assert vectors.shape == (len(doc), model.get_dim("nO"))
        assert backprop(found) == []

    def test_is_stored_with_its_model(self, folder):
        docs = self.documents()
        model = elmo_tok2vec(folder, layers="all", width=5).initialize(docs)
        copy = elmo_tok2vec("nowhere", layers="all", width=5).from_bytes(model.to_bytes())
        for one, other in zip(model.predict(docs), copy.predict(docs), strict=True):
            assert one.shape[1] == 5
            np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:.*W1:UserWarning")
def test_spacy_train(folder, tmp_path, capfd):
    docs = [
        Doc(Vocab(), words=[word for word, _ in sentence], tags=[tag for _, tag in sentence])
        for sentence in SENTENCES[:30]
    ]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    data = {"paths.train": str(tmp_path / "train.spacy"), "paths.dev": str(tmp_path / "train.spacy")}
    steps = {"training.max_epochs": 0, "training.max_steps": 30, "training.eval_frequency": 15}
    train(CONFIG, tmp_path / "tagger", overrides=data | steps)
    nlp = spacy.load(tmp_path / "tagger" / "model-best")
    found = [[token.tag_ for token in nlp(Doc(nlp.vocab, words=[token.text for token in doc]))] for doc in docs]
    known = [[tag for _, tag in sentence] for sentence in SENTENCES[:30]]
    right = np.mean([one == other for a, b in zip(found, known, strict=True) for one, other in zip(a, b, strict=True)])
    assert right > 0.95, capfd.readouterr().out


def test_the_page_shows_what_is_trained():
    page = (CONFIG.parents[1] / "integrations.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```ini\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert shown in CONFIG.read_text(encoding="utf-8")
