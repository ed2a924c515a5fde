"""One contract for every file of vectors."""

import json

import h5py
import numpy as np
import pytest
from conftest import SENTENCES

from elmokit.errors import ConfigError, DataError, OutputError
from elmokit.vectors import FORMATS, Embedded, read_vectors, write_vectors

ENDINGS = sorted(FORMATS)


def embedded(sentences, *, layers: int | None = None) -> list[Embedded]:
    random = np.random.default_rng(0)
    shape = () if layers is None else (layers,)
    return [
        Embedded(" ".join(tokens), tokens, random.standard_normal((*shape, len(tokens), 6), dtype=np.float32))
        for tokens in sentences
    ]


@pytest.fixture(params=ENDINGS)
def path(request, tmp_path):
    return tmp_path / f"vectors{request.param}"


class TestEveryEnding:
    @pytest.mark.parametrize("layers", [None, 3])
    @pytest.mark.parametrize("sentences", [SENTENCES, [[], *SENTENCES, [], []], SENTENCES * 700])
    def test_round_trip(self, path, layers, sentences):
        written = embedded(sentences, layers=layers)
        assert write_vectors(path, iter(written)) == len(written)
        again = list(read_vectors(path))
        assert len(again) == len(written)
        for sentence, vectors in zip(written, again, strict=True):
            assert vectors.dtype == np.float32
            np.testing.assert_array_equal(vectors, sentence.vectors)
        assert list(path.parent.iterdir()) == [path]

    def test_nothing_at_all(self, path):
        assert write_vectors(path, []) == 0
        assert list(read_vectors(path)) == []

    def test_an_error_on_the_way_leaves_the_old_file(self, path):
        path.write_text("old")

        def broken():
            yield from embedded(SENTENCES)
            raise DataError("line 7 is not UTF-8")

        with pytest.raises(DataError, match="line 7"):
            write_vectors(path, broken())
        assert path.read_text() == "old"
        assert list(path.parent.iterdir()) == [path]

    def test_truncated(self, path):
        write_vectors(path, embedded(SENTENCES))
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(DataError, match="cannot be read as vectors"):
            list(read_vectors(path))

    def test_folder_in_the_way(self, path):
        path.mkdir()
        with pytest.raises(OutputError, match="is a folder"):
            write_vectors(path, [])

    def test_folder_missing(self, path):
        with pytest.raises(OutputError, match="No such file or directory"):
            write_vectors(path / "deeper" / path.name, [])


def test_unknown_ending(tmp_path):
    with pytest.raises(ConfigError, match=r"unknown ending '.txt'.*\.h5"):
        write_vectors(tmp_path / "vectors.txt", [])


def test_hdf5_is_laid_out_as_allennlp_does(tmp_path):
    written = embedded([["a", "b"], [], ["引号", '"']], layers=3)
    write_vectors(tmp_path / "vectors.hdf5", written)
    with h5py.File(tmp_path / "vectors.hdf5") as file:
        assert sorted(file) == ["0", "1", "2", "sentence_to_index"]
        assert file["0"].shape == (3, 2, 6)
        index = json.loads(file["sentence_to_index"][0])
    assert index == {"a b": "0", "": "1", '引号 "': "2"}


def test_other_libraries_read_the_flat_layout(tmp_path):
    from safetensors.numpy import load_file

    written = embedded(SENTENCES, layers=2)
    write_vectors(tmp_path / "vectors.safetensors", written)
    write_vectors(tmp_path / "vectors.npz", written)
    tensors, arrays = load_file(tmp_path / "vectors.safetensors"), np.load(tmp_path / "vectors.npz")
    for found in (tensors, arrays):
        assert found["lengths"].tolist() == [len(tokens) for tokens in SENTENCES]
        parts = np.split(found["vectors"], np.cumsum(found["lengths"])[:-1])
        np.testing.assert_array_equal(parts[1], written[1].vectors.transpose(1, 0, 2))


def test_parquet_has_a_row_a_token(tmp_path):
    from pyarrow import parquet

    write_vectors(tmp_path / "flat.parquet", embedded([["a", "b"], ["c"]]))
    table = parquet.read_table(tmp_path / "flat.parquet").to_pydict()
    assert table["sentence"] == [0, 0, 1]
    assert table["position"] == [0, 1, 0]
    assert table["token"] == ["a", "b", "c"]
    write_vectors(tmp_path / "layers.parquet", embedded([["a", "b"], ["c"]], layers=2))
    assert parquet.read_schema(tmp_path / "layers.parquet").names[3:] == ["layer_0", "layer_1"]
