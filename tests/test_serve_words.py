"""Words in their sentences and in corpora, over HTTP: what the library finds, in JSON."""

import threading
from math import log2

import numpy as np
import pytest
from conftest import new_cache
from serving import SAMPLE, client_of, wait_for_corpora

import elmokit
from elmokit.answers import plain
from elmokit.lexicon import (
    Surroundings,
    build_index,
    context_neighbors,
    find_lines,
    find_senses,
    open_corpus,
    substitutes,
    surprisal,
)
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.lexicon.predictions import position_probabilities
from elmokit.lexicon.ranks import rank_words
from elmokit.serve import Limits, Service, open_service
from elmokit.static import StaticVectors

TEXT = "In the evening she played on the bank of the river ."
QUERY = "In the evening she played on the [bank] of the river ."


@pytest.fixture(scope="module")
def en():
    return elmokit.load("en")


@pytest.fixture(scope="module")
def static(tmp_path_factory, en):
    path = tmp_path_factory.mktemp("static") / "vectors.txt"
    words = ["bank", "river", "money", "shore"]
    StaticVectors(words, np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)).save(path)
    return path


@pytest.fixture(scope="module")
def client(static, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMOKIT_CACHE", new_cache(tmp_path_factory))
        service = open_service(["en", "zh"], corpora=[SAMPLE, SAMPLE.with_name("zh.txt")], static=static)
        with client_of(service) as client:
            wait_for_corpora(client)
            yield client


def ask(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_substitutes(client, en):
    assert ask(client, "/substitutes", text=QUERY, k=5) == plain(substitutes(en, QUERY, k=5))
    position = en.tokens(TEXT).index("bank")
    assert ask(client, "/substitutes", text=TEXT, position=position, k=5) == ask(
        client, "/substitutes", text=QUERY, k=5
    )
    assert ask(client, "/substitutes", text="see [1] here", position=0)["word"] == "see"
    assert ask(client, "/substitutes", text="他在[河]边。", model="zh")["word"] == "河"
    for wrong in ({"text": TEXT}, {"text": TEXT, "position": 99}, {"text": QUERY, "direction": "up"}):
        assert client.post("/substitutes", json=wrong).status_code == 422


def test_surprisal(client, en):
    found, expected = ask(client, "/surprisal", text=TEXT), surprisal(en, TEXT)
    assert [one["forward"] for one in found["words"]] == pytest.approx([one.forward for one in expected.words])
    assert [one["backward"] for one in found["words"]] == pytest.approx([one.backward for one in expected.words])
    assert (found["begin"], found["end"]) == pytest.approx((expected.begin, expected.end))
    assert all(TEXT[one["start"] : one["stop"]] == one["word"] for one in found["words"])
    assert ask(client, "/surprisal", text="")["words"] == []


def test_ranks(en):
    words = [*en.tokens(TEXT), "qqqqzz"]
    found = rank_words(en, words).words
    for position, one in enumerate(found[:-1]):
        for direction in ("forward", "backward", "both"):
            row = position_probabilities(en, words, position, direction=direction)
            own = row[en.vocabulary.encode([one.word])[0]]
            assert getattr(one.ranks, direction) == (row > own).sum() + 1
        assert one.both == pytest.approx(-log2(own), abs=1e-5)  # of one row alone, or of many together
    assert (found[-1].known, found[-1].both, found[-1].ranks) == (False, None, None)
    assert found[-1].forward > 0


def test_a_long_sentence_has_ranks_too(en):
    words = en.tokens(TEXT) * 7  # more than are predicted at a time
    assert (
        rank_words(en, words).words[75].ranks.both
        == substitutes(en, " ".join([*words[:75], f"[{words[75]}]", *words[76:]]), view="fits").rank
    )


@pytest.mark.parametrize("layers", ["average", 0, "all"])
def test_cosines(client, en, layers):
    second = "The bank lends money"
    found = ask(client, "/cosines", first=TEXT, second=second, layers=layers)
    assert [one["text"] for one in found["second"]] == en.tokens(second)
    assert list(found["cosines"]) == (["0", "1", "2", "average"] if layers == "all" else [str(layers)])
    for layer, matrix in found["cosines"].items():
        one, other = en.embed([TEXT, second], layers=int(layer) if layer.isdecimal() else layer)
        np.testing.assert_allclose(matrix, unit_vectors(one) @ unit_vectors(other).T, atol=1e-5)


def test_corpora(client):
    english, chinese = client.get("/corpora").json()
    assert (english["name"], english["model"], english["state"]) == ("en", "en", "ready")
    assert (chinese["name"], chinese["model"]) == ("zh", "zh")
    assert english["contents"]["documents"] == 1
    assert english["progress"]["done"] == english["progress"]["total"] == english["contents"]["sentences"]


def test_neighbors_of_a_word(client):
    found = ask(client, "/neighbors", query="bank", k=3)
    assert len(found["neighbors"]) == 3
    assert found["neighbors"][0].keys() == {"word", "cosine"}
    assert {one["word"] for one in found["static"]} == {"river", "money", "shore"}
    assert ask(client, "/neighbors", query="evening")["static"] == []


@pytest.mark.parametrize("layers", ["average", 1])
def test_neighbors_in_context(client, en, layers):
    found = ask(client, "/neighbors", query=QUERY, layers=layers, k=4)
    corpus = open_corpus([SAMPLE], "words")
    expected = context_neighbors(QUERY, corpus, en, layers=layers, k=4)
    assert [one["occurrence"]["sentence"] for one in found["neighbors"]] == [
        one.occurrence.context.text for one in expected
    ]
    assert [one["cosine"] for one in found["neighbors"]] == pytest.approx([one.cosine for one in expected], abs=1e-5)
    assert {one["occurrence"]["document"] for one in found["neighbors"]} == {"en.txt"}
    for one in found["neighbors"]:
        assert f"{one['left']}bank{one['right']}" == one["occurrence"]["sentence"]
    assert "bank" not in {one["word"] for one in found["words"]}
    assert len(found["words"]) == 4
    assert len(found["static"]) == 3


def test_neighbors_of_any_word_and_in_a_document(client):
    found = ask(client, "/neighbors", query=QUERY, any_word=True, document="en.txt", k=300)
    assert len({one["occurrence"]["token"] for one in found["neighbors"]}) > 1
    for wrong, status in (
        ({"any_word": True, "layers": 1}, 422),
        ({"document": "no.txt"}, 422),
        ({"token": "qq"}, 404),
    ):
        assert client.post("/neighbors", json={"query": QUERY, **wrong}).status_code == status


def test_senses(client):
    found = ask(client, "/senses", word="bank", examples=2)
    assert sum(one["count"] for one in found["senses"]) == len(found["occurrences"]) == len(found["points"])
    assert found["occurrences"][0].keys() == {"token", "sentence", "position", "document"}
    assert len(found["labels"]) == len(found["points"])
    assert all(len(one["examples"]) <= 2 for one in found["senses"])
    by_itself = ask(client, "/senses", word="bank")
    corpus = open_corpus(SAMPLE, elmokit.load("en").tokenizer)
    said = find_senses("bank", corpus, Surroundings(elmokit.load("en")), layers="top")
    assert (by_itself["apart"], len(by_itself["senses"])) == (said.apart, len(said.senses))
    own = ask(client, "/senses", word="bank", by="word", layers=1, count=3)
    assert len(own["senses"]) == 3
    assert ask(client, "/senses", word="bank", limit=1)["silhouette"] is None


def test_concordance(client):
    found = ask(client, "/concordance", word="bank", reach=10)
    lines, text = found["lines"], SAMPLE.read_text(encoding="utf-8")
    assert found["count"] == len(lines) == sum(found["documents"].values())
    assert list(found["documents"]) == ["en.txt"]
    for line in lines:
        assert line["word"] == "bank"
        assert f"{line['left'].lstrip('…')}bank{line['right'].rstrip('…')}" in text
        assert len(line["left"]) <= 11
    assert [line["sentence"] for line in lines] == sorted(line["sentence"] for line in lines)
    counts = [sum(line["sense"] == number for line in lines) for number in range(1, len(found["senses"]) + 1)]
    assert counts == [one["count"] for one in found["senses"]]
    assert found["senses"][0]["keywords"][0].keys() == {"word", "score"}
    bare = ask(client, "/concordance", word="bank", reach=10, senses=False)
    assert [line | {"sense": None, "x": None, "y": None} for line in lines] == bare["lines"]
    assert len(ask(client, "/concordance", word="bank", limit=5)["lines"]) == 5


def test_lines_are_those_of_the_command(client):
    found = ask(client, "/concordance", word="bank", reach=1000, senses=False)["lines"]
    lines = find_lines("bank", open_corpus(SAMPLE, elmokit.load("en").tokenizer))
    assert found == [line._replace(document="en.txt")._asdict() | {"x": None, "y": None} for line in lines]


def test_a_word_that_the_corpus_lacks(client):
    for path in ("/senses", "/concordance"):
        answer = client.post(path, json={"word": "bannk"})
        assert (answer.status_code, "near spellings that it has: bank" in answer.json()["error"]) == (404, True)
    assert client.post("/neighbors", json={"query": "bannk"}).status_code == 404
    assert client.post("/senses", json={"word": "bank", "corpus": "no"}).status_code == 404
    assert client.post("/senses", json={"word": "bank", "layers": 9}).status_code == 422
    assert client.post("/senses", json={"word": "bank", "typo": 9}).status_code == 422


def test_a_model_without_a_softmax(elmo):
    with client_of(Service({"bare": elmo})) as client:
        for path in ("/substitutes", "/surprisal"):
            answer = client.post(path, json={"text": "a [word]"})
            assert (answer.status_code, "no softmax" in answer.json()["error"]) == (422, True)
        assert client.get("/info").json()["models"][0]["predicts"] is False


def test_an_index_that_is_being_built(en, monkeypatch):
    """The server answers meanwhile, says how far it is, and what is committed is kept when it ends."""
    begun, go_on = threading.Event(), threading.Event()

    service = open_service(["en"], corpora=[SAMPLE])
    watch = service.corpora["en"].watch
    update = watch.update

    def slow(stage, *numbers, **more):
        update(stage, *numbers, **more)
        begun.set()
        go_on.wait(30)
        update(stage, *numbers, **more)

    monkeypatch.setattr(watch, "update", slow)
    with client_of(service) as client:
        assert begun.wait(30)
        answer = client.post("/concordance", json={"word": "bank"})
        assert (answer.status_code, "reading: 1 sentences" in answer.json()["error"]) == (503, True)
        assert answer.headers["retry-after"]
        assert client.get("/corpora").json()[0]["state"] == "building"
        assert client.post("/embed", json={"inputs": "a"}).status_code == 200
        threading.Timer(0.3, go_on.set).start()  # the server ends while it is built
    assert service.corpora["en"].state == "waiting"


def test_an_index_from_before(tmp_path, en):
    folder = tmp_path / "sample.index"
    build_index(open_corpus([SAMPLE], "words"), en, folder, layers="top")
    service = open_service(["zh", "en"], corpora=[folder])
    with client_of(service) as client:
        wait_for_corpora(client)
        [corpus] = client.get("/corpora").json()
        assert (corpus["model"], corpus["state"], corpus["contents"]["layer"]) == ("en", "ready", "top")
        assert ask(client, "/neighbors", query=QUERY)["layer"] == "top"
    with pytest.raises(elmokit.errors.ConfigError, match="serve that too, by --model"):
        open_service(["zh"], corpora=[folder])


def test_which_model_reads(tmp_path):
    service = open_service(["zh", "en"], corpora=[SAMPLE, f"zh={SAMPLE}"])
    assert {one.name: one.model for one in service.corpora.values()} == {"en": "en", "en-2": "zh"}
    service.close()


def test_a_corpus_that_cannot_be_read(tmp_path):
    (tmp_path / "empty.txt").write_text(" \n")
    service = open_service(["en"], corpora=[tmp_path / "empty.txt"])
    with client_of(service) as client:
        wait_for_corpora(client)
        [corpus] = client.get("/corpora").json()
        assert (corpus["state"], corpus["problem"]) == ("failed", "the corpus holds no words")
        assert client.post("/senses", json={"word": "a"}).status_code == 422


def test_limits_of_studies(en):
    with client_of(Service({"en": en}, limits=Limits(tokens=5))) as client:
        for path, body in (
            ("/surprisal", {"text": TEXT}),
            ("/substitutes", {"text": QUERY}),
            ("/cosines", {"first": TEXT, "second": "a"}),
        ):
            answer = client.post(path, json=body)
            assert (answer.status_code, "the limit is 5" in answer.json()["error"]) == (413, True)
