"""What commands choose by themselves: the tokenizer and the model, by what the text is written in."""

import json

import pytest
from conftest import HERE

import elmokit
from elmokit.cli import main
from elmokit.config import TokenizerConfig
from elmokit.pretrain import pretrain
from elmokit.static import open_text
from elmokit.text.corpus import open_corpus
from elmokit.text.tokenizers import get_tokenizer, is_mostly_han, name_for

SAMPLES = HERE.parent / "samples"
QUICK = {"epochs": 0.2, "batch": 4, "unroll": 5}
NOVEL = "却说悟空与八戒前行。悟空道：“八戒，你看前面是甚么山？”八戒道：“哥哥，那山名叫积雷坪山。”悟空笑了。\n" * 20


@pytest.fixture
def novel(tmp_path):
    path = tmp_path / "novel.txt"
    path.write_text(NOVEL, encoding="utf-8")
    return path


def words(path, tokenizer):
    return [context.words for context in open_corpus([path], tokenizer)]


class TestScript:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("我在北京工作。", True),
            ("我用 Python 和 PyTorch 写程序", True),  # words in letters count as words
            ("The word 花 means flower or to spend.", False),
            ("私は東京で働いています。", False),  # kana
            ("", False),
            ("2024 😀 …", False),
        ],
    )
    def test_mostly_han(self, text, expected):
        assert is_mostly_han(text) == expected
        assert name_for(text) == ("jieba" if expected else "words")

    def test_auto_decides_for_each_text(self):
        tokenize = get_tokenizer("auto")
        assert [token.text for token in tokenize("我在北京工作")] == ["我", "在", "北京", "工作"]
        assert [token.text for token in tokenize("I don't know 北京.")] == ["I", "do", "n't", "know", "北", "京", "."]


class TestCorpus:
    def test_a_corpus_decides_once(self, tmp_path, caplog):
        path = tmp_path / "mixed.txt"
        path.write_text("我在北京工作。\n" * 5 + "I don't know.\n", encoding="utf-8")
        with caplog.at_level("INFO", logger="elmokit"):
            assert words(path, "auto")[-1] == ["I", "don't", "know", "."]  # jieba's way
        assert "jieba finds the words" in caplog.text

    def test_nothing_is_said_of_other_text(self, tmp_path, caplog):
        (tmp_path / "a.txt").write_text("A river.", encoding="utf-8")
        with caplog.at_level("INFO", logger="elmokit"):
            assert words(tmp_path / "a.txt", "auto") == [["A", "river", "."]]
        assert "jieba" not in caplog.text

    def test_what_is_told_is_done(self, novel):
        assert "悟" in {word for sentence in words(novel, "characters") for word in sentence}

    def test_settings_stay(self, novel):
        dictionary = TokenizerConfig(dictionary=("积雷坪山",))
        assert "积雷坪山" in {word for sentence in words(novel, dictionary) for word in sentence}
        assert "积雷坪山" not in {word for sentence in words(novel, "auto") for word in sentence}


class TestPretrain:
    @pytest.fixture
    def recipe(self):
        return {
            "model": {
                "hidden": 8,
                "projection": 4,
                "characters": {"alphabet": "unicode", "max_characters": 8, "dim": 4, "filters": [[1, 4]]},
                "softmax": {"kind": "full"},
            },
            "training": QUICK,
        }

    @pytest.mark.parametrize(("language", "expected"), [("zh", "jieba"), ("en", "words")])
    def test_the_tokenizer_is_stored(self, recipe, language, expected, tmp_path):
        pretrain(SAMPLES / f"{language}.txt", tmp_path / "run", recipe, workers=1)
        for name, part in (("recipe.json", "model"), ("config.json", None)):
            stored = json.loads((tmp_path / "run" / name).read_text())
            assert (stored[part] if part else stored["model"])["tokenizer"] == expected

    def test_settings_are_stored_and_resumed(self, recipe, novel, tmp_path):
        chosen = {"name": "auto", "hmm": True, "dictionary": ["积雷坪山"]}
        recipe["model"]["tokenizer"] = chosen
        pretrain(novel, tmp_path / "run", recipe, workers=1)
        stored = json.loads((tmp_path / "run" / "recipe.json").read_text())["model"]["tokenizer"]
        assert stored == {**chosen, "name": "jieba", "normalize": "none", "simplify": False}
        assert "积雷坪山" in (tmp_path / "run" / "vocab.txt").read_text(encoding="utf-8").split()
        pretrain(novel, tmp_path / "run", recipe, workers=1, resume=True)


class TestTraditional:
    TEXT = "這個東西很貴，臺灣的軟體產業發達，我們來時說過，國會對於開發問題還沒有進展。"

    def warnings(self, caplog, *sentences, **settings):
        elmo = elmokit.load("zh", **settings)
        with caplog.at_level("WARNING", logger="elmokit"):
            for sentence in sentences:
                elmo.embed([sentence])
        return [record.getMessage() for record in caplog.records]

    def test_unknown_characters_are_told_once(self, caplog):
        [found] = self.warnings(caplog, self.TEXT, self.TEXT[::-1])
        assert "Han characters are unknown to the model" in found
        assert "--simplify" in found

    def test_simplified_ones_are_known(self, caplog):
        simplify = get_tokenizer(TokenizerConfig(name="jieba", simplify=True))
        assert not self.warnings(caplog, [token.text for token in simplify(self.TEXT)])

    def test_on_the_command_line(self, capsys):
        main(["surprisal", self.TEXT])
        assert "unknown to the model" in capsys.readouterr().err
        main(["surprisal", self.TEXT, "--simplify"])
        told = capsys.readouterr()
        assert "unknown to the model" not in told.err
        assert "这个" in told.out


class TestStatic:
    def test_chinese_words(self, novel):
        with open_text(novel, workers=1) as text:
            assert "悟空" in text.words


class TestCommands:
    def test_a_dictionary_file(self, novel, tmp_path, capsys):
        (tmp_path / "names.txt").write_text("积雷坪山 5 ns\n\n悟空\n", encoding="utf-8")
        output = tmp_path / "v.safetensors"
        main(["static", "train", "one-hot", str(novel), "-o", str(output), "--dictionary", str(tmp_path / "names.txt")])
        assert "jieba finds the words" in capsys.readouterr().err
        main(["static", "train", "one-hot", str(novel), "-o", str(output), "--tokenizer", "characters"])
        assert "jieba" not in capsys.readouterr().err

    @pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"], ids=["missing", "not UTF-8"])
    def test_a_bad_dictionary(self, novel, tmp_path, content, capsys):
        if content:
            (tmp_path / "names.txt").write_bytes(content)
        with pytest.raises(SystemExit):
            main(["surprisal", "悟空来了", "--dictionary", str(tmp_path / "names.txt")])
        assert "names.txt: the list of words" in capsys.readouterr().err

    @pytest.mark.parametrize(("sentence", "model"), [("我在[北京]工作。", "zh"), ("He sat on the [bank].", "en")])
    def test_the_model_of_the_language(self, sentence, model, capsys):
        main(["substitutes", sentence, "-k", "1"])
        assert capsys.readouterr().err.startswith(f"model {model}, unless --model names another\n")

    def test_a_missing_word_names_the_tokenizer(self, novel, capsys):
        with pytest.raises(SystemExit):
            main(["neighbors", "孙悟空", "--corpus", str(novel), "--tokenizer", "characters"])
        assert "(its tokenizer is characters) has no word '孙悟空'" in capsys.readouterr().err
