"""The API: vectors by OpenAI's and text-embeddings-inference's names, and what is served."""

import asyncio
import base64
import re

import numpy as np
import openai
import pytest
from conftest import random_elmo
from serving import client_of

import elmokit
from elmokit.serve import Limits, ServeSettings, Service, open_service
from elmokit.tasks.training import train

ROUNDING = {"atol": 2e-6, "rtol": 0}  # a batch adds in another order than a sentence alone: see `load`
TEXTS = [
    "He sat on the bank of the river.",
    "The bank raised its rates.",
    "",
    "今天天气很好",
    "<script>alert(1)</script>",
]


@pytest.fixture(scope="module")
def en():
    return elmokit.load("en")


@pytest.fixture(scope="module")
def other():
    return random_elmo()


@pytest.fixture(scope="module")
def client(en, other):
    with client_of(Service({"en": en, "other": other})) as client:
        yield client


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


@pytest.fixture(scope="module")
def openai_client(client):
    return openai.OpenAI(api_key="any", base_url="http://localhost/v1", http_client=client, max_retries=0)


class TestOpenAI:
    @pytest.mark.parametrize("encoding", ["float", "base64", openai.NOT_GIVEN])
    def test_the_unmodified_client(self, openai_client, en, encoding):
        found = openai_client.embeddings.create(input=TEXTS, model="en", encoding_format=encoding)
        assert [one.index for one in found.data] == list(range(len(TEXTS)))
        vectors = [floats(one.embedding) if isinstance(one.embedding, str) else one.embedding for one in found.data]
        np.testing.assert_allclose(vectors, en.sentence_vectors(TEXTS), **ROUNDING)
        assert found.model == "en"
        assert found.usage.total_tokens == sum(map(len, en.tokenize(TEXTS)))

    def test_one_text_and_another_model(self, openai_client, other):
        found = openai_client.embeddings.create(input="A word", model="other", extra_body={"layers": "top"})
        np.testing.assert_allclose(
            found.data[0].embedding, other.sentence_vectors(["A word"], layers="top")[0], **ROUNDING
        )

    def test_models(self, openai_client):
        assert [one.id for one in openai_client.models.list()] == ["en", "other"]

    def test_what_it_raises(self, openai_client):
        with pytest.raises(openai.NotFoundError, match="there is no model 'gpt': served are en, other"):
            openai_client.embeddings.create(input="a", model="gpt")
        with pytest.raises(openai.UnprocessableEntityError, match="dimensions is 7: the vectors of en have 384"):
            openai_client.embeddings.create(input="a", model="en", dimensions=7)
        with pytest.raises(openai.UnprocessableEntityError, match="input"):
            openai_client.embeddings.create(input=[[1, 2, 3]], model="en")


class TestTextEmbeddingsInference:
    def test_embed(self, client, en):
        found = np.array(client.post("/embed", json={"inputs": TEXTS}).json())
        raw = np.array(client.post("/embed", json={"inputs": TEXTS, "normalize": False}).json())
        np.testing.assert_allclose(raw, en.sentence_vectors(TEXTS), **ROUNDING)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 1, 0, 1, 1], atol=1e-6)
        highest = client.post("/embed", json={"inputs": TEXTS[0], "normalize": False, "pooling": "max"}).json()
        np.testing.assert_allclose(highest, en.sentence_vectors(TEXTS[:1], pooling="max"), **ROUNDING)

    @pytest.mark.parametrize("layers", ["average", "top", "all", 0, 2])
    def test_embed_all_gives_what_embed_gives(self, client, en, layers):
        expected = en.embed(TEXTS, layers=layers)
        plain = client.post("/embed_all", json={"inputs": TEXTS, "layers": layers}).json()
        body = {"inputs": TEXTS, "layers": layers, "encoding_format": "base64"}
        packed = client.post("/embed_all", json=body).json()
        for numbers, one, vectors in zip(plain, packed, expected, strict=True):
            np.testing.assert_allclose(np.array(numbers).reshape(vectors.shape), vectors, **ROUNDING)
            assert one["shape"] == list(vectors.shape)
            np.testing.assert_allclose(floats(one["embedding"]).reshape(vectors.shape), vectors, **ROUNDING)

    def test_tokens_and_offsets(self, client, en):
        text = "He didn't sit 🎉 there."
        [found] = client.post("/embed_all", json={"inputs": text, "tokens": True}).json()
        assert [one["text"] for one in found["tokens"]] == en.tokens(text)
        assert all(text[one["start"] : one["stop"]] == one["text"] for one in found["tokens"])
        assert np.array(found["embedding"]).shape == (len(found["tokens"]), en.width)

    def test_tokenize(self, client, en):
        [found] = client.post("/tokenize", json={"inputs": "He sat"}).json()
        ids = en.vocabulary.encode(["<S>", "He", "sat", "</S>"]).tolist()
        bounds = {"special": True, "start": None, "stop": None}
        assert found == [
            {"id": ids[0], "text": "<S>", **bounds},
            {"id": ids[1], "text": "He", "special": False, "start": 0, "stop": 2},
            {"id": ids[2], "text": "sat", "special": False, "start": 3, "stop": 6},
            {"id": ids[3], "text": "</S>", **bounds},
        ]
        body = {"inputs": ["He sat", ""], "add_special_tokens": False, "model": "other"}
        assert [len(one) for one in client.post("/tokenize", json=body).json()] == [2, 0]

    def test_similarity(self, client, en):
        body = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS[1:3]}, "parameters": {"truncate": False}}
        found = client.post("/similarity", json=body).json()
        assert found == pytest.approx([en.similarity(TEXTS[0], TEXTS[1]), 0], abs=1e-5)

    def test_truncate(self, en):
        with client_of(Service({"en": en}, limits=Limits(tokens=4))) as client:
            text = "one two three four five six"
            assert client.post("/embed_all", json={"inputs": text}).status_code == 413
            [found] = client.post("/embed_all", json={"inputs": text, "truncate": True}).json()
            assert len(found) == 4

    def test_info_has_their_names(self, client, en):
        info = client.get("/info").json()
        assert info["model_id"] == "en"
        assert info["model_sha"] == en.digest
        assert info["model_type"] == {"embedding": {"pooling": "mean"}}
        needed = {"model_dtype", "max_concurrent_requests", "max_input_length", "max_batch_tokens", "version"}
        assert needed | {"max_client_batch_size", "auto_truncate", "tokenization_workers"} <= info.keys()
        assert [one["name"] for one in info["models"]] == ["en", "other"]
        assert info["models"][0]["layers"] == 3
        assert info["models"][1]["vocabulary"] is None

    def test_errors_have_their_form(self, client):
        found = client.post("/embed", json={"inputs": 3})
        assert found.status_code == 422
        assert found.json().keys() == {"error", "error_type"}
        assert found.json()["error_type"] == "Validation"


