"""Commands in the reader's language: every text has a translation, and what is read by machines stays as it is."""

import json
import re
import subprocess
import sys

import pytest
from texts import all_texts, has_translation

import elmokit
from elmokit.cli import main
from elmokit.cli.demo import compare, read_lessons
from elmokit.cli.demo_page import draw
from elmokit.progress.drawing import LineProgress
from elmokit.translation import CATALOGUE, LOCALES, catalogue, in_chinese, patterns, translate

HAN = re.compile("[\u4e00-\u9fff]")
PLACE = re.compile(r"\{\w+\}")


@pytest.fixture(scope="module")
def texts():
    return all_texts()


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("LANGUAGE", "zh_CN.UTF-8")


class TestCatalogue:
    def test_every_text_has_a_translation(self, texts):
        assert [text for text in texts if not has_translation(text)] == []

    def test_every_translation_is_of_a_text(self, texts):
        """As it is; or, of those in which something varies, as one of the texts of help."""
        varied = [pattern for pattern, _ in patterns() if any(map(pattern.fullmatch, texts))]
        unused = [english for english in catalogue() if english not in set(texts)]
        assert [english for english in unused if not any(pattern.fullmatch(english) for pattern in varied)] == []

    def test_what_varies_stands_in_both(self):
        for english, translation in catalogue().items():
            assert sorted(PLACE.findall(english)) == sorted(PLACE.findall(translation)), english
            numbers = re.findall(r"\{(\d)\}", english)
            assert numbers == sorted(numbers), english

    def test_each_entry_is_read(self):
        source = CATALOGUE.read_text(encoding="utf-8")
        assert len(catalogue()) == source.count("\nmsgid ") - 1  # the first is the head
        assert all(HAN.search(text) or not re.search("[a-z]{4}", PLACE.sub("", text)) for text in catalogue().values())


