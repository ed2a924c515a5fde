"""Text in any encoding: marked, named or guessed, plain or packed, from a disk or a stream, by several processes."""

import gzip
import io
import json
import os
import sys

import numpy as np
import pytest
from conftest import BYTES, HERE, random_checkpoint

import elmokit.tasks
from elmokit.checkpoints import write_checkpoint
from elmokit.cli import main
from elmokit.errors import ConfigError, DataError
from elmokit.pretrain.corpus import prepare
from elmokit.text.corpus import open_corpus
from elmokit.text.documents import iter_documents, open_texts
from elmokit.text.encodings import guess_encoding
from elmokit.text.tokenizers import get_tokenizer

CHINESE = (HERE.parent / "samples" / "zh.txt").read_text(encoding="utf-8")
ENGLISH = (HERE.parent / "samples" / "en.txt").read_text(encoding="utf-8")
SAMPLES = {
    "gb18030": CHINESE[:2000],
    "big5": "這個東西是我們昨天在城裡買的，他說那家店裡還有很多種。\n天氣很好，我們走到河邊，看見一個老人在釣魚。\n",
    "shift_jis": "港の朝は静かで、船はまだ出ていなかった。\n雨が降っていたが、猫は気にしないで魚を食べた。\n",
    "euc_jp": "港の朝は静かで、船はまだ出ていなかった。\n雨が降っていたが、猫は気にしないで魚を食べた。\n",
    "euc_kr": "항구는 아침에 조용했고, 배는 아직 떠나지 않았다.\n비가 왔지만 고양이는 물고기를 먹고 있었다.\n",
    "latin-1": "Había una vez un niño que vivía en España y comía plátanos por la mañana.\nÉl no quería más.\n",
    "cp1252": "“I don’t know,” she said – and she didn’t. It cost €5.\nNaïve? Perhaps…\n",
    "iso8859_2": "Wczoraj poszliśmy nad rzekę, żeby zobaczyć łódź i łąkę pełną kwiatów.\nPadał śnieg.\n",
    "cp1250": "Včera jsme šli k řece, abychom viděli loď a louku plnou květin.\nKůň žral trávu.\n",
    "cp1254": "Dün sabah ırmağa gittik ve güzel bir kuş gördük.\nYağmur yağıyordu, çocuklar şarkı söylüyordu.\n",
    "cp1251": "Утром в гавани было тихо, и лодки стояли на своих местах.\nШёл дождь, но кошка ела рыбу.\n",
    "koi8_r": "Утром в гавани было тихо, и лодки стояли на своих местах.\nШёл дождь, но кошка ела рыбу.\n",
    "cp1253": "Το πρωί το λιμάνι ήταν ήσυχο και οι βάρκες έμεναν στη θέση τους.\n",
    "cp1255": "בבוקר היה שקט בנמל והסירות עמדו במקומן, כי ירד גשם חזק.\n",
    "cp1256": "كان الميناء هادئا في الصباح، وكانت القوارب في مكانها لأن المطر لم يتوقف.\n",
    "cp874": "ตอนเช้าท่าเรือเงียบมาก เรือยังจอดอยู่ที่เดิมเพราะฝนตกหนัก\n",
    "utf-16-le": ENGLISH[:500],
    "utf-16-be": CHINESE[:500],
    "utf-8": CHINESE[:500],
}
MARKED = ("utf-8-sig", "utf-16", "utf-32")


def words_of(path, **options):
    return [context.words for context in open_corpus([path], get_tokenizer("jieba"), **options)]


@pytest.mark.parametrize("encoding", SAMPLES)
def test_the_guess_gives_the_text_back(tmp_path, encoding):
    content = SAMPLES[encoding].encode(encoding)
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    files = open_texts([path], encoding="auto", lines="paragraphs")
    assert "\n".join(document.text for document in iter_documents(files)) == SAMPLES[encoding].removesuffix("\n")


@pytest.mark.parametrize("length", [4, 10, 40, 2000])
def test_little_chinese_is_enough(length):
    assert guess_encoding(CHINESE[:length].encode("gbk")) == "gb18030"


@pytest.mark.parametrize("novel", ["zh-xiyou.txt", "zh-hongloumeng.txt"])
def test_every_page_of_a_novel_is_recognised(shared_data, novel):
    text = (shared_data / "corpora" / novel).read_text(encoding="utf-8")[:300_000]
    pages = [text[start : start + 500] for start in range(0, len(text), 500)]
    assert {guess_encoding(page.encode("gb18030")) for page in pages} == {"gb18030"}