def test_a_layer_that_there_is_not(client):
    found = client.post("/embed_all", json={"inputs": "a", "layers": 3})
    assert (found.status_code, "0 to 2" in found.json()["error"]) == (422, True)


def test_many_at_once_get_their_own(en):
    """Through one event loop, so that requests are batched; each vector is compared."""
    texts = [f"{word} stood on the bank number {number}" for number in range(40) for word in ("He", "She", "It")]
    service = Service({"en": en})
    with client_of(service) as client:

        async def ask(text):
            return await asyncio.to_thread(client.post, "/embed", json={"inputs": text, "normalize": False})

        async def ask_all():
            return await asyncio.gather(*map(ask, texts))

        answers = asyncio.run(ask_all())
        sizes = client.get("/metrics").text
    for text, answer in zip(texts, answers, strict=True):
        np.testing.assert_allclose(answer.json()[0], en.sentence_vectors([text])[0], **ROUNDING)
    assert int(float(re.search(r'elmokit_batch_sentences_sum\{model="en"\} (\S+)', sizes)[1])) == len(texts)


def test_metrics(client):
    client.post("/embed", json={"inputs": "one two three"})
    client.get("/no/such/path")
    client.request("BREW", "/embed")
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain")
    for line in (
        r'elmokit_requests_total\{route="/embed",status="200"\} \d',
        r'elmokit_requests_total\{route="other",status="404"\} \d',
        r'elmokit_request_seconds_bucket\{le="0.1",route="/embed"\} \d',
        r'elmokit_batch_tokens_count\{model="en"\} \d',
        r'elmokit_queue_tokens\{model="en"\} 0',
        r'elmokit_tokens_total\{model="en"\} \d',
        "process_resident_memory_bytes",
    ):
        assert re.search(line, found.text), line
    assert "no/such" not in found.text
    assert "BREW" not in found.text


def test_the_page_and_its_files(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    style = client.get("/page/docs.css")
    assert page.headers["cache-control"] == style.headers["cache-control"] == "no-cache"
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert client.get("/page/../app.py").status_code == 404
    assert client.get("/page/%2e%2e/app.py").status_code == 404


def test_the_description_needs_nothing_from_elsewhere(client):
    found = client.get("/docs").text
    assert "POST /v1/embeddings" in found
    assert "<script" not in found
    assert "://" not in found
    for words in ("or integer from 0 to 2", "<td>true</td>"):  # as JSON writes them
        assert words in found


def test_a_trained_task(tmp_path, en):
    lines = "He O\nlives O\nin O\nParis B-LOC\n. O\n\nAnna B-PER\nsings O\n. O\n\n"
    (tmp_path / "train.conll").write_text(lines * 4)
    predictor = train(
        "tagging",
        train=tmp_path / "train.conll",
        dev=tmp_path / "train.conll",
        embedders=["en"],
        folder=tmp_path / "ner",
    )
    service = open_service(["en"], tasks=[tmp_path / "ner"], limits=Limits(tokens=50, texts=3))
    with client_of(service) as client:
        found = client.post("/tasks/ner", json={"inputs": ["Anna lives in Paris.", ["He", "sings"]]}).json()
        expected = predictor.predict(["Anna lives in Paris.", ["He", "sings"]])
        assert found["task"] == "tagging"
        assert [one["tags"] for one in found["answers"]] == [list(one.tags) for one in expected]
        [task] = client.get("/info").json()["tasks"]
        [mix] = task["mixes"]
        assert sum(mix["weights"]) == pytest.approx(1, abs=1e-5)
        assert task["labels"]
        assert client.post("/tasks/no", json={"inputs": "a"}).status_code == 404
        assert client.post("/tasks/ner", json={"inputs": ["a"] * 4}).status_code == 413
        assert client.post("/tasks/ner", json={"inputs": "word " * 60}).status_code == 413
        wrong = client.post("/tasks/ner", json={"inputs": [{"nonsense": 1}]})
        assert (wrong.status_code, "input 1" in wrong.json()["error"]) == (422, True)
        assert service.tasks["ner"].predictor.model.inputs.sources[0].embedder is service.models["en"].elmo


def test_two_of_the_same_name(tmp_path, en):
    for folder in ("a", "b"):
        en.save(tmp_path / folder / "elmo")
    service = open_service([tmp_path / "a" / "elmo", tmp_path / "b" / "elmo"], settings=ServeSettings())
    assert list(service.models) == ["elmo", "elmo-2"]
    service.close()
