"""Every kind of file a corpus may come in, from disk or a pipe, and every way in which it may be broken."""

import gzip
import io
import json
import logging
import lzma
import os
import sys
from pathlib import Path
from threading import Thread

import pytest
import zstandard

from elmokit.errors import DataError
from elmokit.text.documents import LONGEST_LINE, LONGEST_OBJECT, iter_documents, open_texts, total_bytes

LINES = ["It was a bright cold day in April.", "", "黛玉笑道：“这是怎么说？”", "He said so."]
TEXT = "".join(f"{line}\n" for line in LINES)
WRAPPED = """\
The harbour was quiet in the morning, and nobody minded the
rain, for the ferry was late again and the boats lay
where they had been left the night before by men who did
not mean to sail in such weather, whatever the owners in
the town might say of it.

Then the bell rang.
"""
PARAGRAPHS = [" ".join(paragraph.split()) for paragraph in WRAPPED.split("\n\n")]
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def texts(*paths: Path | str, lines="paragraphs", field="text", **options) -> list[str]:
    return [document.text for document in iter_documents(open_texts(paths, lines=lines, field=field), **options)]


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def objects(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize("packing", PACK)
def test_text_is_read_plain_and_packed(tmp_path, packing):
    path = written(tmp_path / f"a.txt{packing}", PACK[packing](TEXT.encode()))
    assert texts(path) == [TEXT[:-1]]


@pytest.mark.parametrize("packing", PACK)
def test_an_object_is_a_document(tmp_path, packing):
    content = objects({"text": "One.\nTwo.", "id": 1}, {"text": "三。"}) + "\n"
    path = written(tmp_path / f"a.jsonl{packing}", PACK[packing](content.encode()))
    assert texts(path) == ["One.\nTwo.", "三。"]


def test_the_field_of_the_text_can_be_named(tmp_path):
    path = written(tmp_path / "a.jsonl", objects({"text": 3, "body": "Here."}))
    assert texts(path, field="body") == ["Here."]


def test_half_characters_in_json_are_replaced_and_pairs_joined(tmp_path):
    path = written(tmp_path / "a.jsonl", '{"text": "a\\ud800b \\ud83c\\udf89"}')
    assert texts(path) == ["a\ufffdb 🎉"]


def test_text_comes_in_blocks_of_whole_lines(tmp_path):
    lines = [f"line {number} 红楼梦\n" for number in range(5000)]
    blocks = texts(written(tmp_path / "a.txt", "".join(lines)), block_bytes=1000)
    assert "".join(f"{block}\n" for block in blocks) == "".join(lines)
    assert all(1000 <= len(block.encode()) + 1 < 1100 for block in blocks[:-1])


def test_blank_blocks_are_no_documents(tmp_path):
    assert texts(written(tmp_path / "a.txt", "One.\n\n \t\n\nTwo.\n\n\n"), block_bytes=1) == ["One.", "\nTwo."]


def test_a_line_without_end_is_read_in_pieces(tmp_path):
    text = "黛玉 " * LONGEST_LINE
    blocks = texts(written(tmp_path / "a.txt", text))
    assert "".join(blocks) == text
    assert len(blocks) > 5


def test_a_byte_order_mark_is_no_text(tmp_path):
    assert texts(written(tmp_path / "a.txt", b"\xef\xbb\xbfOne.\n")) == ["One."]


def test_the_position_reaches_the_length_of_all_files(tmp_path):
    paths = [written(tmp_path / "a.txt", TEXT), written(tmp_path / "b.txt.gz", gzip.compress(TEXT.encode() * 100))]
    files = open_texts(paths)
    positions = [document.position for document in iter_documents(files, block_bytes=10)]
    assert positions == sorted(positions)
    assert positions[-1] == total_bytes(files) == sum(path.stat().st_size for path in paths)


def test_a_folder_is_read_in_order_without_hidden_and_other_files(tmp_path):
    names = ["b/z.txt", "a.jsonl", "b/a.TXT", ".hidden.txt", ".git/c.txt", "notes.md", "b/list.tsv"]
    for name in names:
        written(tmp_path / name, objects({"text": name}) if name.endswith("jsonl") else name)
    written(tmp_path / "c.txt.zst", zstandard.compress(b"c.txt.zst"))
    assert texts(tmp_path) == ["a.jsonl", "b/a.TXT", "b/z.txt", "c.txt.zst"]


@pytest.mark.parametrize("name", ["notes.md", "LICENSE", "list.tsv", "page.html", "archive.gz", "a.log.zst"])
def test_a_file_that_is_named_is_text_whatever_its_ending(tmp_path, name):
    content = PACK.get(Path(name).suffix, bytes)(TEXT.encode())
    assert texts(written(tmp_path / name, content)) == [TEXT[:-1]]


def test_a_file_named_twice_is_read_once(tmp_path):
    path = written(tmp_path / "a.txt", TEXT)
    assert texts(path, tmp_path, tmp_path / ".." / tmp_path.name / "a.txt") == [TEXT[:-1]]


BROKEN = {
    "latin.txt": (b"one\ntwo\ncaf\xe9 au lait\n", "line 3: byte 0xe9 is not UTF-8"),
    "half.txt": ("one\n红楼".encode()[:-1], "line 2: byte 0xe6 is not UTF-8"),
    "binary.txt": (b"one\n\x7fELF\0\0\1", "line 2: a zero byte"),
    "utf16.txt": (
        "one\n".encode("utf-16-le"),
        "line 1: a zero byte: a binary file, or UTF-16: say --encoding utf-16",
    ),
    "cut.txt.gz": (gzip.compress(TEXT.encode())[:-9], "broken after line 1"),
    "not.txt.gz": (b"plain text\n", "broken after line 1: Not a gzipped file"),
    "damaged.txt.gz": (gzip.compress(bytes(range(1, 128)) * 50)[:20] + b"\xff" * 30, "broken after line 1"),
    "cut.txt.xz": (lzma.compress(TEXT.encode())[:-9], "broken after line 1"),
    "not.jsonl.xz": (b"plain text\n", "broken after line 1"),
    "broken.jsonl": (b'{"text": "a"}\n{"text": \n', "line 2: not JSON"),
    "deep.jsonl": (b"[" * 100_000, "line 1: not JSON"),
    "list.jsonl": (b'["text"]\n', "line 1: no text in the field 'text', found list"),
    "number.jsonl": (b'\n{"text": 3}\n', "line 2: no text in the field 'text', found int"),
    "other.jsonl": (b'{"body": "x", "id": 1}\n', "found the fields 'body', 'id': name the right field"),
    "empty_object.jsonl": (b"{}\n", "found the fields of an empty object: none"),
    "latin.jsonl": (b'{"text": "a"}\n{"text": "\xe9"}\n', "line 2: byte 0xe9 is not UTF-8"),
    "cut.txt.zst": (zstandard.compress(TEXT.encode() * 99)[:-9], "broken after line 1: it ends before the end"),
    "cut_early.txt.zst": (zstandard.compress(TEXT.encode())[:5], "broken after line 1: it ends before the end"),
    "not.txt.zst": (b"plain text\n", "broken after line 1"),
    "damaged.txt.zst": (zstandard.compress(TEXT.encode() * 500)[:12] + b"\xff" * 90, "broken after line 1"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\0\0", "line 3: a zero byte: a binary file, or UTF-16?"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_with_its_line(tmp_path, name):
    content, message = BROKEN[name]
    path = written(tmp_path / name, content)
    with pytest.raises(DataError) as raised:
        texts(path)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


def test_an_object_without_end_is_refused(tmp_path):
    path = written(tmp_path / "a.jsonl", b'{"text": "' + b"x" * LONGEST_OBJECT)
    with pytest.raises(DataError, match=r"a\.jsonl, line 1: longer than 64 MB: divide it"):
        texts(path)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"missing\.txt: there is no such file or folder"):
        texts(tmp_path / "missing.txt")


def test_a_folder_without_text_is_named(tmp_path):
    written(tmp_path / ".hidden.txt", TEXT)
    with pytest.raises(DataError, match="the folder holds no text"):
        texts(tmp_path)


def test_zstandard_frames_follow_each_other(tmp_path):
    """As `cat a.zst b.zst` and parallel packers leave them."""
    content = b"".join(zstandard.compress(f"line {number}\n".encode() * 5000) for number in range(3))
    assert "\n".join(texts(written(tmp_path / "a.txt.zst", content))).count("line 2") == 5000


class TestLayout:
    def test_is_seen_from_each_file_and_said_once(self, tmp_path, caplog):
        files = [written(tmp_path / "a.txt", WRAPPED), written(tmp_path / "b.txt.gz", gzip.compress(TEXT.encode()))]
        caplog.set_level(logging.INFO, "elmokit")
        for paths in (files[:1], files[1:], files):
            open_texts(paths)
        assert caplog.messages == [
            f"{files[0]}: wrapped lines, blank lines end paragraphs",
            f"{files[1]}: each line is a paragraph",
            "2 files: in 1 of them blank lines end paragraphs, in the others each line is one",
        ]
        opened = open_texts(files)
        caplog.clear()
        assert [document.text for document in iter_documents(opened)] == ["\n".join(PARAGRAPHS), TEXT[:-1]]
        assert not caplog.messages

    @pytest.mark.parametrize("lines", ["wrapped", "paragraphs", "sentences"])
    def test_is_as_it_is_given(self, tmp_path, caplog, lines):
        caplog.set_level(logging.INFO, "elmokit")
        expected = "\n".join(PARAGRAPHS) if lines == "wrapped" else WRAPPED[:-1]
        assert texts(written(tmp_path / "a.txt", WRAPPED), lines=lines) == [expected]
        assert not caplog.messages

    def test_of_objects_and_of_blocks(self, tmp_path):
        """A block ends with a paragraph, however small it was to be."""
        assert texts(written(tmp_path / "a.jsonl", objects({"text": WRAPPED}, {"text": "Short.\n"})), lines="auto") == [
            "\n".join(PARAGRAPHS),
            "Short.",
        ]
        many = texts(written(tmp_path / "a.txt", f"{WRAPPED}\n" * 20), lines="auto", block_bytes=1)
        assert [line for text in many for line in text.split("\n")] == PARAGRAPHS * 20
        assert len(many) > 20

    def test_blank_lines_are_kept_where_a_line_is_a_sentence(self, tmp_path):
        assert texts(written(tmp_path / "a.txt", "\n\nOne\n\n"), lines="sentences") == ["\n\nOne\n"]


class TestStreams:
    @pytest.fixture
    def stdin(self, monkeypatch):
        def give(content: bytes):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

        return give

    def test_standard_input_can_be_read_again(self, stdin, tmp_path):
        stdin(WRAPPED.encode())
        (file,) = files = open_texts(["-"])
        assert (file.name, file.lines, file.bytes) == ("standard input", "wrapped", len(WRAPPED.encode()))
        for _ in range(2):
            assert [document.text for document in iter_documents(files)] == ["\n".join(PARAGRAPHS)]
        assert file.digest() == open_texts([written(tmp_path / "same.txt", WRAPPED)])[0].digest()

    def test_errors_name_standard_input(self, stdin):
        stdin(b"one\ncaf\xe9\n")
        with pytest.raises(DataError, match="standard input, line 2: byte 0xe9 is not UTF-8"):
            texts("-")

    def test_lines_of_a_stream_are_handed_on_as_they_come(self, monkeypatch):
        read, write = os.pipe()
        with os.fdopen(read, "rb") as stream, os.fdopen(write, "wb", buffering=0) as other_end:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
            other_end.write(b"One.\n")
            files = open_texts(["-"], repeatable=False)
            documents = iter_documents(files)
            assert next(documents).text == "One."
            other_end.write("二。\n".encode())
            assert next(documents) == ("二。", "standard input", 12)
            other_end.close()
            assert list(documents) == []

    def test_a_wrapped_stream_is_seen_from_what_has_come(self, monkeypatch):
        read, write = os.pipe()
        with os.fdopen(read, "rb") as stream, os.fdopen(write, "wb", buffering=0) as other_end:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
            other_end.write(WRAPPED.encode() + b"\n")
            documents = iter_documents(open_texts(["-"], repeatable=False))
            assert [next(documents).text for _ in range(2)] == PARAGRAPHS

    @pytest.mark.parametrize("repeatable", [True, False])
    def test_a_pipe_with_a_name(self, tmp_path, repeatable):
        os.mkfifo(tmp_path / "pipe")
        writer = Thread(target=lambda: (tmp_path / "pipe").write_text(TEXT, encoding="utf-8"))
        writer.start()
        files = open_texts([tmp_path / "pipe"], repeatable=repeatable)
        found = [document.text for document in iter_documents(files)]
        writer.join()
        assert [line for text in found for line in text.split("\n") if line] == [line for line in LINES if line]