def test_a_damaged_byte_does_not_hide_the_encoding():
    content = CHINESE.encode("gbk")
    assert guess_encoding(content[:3000] + b"\xff" + content[3000:]) == "gb18030"


def test_noise_is_no_text():
    assert guess_encoding(bytes(range(0x80, 0x100))) is None


@pytest.mark.parametrize("encoding", MARKED)
@pytest.mark.parametrize("told", ["utf-8", "auto", "gb18030"])
def test_a_mark_says_more_than_an_option(tmp_path, encoding, told):
    (tmp_path / "plain.txt").write_text(CHINESE, encoding="utf-8")
    (tmp_path / "marked.txt").write_text(CHINESE, encoding=encoding)
    assert words_of(tmp_path / "marked.txt", encoding=told) == words_of(tmp_path / "plain.txt")


@pytest.mark.parametrize("encoding", ["gb18030", "gbk", "utf-16-le", "utf-16"])
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_blocks_of_any_size_are_whole_characters(tmp_path, encoding, packing):
    path = tmp_path / f"a.txt{packing}"
    path.write_bytes((gzip.compress if packing else bytes)(CHINESE.encode(encoding)))
    files = open_texts([path], encoding=encoding, lines="paragraphs")
    documents = list(iter_documents(files, block_bytes=1001))
    assert len(documents) > 10
    assert "\n".join(document.text for document in documents) == CHINESE.removesuffix("\n")
    assert documents[-1].position == path.stat().st_size


def test_objects_in_another_encoding(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "花开了。"}, ensure_ascii=False), encoding="gbk")
    assert words_of(tmp_path / "a.jsonl", encoding="gb18030") == words_of(tmp_path / "a.jsonl", encoding="auto")
    assert words_of(tmp_path / "a.jsonl", encoding="gbk")[0][0] == "花"


def test_far_in_a_file_the_first_letters_decide(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"A line of English.\n" * 50_000 + CHINESE.encode("gbk"))
    assert open_texts([tmp_path / "a.txt"], encoding="auto")[0].encoding == "gb18030"


@pytest.mark.parametrize("encoding", ["gb18030", "auto"])
def test_lines_of_a_stream_are_decoded_as_they_come(monkeypatch, encoding):
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream, os.fdopen(write, "wb", buffering=0) as other_end:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        other_end.write("小雨住在河边的一个小镇上。\n".encode("gbk"))
        files = open_texts(["-"], repeatable=False, encoding=encoding)
        documents = iter_documents(files)
        assert next(documents).text == "小雨住在河边的一个小镇上。"
        half = "花开了。\n".encode("gbk")
        other_end.write(half[:3])
        other_end.write(half[3:])
        assert next(documents).text == "花开了。"
        other_end.close()
        assert list(documents) == []


def test_several_processes_number_the_same_words(tmp_path):
    text = CHINESE * 60
    for name, encoding in (("utf-8", "utf-8"), ("gb18030", "gb18030")):
        (tmp_path / f"{name}.txt").write_text(text, encoding=encoding)
    assert (tmp_path / "gb18030.txt").stat().st_size > 1_000_000  # from which on there are two
    plain = prepare([tmp_path / "utf-8.txt"], tmp_path / "one", tokenizer="words", valid_share=0, workers=1)
    settings = {"tokenizer": "words", "valid_share": 0, "workers": 2}
    gbk = prepare([tmp_path / "gb18030.txt"], tmp_path / "two", encoding="auto", **settings)
    assert gbk.words == plain.words
    np.testing.assert_array_equal(gbk.train.ids, plain.train.ids)


