"""Models as ONNX graphs, run by onnxruntime."""

import json

import numpy as np
import pytest
from conftest import BYTES, CONFIGS, SENTENCES, random_elmo

import elmokit
from elmokit.cli import app, main
from elmokit.errors import ConfigError, OutputError
from elmokit.onnx_export import write_onnx

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript", reason="needs the extra 'onnx'")
CLOSE = {"atol": 1e-5}


def encode(sentences, beside):
    """What a program without elmokit would write, by the JSON file alone: ids of padded sentences with their bounds."""
    begin, end = beside["bounds"]
    longest = max(map(len, sentences)) + 2
    rows = [[begin, *words, end] for words in sentences]
    inputs = {}
    if (characters := beside["characters"]) is not None:
        pad, most = characters["pad"], characters["max_characters"]
        numbered = enumerate(characters["characters"], characters["first"] or 0)
        numbers = {character: number for number, character in numbered}
        marks = {begin: [characters["bos"]], end: [characters["eos"]]}

        def spell(word):
            if characters["alphabet"] == "bytes":
                return list(word.encode())
            return [numbers.get(character, characters["unknown"]) for character in word]

        ids = np.full((len(rows), longest, most), pad, np.int64)
        for row, words in enumerate(rows):
            for column, word in enumerate(words):
                inner = marks.get(word) or spell(word)[: most - 2]
                ids[row, column, : len(inner) + 2] = [characters["bow"], *inner, characters["eow"]]
        inputs["char_ids"] = ids
    if (words := beside["words"]) is not None:
        numbers = {word: number for number, word in reversed([*enumerate(words["vocabulary"])])}
        ids = np.full((len(rows), longest), words["pad"], np.int64)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = [numbers.get(token[: words["longest"]], words["unknown"]) for token in tokens]
        inputs["word_ids"] = ids
    return inputs


def run(path, sentences):
    """Every layer of each sentence, (L + 1, T, 2P)."""
    session = onnxruntime.InferenceSession(path)
    beside = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    [layers] = session.run(None, encode(sentences, beside))  # (L + 1, B, T, 2P)
    assert layers.shape[0] == beside["layers"]
    assert layers.shape[3] == beside["width"]
    return [layers[:, row, : len(words)] for row, words in enumerate(sentences)]


def assert_same(path, elmo, sentences, **tolerance):
    for found, expected in zip(run(path, sentences), elmo.embed(sentences, layers="all"), strict=True):
        np.testing.assert_allclose(found, expected, **(tolerance or CLOSE))


@pytest.fixture(scope="module", params=["en", "zh"])
def bundled(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / f"{request.param}.onnx"
    app(["convert", request.param, str(path)])
    return path, elmokit.load(request.param)


def test_any_length(bundled):
    path, elmo = bundled
    words = [word for sentence in SENTENCES[:4] for word in sentence]
    for length in (1, 2, 3, 10, 50, 200, 500):
        assert_same(path, elmo, [(words * 20)[:length]])


def test_any_batch(bundled):
    path, elmo = bundled
    assert_same(path, elmo, [*SENTENCES, SENTENCES[0]] * 3)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_kind(name, tmp_path):
    elmo = random_elmo(CONFIGS[name])
    write_onnx(elmo, tmp_path / "model.onnx")
    sentences = SENTENCES[:5] if name == "words" else SENTENCES
    assert_same(tmp_path / "model.onnx", elmo, sentences)


def test_half_is_small_and_close(tmp_path):
    elmo = elmokit.load("en")
    write_onnx(elmo, tmp_path / "half.onnx", half=True)
    weights = sum(weight.numel() for weight in elmo.bilm.parameters())
    assert (tmp_path / "half.onnx").stat().st_size < 2.2 * weights  # bytes: two each, and the graph
    for found, expected in zip(
        run(tmp_path / "half.onnx", SENTENCES), elmo.embed(SENTENCES, layers="all"), strict=True
    ):
        cosine = (found * expected).sum(-1) / np.linalg.norm(found, axis=-1) / np.linalg.norm(expected, axis=-1)
        assert cosine.min() > 0.999


def test_mistakes(tmp_path, capsys):
    elmo = random_elmo(BYTES)
    with pytest.raises(ConfigError, match="ends in .onnx"):
        write_onnx(elmo, tmp_path / "model.bin")
    with pytest.raises(OutputError, match="no folder"):
        write_onnx(elmo, tmp_path / "missing" / "model.onnx")
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(OutputError, match="model.json is there already"):
        write_onnx(elmo, tmp_path / "model.onnx")
    with pytest.raises(SystemExit):
        main(["convert", "en", str(tmp_path / "model.onnx")])
    assert "is there already" in capsys.readouterr().err
    write_onnx(elmo, tmp_path / "model.onnx", overwrite=True)
    assert {file.name for file in tmp_path.iterdir()} == {"model.onnx", "model.json"}
