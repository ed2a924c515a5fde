import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError, DataError, OutputError
from elmokit.text.vocabulary import BOS, EOS, UNK, Vocabulary, read_vocabulary, write_vocabulary

COUNTS = {"猫": 5, "the": 9, "dog": 2, "cat": 2, "once": 1, UNK: 7}


def test_encode_gives_ids_and_unk():
    ids = Vocabulary([UNK, "the", "猫"]).encode(["猫", "the", "zebra"])
    assert ids.dtype == np.int64
    assert ids.tolist() == [2, 1, 0]


def test_encode_nothing():
    ids = Vocabulary(["the"]).encode([])
    assert (ids.shape, ids.dtype) == ((0,), np.int64)


def test_encode_without_unk():
    vocabulary = Vocabulary(["the", "cat"])
    assert vocabulary.encode(["cat"]).tolist() == [1]
    with pytest.raises(DataError, match=r"'zebra' is not in the vocabulary.*<UNK>"):
        vocabulary.encode(["cat", "zebra", "yak"])


def test_a_repeated_word_keeps_its_first_id_and_its_place():
    vocabulary = Vocabulary(["a", "b", "a", "c"])
    assert len(vocabulary) == 4
    assert vocabulary.words == ("a", "b", "a", "c")
    assert vocabulary.encode(["a", "c"]).tolist() == [0, 3]
    assert "b" in vocabulary
    assert "d" not in vocabulary


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["the", "猫", "cat", "dog", "once"]),
        ({"min_count": 2}, ["the", "猫", "cat", "dog"]),
        ({"size": 6}, ["the", "猫", "cat"]),
        ({"size": 6, "min_count": 6}, ["the"]),
        ({"size": 3}, []),
        ({"size": 100}, ["the", "猫", "cat", "dog", "once"]),
    ],
)
def test_from_counts_is_in_training_order(options, words):
    vocabulary = Vocabulary.from_counts(COUNTS, **options)
    assert vocabulary.words == (BOS, EOS, UNK, *words)
    vocabulary.check_training_order()


def test_from_counts_needs_room_for_the_specials():
    with pytest.raises(ConfigError, match="size 2 is too small"):
        Vocabulary.from_counts(COUNTS, size=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], r"begins with \[\]"),
        ([UNK, BOS, EOS, "the"], "begins with .*training needs"),
        ([BOS, EOS, UNK, "the", "cat", "the"], "'the' twice, on lines 4 and 6"),
    ],
)
def test_check_training_order_refuses(words, message):
    with pytest.raises(DataError, match=message):
        Vocabulary(words).check_training_order()


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz"])
def test_write_and_read(tmp_path, name):
    words = (BOS, EOS, UNK, "the", "猫", "\u2028", "\x85", "", "a\x0bb", "👍🏽", "the")
    write_vocabulary(tmp_path / name, Vocabulary(words))
    assert read_vocabulary(tmp_path / name).words == words
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b" if name.endswith(".gz") else b"<S>\n</S>\n<UNK>\n")


@given(words=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
def test_any_words_come_back(tmp_path_factory, words):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    write_vocabulary(path, Vocabulary([BOS, *words]))
    assert read_vocabulary(path).words == (BOS, *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ()),
        (b"a\nb", ("a", "b")),
        (b"a\r\nb\r\n", ("a", "b")),
        (b"\xef\xbb\xbf<S>\n", ("<S>",)),
        (b"a\n\nb\n", ("a", "", "b")),
    ],
)
def test_read_what_editors_write(tmp_path, content, words):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    assert read_vocabulary(path).words == words


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gbk.txt", "the\n中文\n".encode("gbk"), r"gbk\.txt, line 2: byte 0xd6 is not UTF-8"),
        ("gbk.gz", gzip.compress("中文".encode("gbk"), mtime=0), r"gbk\.gz, line 1"),
        ("plain.gz", b"the\n", r"plain\.gz: .*cannot be read"),
        ("short.gz", gzip.compress(b"the\n" * 100, mtime=0)[:20], r"short\.gz: .*cannot be read"),
    ],
)
def test_read_refuses(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_vocabulary(tmp_path / name)


def test_read_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: .*cannot be read"):
        read_vocabulary(tmp_path / "none.txt")


@pytest.mark.parametrize("word", ["two\nlines", "end\r", "half\ud800"])
def test_write_refuses_what_would_not_come_back(tmp_path, word):
    with pytest.raises(DataError, match=r"vocab\.txt: "):
        write_vocabulary(tmp_path / "vocab.txt", Vocabulary([word]))


def test_write_into_a_missing_folder(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        write_vocabulary(tmp_path / "none" / "vocab.txt", Vocabulary(["the"]))