ERRORS = {
    "gbk": ("一\n小雨住在河边的一个小镇上。\n".encode("gbk"), "line 2: byte 0xd3 is not UTF-8; it looks like gb18030"),
    "latin": (b"one\ncaf\xe9 au lait\n", "line 2: byte 0xe9 is not UTF-8; it looks like cp1252: say --encoding cp1252"),
    "damaged": (CHINESE[:200].encode() + b"\xff\n", "as the text around it is: is the file damaged there?"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_names_the_likely_encoding(tmp_path, name):
    content, message = ERRORS[name]
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match=message.replace("?", r"\?")):
        words_of(tmp_path / "a.txt")


def test_the_wrong_encoding_is_named_with_the_line_and_the_likely_one(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n" + SAMPLES["shift_jis"].encode("shift_jis"))
    with pytest.raises(DataError, match=r"a\.txt, line 3: byte 0x\w\w is not euc_kr: .*, such as shift_jis\?"):
        words_of(tmp_path / "a.txt", encoding="euc-kr", lines="paragraphs")


@pytest.mark.parametrize("name", ["gb", "base64", ""])
def test_an_unknown_encoding_is_refused(tmp_path, name):
    (tmp_path / "a.txt").write_text("One.")
    with pytest.raises(ConfigError, match=f"there is no encoding '{name}': name one such as utf-8"):
        words_of(tmp_path / "a.txt", encoding=name)


LABELLED = "label\ttext\n好\t花开了，天气很好。\n坏\t下雨了，天气不好。\n"


@pytest.mark.parametrize("encoding", ["gb18030", "auto"])
def test_labelled_data(tmp_path, encoding):
    for name, found in (("utf", "utf-8"), ("gbk", "gbk"), ("marked", "utf-16")):
        (tmp_path / f"{name}.tsv").write_text(LABELLED, encoding=found)
    plain = [(one.label, one.text) for one in elmokit.tasks.read("classify", tmp_path / "utf.tsv")]
    gbk = elmokit.tasks.read("classify", tmp_path / "gbk.tsv", encoding=encoding)
    marked = elmokit.tasks.read("classify", tmp_path / "marked.tsv")
    assert [(one.label, one.text) for one in gbk] == [(one.label, one.text) for one in marked] == plain
    with pytest.raises(DataError, match=r"gbk\.tsv, line 2: byte 0xba is not UTF-8; it looks like gb18030"):
        elmokit.tasks.read("classify", tmp_path / "gbk.tsv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("novel")
    write_checkpoint(random_checkpoint(BYTES), folder / "model")
    (folder / "held-out.txt").write_text(CHINESE[1500:2000], encoding="utf-16")
    for name, encoding in (("utf", "utf-8"), ("gbk", "gbk")):
        (folder / name).mkdir()
        (folder / name / "novel.txt").write_text(CHINESE[:1500], encoding=encoding)
        (folder / name / "labelled.tsv").write_text(LABELLED * 3, encoding=encoding)
    return folder


STUDY = ("--model", "../model", "--tokenizer", "jieba", "--json")
COMMANDS = {
    "embed": ("embed", "novel.txt", "-m", "../model", "-o", "vectors.h5", "--tokenizer", "jieba"),
    "neighbors": ("neighbors", "小", "--corpus", "novel.txt", "--min-count", "2", *STUDY),
    "senses": ("senses", "小", "--corpus", "novel.txt", "--by", "word", *STUDY),
    "shift": ("shift", "novel.txt", "novel.txt", "--min-count", "3", *STUDY),
    "static": ("static", "train", "one-hot", "novel.txt", "-o", "words.txt", "--min-count", "2"),
    "pretrain": (
        *("pretrain", "novel.txt", "-o", "run", "--recipe", "tiny", "--workers", "1", "-s", "training.batch=4"),
        *("-s", "training.epochs=0.3", "--valid", "../held-out.txt"),
    ),
    "finetune": ("finetune", "run", "novel.txt", "-o", "tuned", "--workers", "1", "-s", "training.epochs=0.1"),
    "perplexity": ("perplexity", "run", "novel.txt"),
    "index": ("index", "build", "novel.txt", "-o", "index", *STUDY),
    "task train": (
        *("task", "train", "classify", "--train", "labelled.tsv", "--dev", "labelled.tsv", "-m", "../model"),
        *("-o", "task", "--epochs", "1", "-s", "hidden=4"),
    ),
    "task evaluate": ("task", "evaluate", "task", "labelled.tsv"),
    "task predict": ("task", "predict", "task", "novel.txt", "--lines", "auto"),
}


def printed(capsys, monkeypatch, folder, *arguments):
    monkeypatch.chdir(folder)
    main(arguments)
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_option_and_gives_the_same(capsys, monkeypatch, folder, command):
    if command == "index":
        pytest.importorskip("lancedb")
    arguments = COMMANDS[command]
    expected = printed(capsys, monkeypatch, folder / "utf", *arguments)
    assert expected or command in ("pretrain", "finetune")
    assert printed(capsys, monkeypatch, folder / "gbk", *arguments, "--encoding", "gb18030") == expected
