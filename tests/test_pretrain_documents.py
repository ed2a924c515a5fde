"""Every kind of file a corpus may come in, and every way in which it may be broken."""

import gzip
import json
import lzma
from pathlib import Path

import pytest

from elmokit.errors import DataError
from elmokit.text.documents import LONGEST_LINE, LONGEST_OBJECT, iter_documents

LINES = ["It was a bright cold day in April.", "", "黛玉笑道：“这是怎么说？”", "He said so."]
TEXT = "".join(f"{line}\n" for line in LINES)
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def texts(*paths: Path, **options) -> list[str]:
    return [document.text for document in iter_documents(find_files(paths), **options)]


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def objects(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize("packing", PACK)
def test_text_is_read_plain_and_packed(tmp_path, packing):
    path = written(tmp_path / f"a.txt{packing}", PACK[packing](TEXT.encode()))
    assert texts(path) == [TEXT]


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
    assert "".join(blocks) == "".join(lines)
    assert all(block.endswith("\n") and 1000 <= len(block.encode()) < 1100 for block in blocks[:-1])


def test_blank_blocks_are_no_documents(tmp_path):
    assert texts(written(tmp_path / "a.txt", "One.\n\n \t\n\nTwo.\n\n\n"), block_bytes=1) == ["One.\n", "\nTwo.\n"]


def test_a_line_without_end_is_read_in_pieces(tmp_path):
    text = "黛玉 " * LONGEST_LINE
    blocks = texts(written(tmp_path / "a.txt", text))
    assert "".join(blocks) == text
    assert len(blocks) > 5


def test_a_byte_order_mark_is_no_text(tmp_path):
    assert texts(written(tmp_path / "a.txt", b"\xef\xbb\xbfOne.\n")) == ["One.\n"]


def test_the_position_reaches_the_length_of_all_files(tmp_path):
    paths = [written(tmp_path / "a.txt", TEXT), written(tmp_path / "b.txt.gz", gzip.compress(TEXT.encode() * 100))]
    positions = [document.position for document in iter_documents(paths, block_bytes=10)]
    assert positions == sorted(positions)
    assert positions[-1] == sum(path.stat().st_size for path in paths)


def test_a_folder_is_read_in_order_without_hidden_and_other_files(tmp_path):
    names = ["b/z.txt", "a.jsonl", "b/a.TXT", ".hidden.txt", ".git/c.txt", "notes.md", "b/list.tsv"]
    for name in names:
        written(tmp_path / name, objects({"text": name}) if name.endswith("jsonl") else name)
    assert texts(tmp_path) == ["a.jsonl", "b/a.TXT", "b/z.txt"]


def test_a_file_named_twice_is_read_once(tmp_path):
    path = written(tmp_path / "a.txt", TEXT)
    assert texts(path, tmp_path, tmp_path / ".." / tmp_path.name / "a.txt") == [TEXT]


BROKEN = {
    "latin.txt": (b"one\ntwo\ncaf\xe9 au lait\n", "line 3: byte 0xe9 is not UTF-8"),
    "half.txt": ("one\n红楼".encode()[:-1], "line 2: byte 0xe6 is not UTF-8"),
    "binary.txt": (b"one\n\x7fELF\0\0\1", "line 2: a zero byte"),
    "utf16.txt": ("one\n".encode("utf-16"), "line 1: a zero byte"),
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
    "notes.md": (b"# Notes\n", "unknown ending '.md': a corpus is read from .txt, .txt.gz, .txt.xz, .jsonl"),
    "archive.gz": (gzip.compress(b"x"), "unknown ending '.gz'"),
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
