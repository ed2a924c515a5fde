"""One contract for every file of static vectors, and the files that others write."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError, DataError, OutputError
from elmokit.static.embedders import OneHot, StaticVectors
from elmokit.static.files import READERS, check_output, read_vectors, write_vectors

WORDS = ["the", "天气", "🎉", "a\u00a0b", "x\u2028y", ",", "0.5", "-", "naïve", "the"]
ENDINGS = sorted(READERS)
TEXTS = [ending for ending in ENDINGS if ending.startswith((".txt", ".vec"))]


def numbers(rows: int, width: int):
    """Of every size that float32 has."""
    random = np.random.default_rng(0)
    values = random.standard_normal((rows, width)) * 10.0 ** random.integers(-30, 30, (rows, width))
    return np.where(random.random((rows, width)) < 0.1, 0, values).astype(np.float32)


@pytest.fixture(params=ENDINGS)
def path(request, tmp_path):
    return tmp_path / f"vectors{request.param}"


class TestEveryEnding:
    @pytest.mark.parametrize(("rows", "width"), [(10, 7), (10, 1), (2500, 3)])
    def test_round_trip(self, path, rows, width):
        words, vectors = [*WORDS, *(f"w{number}" for number in range(rows - 10))], numbers(rows, width)
        write_vectors(path, words, vectors)
        found = read_vectors(path)
        assert found.words == words
        assert found.vectors.dtype == np.float32
        np.testing.assert_array_equal(found.vectors, vectors)
        assert list(path.parent.iterdir()) == [path]

    def test_embedders_round_trip(self, path):
        dense, one_hot = StaticVectors(WORDS, numbers(10, 4)), OneHot(WORDS)
        dense.save(path)
        np.testing.assert_array_equal(StaticVectors.load(path).embed([WORDS])[0], dense.embed([WORDS])[0])
        one_hot.save(path)
        assert OneHot.load(path).words == one_hot.words
        np.testing.assert_array_equal(StaticVectors.load(path).vectors, np.eye(10))

    def test_a_large_one_hot_vocabulary(self, path):
        words = [f"w{number}" for number in range(1100)]
        OneHot(words).save(path)
        assert OneHot.load(path).words == tuple(words)

    def test_dense_vectors_are_not_one_hot(self, path):
        write_vectors(path, ["a", "b"], np.array([[1, 0], [1, 1]], np.float32))
        with pytest.raises(DataError, match="from the word 'a' on are not one-hot"):
            OneHot.load(path)
        write_vectors(path, ["a", "b"], np.array([[1, 0, 0], [0, 1, 0]], np.float32))
        with pytest.raises(DataError, match="2 words, but one-hot vectors of width 3"):
            OneHot.load(path)

    def test_truncated(self, path):
        write_vectors(path, WORDS, numbers(10, 7))
        path.write_bytes(path.read_bytes()[:-15])
        with pytest.raises(DataError, match=f"{path.name}.*"):
            read_vectors(path)

    def test_empty(self, path):
        path.write_bytes(gzip.compress(b"") if path.suffix == ".gz" else b"")
        with pytest.raises(DataError, match=path.name):
            read_vectors(path)

    def test_missing(self, path):
        with pytest.raises(DataError, match=r"cannot be read as vectors: .*[Nn]o such file"):
            read_vectors(path)

    @pytest.mark.parametrize("word", ["", "two\nlines", "half \ud800"])
    def test_words_that_cannot_be_written(self, path, word):
        path.write_text("old")
        with pytest.raises(DataError, match="remove it"):
            write_vectors(path, [word], np.zeros((1, 2), np.float32))
        assert path.read_text() == "old"
        assert list(path.parent.iterdir()) == [path]

    def test_places_that_cannot_be_written(self, path):
        with pytest.raises(OutputError, match=r"cannot be written"):
            check_output(path / "deeper" / path.name)
        path.mkdir()
        with pytest.raises(OutputError, match="is a folder"):
            write_vectors(path, ["a"], np.zeros((1, 2), np.float32))


@pytest.mark.parametrize("name", ["vectors.csv", "vectors.safetensors.gz", "vectors", "vectors.gz"])
def test_unknown_ending(tmp_path, name):
    with pytest.raises(ConfigError, match="unknown ending"):
        check_output(tmp_path / name)


class TestText:
    @pytest.mark.parametrize("ending", TEXTS)
    def test_without_a_header_it_is_gloves(self, tmp_path, ending):
        path = tmp_path / f"glove{ending}"
        StaticVectors(WORDS, numbers(10, 3)).save(path, header=False)
        content = gzip.decompress(path.read_bytes()) if ending.endswith(".gz") else path.read_bytes()
        assert content.startswith(b"the ")
        np.testing.assert_array_equal(StaticVectors.load(path).vectors, numbers(10, 3))

    def test_as_others_write_it(self, tmp_path):
        """fastText ends lines with a blank, Windows with \\r\\n; some begin with a byte order mark."""
        (tmp_path / "a.vec").write_bytes("\ufeff2 3\r\n的 1 -2.5 3e-2 \r\nb 0 0.10 +1 \r\n".encode())
        found = read_vectors(tmp_path / "a.vec")
        assert found.words == ["的", "b"]
        np.testing.assert_array_equal(found.vectors, np.array([[1, -2.5, 3e-2], [0, 0.1, 1]], np.float32))

    def test_words_with_blanks_inside(self, tmp_path):
        """As in GloVe's largest file; the numbers are the last ones."""
        (tmp_path / "a.txt").write_text("the 1 2\n. . . 3 4\nat 5 name@domain.com 6 7\n1 2 3 4\n")
        found = read_vectors(tmp_path / "a.txt")
        assert found.words == ["the", ". . .", "at 5 name@domain.com", "1 2"]
        np.testing.assert_array_equal(found.vectors, [[1, 2], [3, 4], [6, 7], [3, 4]])
        write_vectors(tmp_path / "b.txt", found.words, found.vectors)
        assert read_vectors(tmp_path / "b.txt").words == found.words

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"a 1 2\nb 1\n", "line 2: 1 numbers after the word, expected 2 as line 1 has it"),
            (b"a 1 2\nb\n", "line 2: 0 numbers after the word, expected 2"),
            (b"a 1 2\n\nb 1 2\n", "line 2: 0 numbers"),
            (b"a 1 2\nb 1 two\n", "line 2: 'two' is not a number"),
            (b"a 1 2\nb 1 nan\n", "line 2: 'nan' is not a number"),
            (b"a 1 2\nb 1 inf\n", "line 2: 'inf' is not a number"),
            (b"a 1 2\nb 1 1e99\n", "line 2: a number too large for float32"),
            (b"a 1 2\nb 1  2\n", "line 2: '' is not a number"),
            (b"a 1 2\nb 1-2 3\n", "line 2: '1-2' is not a number"),
            (b"a 1 2\nb 1_0 3\n", "line 2: '1_0' is not a number"),
            (b"a 1 2\nb\t1\t2\n", "line 2: 0 numbers"),
            (b"3 2\na 1 2\nb 1 2\n", "line 1 says 3 words, but the file ends with line 3"),
            (b"1 2\na 1 2\nb 1 2\n", "line 1 says 1 words, but the file ends with line 3"),
            (b"2 3\na 1 2\nb 1 2\n", "line 2: 2 numbers after the word, expected 3"),
            (b"2 0\na\nb\n", "line 1: found"),
            (b"2 999999999999\na 1\n", "line 1: found"),
            (b"word\n", "line 1: found"),
            (b"\n", "line 1: found"),
            (b"a 1 2\nb\xff 1 2\n", "line 2: byte 0xff is not UTF-8"),
        ],
    )
    def test_mistakes_name_their_line(self, tmp_path, content, message):
        (tmp_path / "a.txt").write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_vectors(tmp_path / "a.txt")
        assert f"{tmp_path / 'a.txt'}" in str(caught.value)
        assert message in str(caught.value)

    def test_a_mistake_far_down(self, tmp_path):
        lines = [f"w{number} 1 2\n" for number in range(3000)]
        lines[2345] = "w 1\n"
        (tmp_path / "a.txt").write_text("".join(lines))
        with pytest.raises(DataError, match="line 2346: 1 numbers"):
            read_vectors(tmp_path / "a.txt")

    @given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
    def test_every_number_comes_back_to_the_bit(self, tmp_path_factory, values):
        path = tmp_path_factory.mktemp("numbers") / "a.txt"
        vectors = np.array([values], np.float32)
        write_vectors(path, ["word"], vectors)
        np.testing.assert_array_equal(read_vectors(path).vectors, vectors)


