"""One contract for every file of vectors."""

import json
import subprocess
import sys
import tracemalloc
from itertools import islice

import h5py
import numpy as np
import pytest
from conftest import SENTENCES

from elmokit.errors import ConfigError, DataError, OutputError
from elmokit.text.corpus import Context, make_corpus
from elmokit.text.tokenizers import Token
from elmokit.vectors import FORMATS, Embedded, read_vectors, write_vectors

ENDINGS = sorted(FORMATS)


def embedded(sentences, *, layers: int | None = None) -> list[Embedded]:
    random = np.random.default_rng(0)
    shape = () if layers is None else (layers,)
    contexts = [context for words in sentences for context in make_corpus([words]) or [Context("", [], "")]]
    return [
        Embedded(context, random.standard_normal((*shape, len(context.tokens), 6), dtype=np.float32))
        for context in contexts
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


CONTEXTS = [
    Context("Ｈｉ, “bank”", [Token("Hi", 0, 2), Token("“", 4, 5), Token('bank"\n', 5, 10)], "a, b.txt"),
    Context("", [], "a, b.txt"),
    Context("宝玉笑道。", [Token("宝玉", 0, 2), Token("NA", 2, 4)], "红楼梦.jsonl:3"),
]
ROWS = [
    (context.document, number, position, token.text, token.start, token.end, context.text)
    for number, context in enumerate(CONTEXTS)
    for position, token in enumerate(context.tokens)
]


@pytest.fixture
def told(tmp_path):
    """Writes the sentences above with an ending, and gives the path and the vectors, all tokens end to end."""

    def write(ending: str, *, layers: int | None = None):
        shape = () if layers is None else (layers,)
        random = np.random.default_rng(1)
        vectors = [random.standard_normal((*shape, len(one.tokens), 6), dtype=np.float32) for one in CONTEXTS]
        write_vectors(tmp_path / f"told{ending}", map(Embedded, CONTEXTS, vectors))
        return tmp_path / f"told{ending}", np.concatenate(vectors, axis=-2)

    return write


class TestParquet:
    """A row a token, with all that is known of it, opened as the users of other libraries do."""

    NAMES = ("document", "sentence", "position", "token", "start", "end", "text")

    def test_by_pandas(self, told):
        pandas = pytest.importorskip("pandas")
        path, vectors = told(".parquet")
        table = pandas.read_parquet(path)
        assert list(table.columns) == [*self.NAMES, "vector"]
        assert list(table[list(self.NAMES)].itertuples(index=False, name=None)) == ROWS
        np.testing.assert_array_equal(np.stack(table["vector"]), vectors)
        assert table.groupby("document")["token"].count().to_dict() == {"a, b.txt": 3, "红楼梦.jsonl:3": 2}

    def test_by_polars(self, told):
        polars = pytest.importorskip("polars")
        path, vectors = told(".parquet")
        table = polars.read_parquet(path)
        assert table.select(self.NAMES).rows() == ROWS
        assert table.schema["vector"] == polars.Array(polars.Float32, 6)
        np.testing.assert_array_equal(table["vector"].to_numpy(), vectors)
        assert table.filter(polars.col("token") == "NA")["text"].to_list() == ["宝玉笑道。"]

    def test_layers_are_columns(self, told):
        polars = pytest.importorskip("polars")
        path, vectors = told(".parquet", layers=2)
        table = polars.read_parquet(path)
        assert table.columns == [*self.NAMES, "layer_0", "layer_1"]
        np.testing.assert_array_equal(table["layer_1"].to_numpy(), vectors[1])


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_flat_files_carry_tokens_texts_documents_and_offsets(told, ending):
    from safetensors.numpy import load_file

    path, vectors = told(ending)
    found = dict(np.load(path, allow_pickle=False)) if ending == ".npz" else load_file(path)
    tokens, texts, documents = (
        bytes(found[name]).decode().split("\n")[:-1] for name in ("tokens", "texts", "documents")
    )
    sentences = np.repeat(np.arange(len(found["lengths"])), found["lengths"]).tolist()
    rows = zip(sentences, tokens, found["starts"].tolist(), found["ends"].tolist(), strict=True)
    told_rows = [(documents[number], number, token, start, end, texts[number]) for number, token, start, end in rows]
    blank = [(row[0], row[1], row[3].replace("\n", " "), *row[4:]) for row in ROWS]  # a line feed would be two tokens
    assert told_rows == blank
    np.testing.assert_array_equal(found["vectors"], vectors)


def test_a_long_token_takes_no_more_than_itself(tmp_path):
    """An array of strings would take 4 bytes a character of the longest, for each token."""
    words = [["x" * 100_000, *"ab" * 5000]]
    for ending in (".npz", ".safetensors"):
        write_vectors(tmp_path / f"long{ending}", embedded(words))
        assert (tmp_path / f"long{ending}").stat().st_size < 1_000_000


@pytest.mark.parametrize("ending", [".h5", ".npz", ".safetensors"])
def test_memory_does_not_grow_with_the_text(ending, tmp_path):
    """Twenty megabytes of it, and two vectors a sentence."""

    def sentences():
        for number in range(5000):
            context = Context(f"{number} " + "word " * 800, [Token("word", 0, 4)] * 2, "book")
            yield Embedded(context, np.zeros((2, 4), np.float32))

    write_vectors(tmp_path / f"first{ending}", islice(sentences(), 10))  # what is imported and kept
    tracemalloc.start()
    write_vectors(tmp_path / f"vectors{ending}", sentences())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6


@pytest.mark.parametrize("claimed", ["999999999", "1", "-1"])
def test_a_parquet_file_that_claims_other_sentences(claimed, tmp_path):
    """Gigabytes of empty ones, or fewer than it has rows of."""
    import pyarrow.parquet as parquet

    write_vectors(tmp_path / "v.parquet", embedded(SENTENCES[:2]))
    table = parquet.read_table(tmp_path / "v.parquet")
    with parquet.ParquetWriter(tmp_path / "v.parquet", table.schema) as file:
        file.write_table(table)
        file.add_key_value_metadata({"sentences": claimed})
    with pytest.raises(DataError, match=r"v.parquet: cannot be read as vectors: it claims [-\d,]+ sentences"):
        list(read_vectors(tmp_path / "v.parquet"))


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from elmokit.errors import OutputError
from elmokit.text.corpus import Context
from elmokit.vectors import Embedded, write_vectors

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
sentences = (Embedded(Context(f"{n} " + "word " * 200, [], ""), np.zeros((0, 4), np.float32)) for n in range(100))
try:
    write_vectors(Path(sys.argv[1]), sentences)
except OutputError as error:
    kept = error  # and with it all that the functions on the way held
    print(error)
"""


@pytest.mark.parametrize("room", [0, 10, 2000, 30_000, 60_000])
@pytest.mark.parametrize("ending", [".h5", ".npz", ".safetensors"])
def test_a_full_disk_is_told_and_leaves_nothing(ending, room, tmp_path):
    """And HDF5 does not crash as the process ends, as it does if it cannot write what it still holds."""
    path = tmp_path / f"v{ending}"
    done = subprocess.run([sys.executable, "-c", FULL, path, str(room)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{path}: cannot be written: File too large\n"
    assert not list(tmp_path.iterdir())