class TestLocale:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, False),
            ({"LANG": "zh_CN.UTF-8"}, True),
            ({"LANG": "zh_TW.UTF-8"}, True),
            ({"LANG": "C.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, True),
            ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, False),
            ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, True),
            ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh_CN"}, False),
            ({"LANG": "zh_CN.UTF-8", "LANGUAGE": ""}, True),
        ],
    )
    def test_the_first_that_is_set_decides(self, given, expected, monkeypatch):
        for name in LOCALES:
            monkeypatch.delenv(name, raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        assert in_chinese() is expected

    def test_nothing_is_read_where_it_is_not_chinese(self):
        code = (
            "import sys\nfrom elmokit.cli import main\nfrom elmokit.translation import catalogue\nmain(['models'])\n"
            "assert catalogue.cache_info().currsize == 0 and 'elmokit.cli.help' not in sys.modules"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


class TestTranslate:
    def test_as_it_is_elsewhere(self):
        assert translate("training") == "training"

    @pytest.mark.parametrize(
        ("english", "expected"),
        [
            ("training", "训练"),
            ("what nobody has translated", "what nobody has translated"),
            ("574 sentences", "574 句"),
            ("a few sentences", "a few sentences"),
            ("loss 6.866, 1,543 tokens/s", "损失 6.866，每秒 1,543 个词"),
            ("novel.txt: each line is a paragraph", "novel.txt：每行是一个段落"),
            ("training: each line is a paragraph", "training：每行是一个段落"),
            (
                "epoch 3: loss 0.1000, dev f1 0.5000 (the best so far), 12 s",
                "第 3 轮：损失 0.1000，开发集 f1 0.5000（目前最好），12 秒",
            ),
            ("unknown task training: known are tagging, pairs", "没有任务 training：可用的有 tagging, pairs"),
            ("Print\n    JSON.", "输出 JSON。"),
            ("my  words.txt is a folder: name a\nfile in it", "my  words.txt 是文件夹：请指定其中的文件"),
            ("vectors of width 128", "128 维向量"),
        ],
    )
    def test_texts(self, english, expected, chinese):
        assert translate(english) == expected


class TestCommands:
    def test_help(self, chinese, capsys):
        main(["neighbors", "--help"])
        output = capsys.readouterr().out
        for part in (
            "用法：elmokit neighbors",
            "示例：elmokit neighbors",
            "参数",
            "选项",
            "[默认：10]",
            "输出 JSON。",
        ):
            assert part in output

    def test_help_of_all_commands(self, chinese, capsys):
        main(["--help"])
        assert "Find" not in capsys.readouterr().out
        main(["task", "train", "--help"])
        assert "语义角色标注" in re.sub(r"[\s│]", "", capsys.readouterr().out)

    def test_lines_are_broken_as_chinese_is(self, chinese, capsys):
        for command in (["serve"], ["neighbors"], ["task", "train"]):
            main([*command, "--help"])
            output = capsys.readouterr().out
            assert not re.search(r"^[│ ]*[，。；：、）？]", output, re.MULTILINE)
            assert not re.search(r"[（【\[][│ ]*$", output, re.MULTILINE)
            assert command == ["serve"] or "big5" in output

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["embed", "missing.txt", "-o", "x.npz"], "missing.txt：没有这个文件或文件夹"),
            (["embed", "missing.txt"], "命令“embed”的参数 --output 需要一个值。"),
            (["fly"], "没有命令“fly”。"),
            (["bench", "--rounds", "0"], "--rounds 的值“0”无效：必须 >= 1。"),
            (["substitutes", "他花了钱", "-m", "nowhere"], "nowhere：没有这个文件或文件夹，也没有这个名字的模型"),
        ],
    )
    def test_errors(self, arguments, expected, chinese, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert f"elmokit: {expected}" in capsys.readouterr().err

    def test_tables(self, chinese, capsys):
        main(["models", "zh"])
        assert re.match(r"名字 +语言 +大小 +许可 +试过 +用途\n", capsys.readouterr().out)
        main(["info", "zh"])
        assert re.search(r"^向量 +3 层，每层 \d+ 维$", capsys.readouterr().out, re.MULTILINE)

    def test_json_is_the_same(self, monkeypatch, capsys):
        main(["models", "zh", "--json"])
        english = capsys.readouterr().out
        monkeypatch.setenv("LANGUAGE", "zh")
        main(["models", "zh", "--json"])
        assert capsys.readouterr().out == english
        assert json.loads(english)

    def test_a_sentence(self, chinese, capsys):
        main(["surprisal", "他花了钱。", "-m", "zh"])
        head, first, *_, last = capsys.readouterr().out.splitlines()
        assert head.split() == ["前向", "(熵)", "后向", "(熵)", "比特"]
        assert first.endswith("(句首)")
        assert last.endswith("(句尾)")

    def test_the_page_of_the_demo(self, chinese):
        [senses, *_] = read_lessons()["zh"]["words"].values()
        page = draw([compare(senses, elmokit.load("zh"))], [], {0: 955.0, 40: 149.0})
        assert '<html lang="zh">' in page
        words = re.sub(r"<style>.*?</style>|<code>.*?</code>|<[^>]*>|elmokit", "", page, flags=re.DOTALL)
        assert not re.search("[A-Za-z]{3}", words)


def test_progress(chinese, capsys, monkeypatch):
    monkeypatch.setattr("elmokit.progress.drawing.SECONDS_BETWEEN_LINES", 0.0)
    lines = LineProgress("novel.txt")
    lines.update("training", 5, 10, unit="steps", note="loss 6.866, 1,543 tokens/s")
    lines.update("reading", 5, unit="sentences")
    lines.message("read 1.5 MB of text")
    lines.finish()
    assert capsys.readouterr().err.splitlines() == [
        "novel.txt：训练，10 步的 50%，损失 6.866，每秒 1,543 个词，0 秒",
        "novel.txt：读取，5 句，0 秒",
        "读了 1.5 MB 文本",
        "novel.txt：完成，5 句，0 秒",
    ]