class TestBinary:
    def test_layout(self, tmp_path):
        write_vectors(tmp_path / "a.bin", ["的", "b"], np.array([[1, 2], [3, 4]], np.float32))
        expected = b"2 2\n" + "的 ".encode() + struct.pack("<2f", 1, 2) + b"\nb " + struct.pack("<2f", 3, 4) + b"\n"
        assert (tmp_path / "a.bin").read_bytes() == expected

    def test_without_line_feeds(self, tmp_path):
        """As some programs write it."""
        content = b"2 2\na " + struct.pack("<2f", 1, 2) + b"b " + struct.pack("<2f", 3, 4)
        (tmp_path / "a.bin").write_bytes(content)
        assert read_vectors(tmp_path / "a.bin").words == ["a", "b"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"a 1 2\n", "line 1: word2vec's binary begins with 'words width'"),
            (b"\xba\x16\x4f\x2f\x0c\x00\n", "a model of fastText's: take its .vec"),
            (b"2 2\na " + struct.pack("<2f", 1, 2) + b"\n", "word 2 of 2: no blank after it"),
            (b"1 2\na " + struct.pack("<f", 1), "word 1 of 1: the file ends within its 2 numbers"),
            (b"1 2\na " + struct.pack("<3f", 1, 2, 3), "line 1 says 1 words, but the file goes on"),
            (b"1 1\na " + struct.pack("<f", float("nan")), "word 1 of 1: not all of its 1 numbers are finite"),
            (b"1 999999999999\na ", "line 1: word2vec's binary begins"),
            (b"1 2\n" + b"x" * 20_000, "word 1 of 1: no blank"),
        ],
    )
    def test_mistakes(self, tmp_path, content, message):
        (tmp_path / "a.bin").write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_vectors(tmp_path / "a.bin")
        assert message in str(caught.value)

    def test_a_word_with_a_blank_does_not_fit(self, tmp_path):
        with pytest.raises(DataError, match=r"a.bin: the word '\. \.'"):
            write_vectors(tmp_path / "a.bin", [". ."], np.zeros((1, 2), np.float32))

    def test_gensim_reads_it_and_writes_it(self, tmp_path):
        from gensim.models import KeyedVectors

        vectors = numbers(9, 5)
        for ending, binary in ((".bin", True), (".txt", False)):
            write_vectors(tmp_path / f"ours{ending}", WORDS[:9], vectors)
            theirs = KeyedVectors.load_word2vec_format(tmp_path / f"ours{ending}", binary=binary)
            np.testing.assert_array_equal(theirs[WORDS[:9]], vectors)
            theirs.save_word2vec_format(tmp_path / f"theirs{ending}", binary=binary)
            found = read_vectors(tmp_path / f"theirs{ending}")
            assert found.words == WORDS[:9]
            np.testing.assert_array_equal(found.vectors, vectors)


class TestTensors:
    def test_one_hot_vectors_are_left_out(self, tmp_path):
        OneHot([f"w{number}" for number in range(1000)]).save(tmp_path / "a.safetensors")
        assert (tmp_path / "a.safetensors").stat().st_size < 10_000

    def test_other_tensors(self, tmp_path):
        from safetensors.numpy import save_file

        path = tmp_path / "a.safetensors"
        save_file({"weight": np.zeros(3)}, path)
        with pytest.raises(DataError, match="'words' is missing: found weight"):
            read_vectors(path)
        words = np.frombuffer(b"a\nb\n", np.uint8)
        save_file({"words": words, "vectors": np.zeros((3, 2), np.float32)}, path)
        with pytest.raises(DataError, match=r"2 words, but 'vectors' is \[3, 2\]"):
            read_vectors(path)
        save_file({"words": words, "vectors": np.full((2, 2), np.inf, np.float32)}, path)
        with pytest.raises(DataError, match="words 1 to 2 are finite"):
            read_vectors(path)
