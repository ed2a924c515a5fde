"""Data that is cut into characters, for a model of words: each character is read in its word, too."""

import numpy as np
import pytest
import torch

import elmokit
from elmokit import tasks
from elmokit.errors import ConfigError
from elmokit.tasks.whole_words import PLACES, WholeWords, are_characters_of_words

SENTENCES = ["我在北京大学学习。", "他昨天去了上海。", "小猫喜欢看月亮，", "李明住在南京。"]
PLACED = {"北京": "CITY", "上海": "CITY", "南京": "CITY", "李明": "PERSON"}


@pytest.fixture(scope="module")
def zh():
    torch.set_num_threads(1)
    return elmokit.load("zh")


def labelled(sentence: str) -> list[tuple[str, str]]:
    """Its characters with their labels."""
    labels = ["O"] * len(sentence)
    for name, label in PLACED.items():
        if (start := sentence.find(name)) >= 0:
            labels[start : start + len(name)] = [f"B-{label}"] + [f"I-{label}"] * (len(name) - 1)
    return list(zip(sentence, labels, strict=True))


@pytest.fixture
def conll(tmp_path):
    path = tmp_path / "characters.conll"
    blocks = ("".join(f"{character}\t{label}\n" for character, label in labelled(one)) for one in SENTENCES)
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


def test_own_vectors_those_of_the_word_and_the_place(zh):
    [vectors] = WholeWords(zh).embed([list("我在北京工作。")], layers="all")
    [own], [whole] = zh.embed([list("我在北京工作。")], layers="all"), zh.embed(["我在北京工作。"], layers="all")
    assert zh.tokens("我在北京工作。") == ["我", "在", "北京", "工作", "。"]
    assert vectors.shape == (3, 7, 2 * zh.width + PLACES)
    np.testing.assert_array_equal(vectors[:, :, : zh.width], own)
    np.testing.assert_array_equal(vectors[:, :, zh.width : 2 * zh.width], whole[:, [0, 1, 2, 2, 3, 3, 4]])
    all_of_it, first, last = 3, 2, 1
    expected = [all_of_it, all_of_it, first, last, first, last, all_of_it]
    np.testing.assert_array_equal(vectors[:, :, 2 * zh.width :].argmax(axis=2), [expected] * 3)


def test_any_tokens(zh):
    """A token that is part of no word, one of several words, an emoji, an empty sentence; mates change nothing."""
    sentences = [["北", "京", "\u200b", "的", "🎉"], [], ["在北京", "a", "b"], [" "]]
    reading = WholeWords(zh)
    together = reading.embed(sentences, layers="top")
    assert [one.shape for one in together] == [(len(tokens), reading.width) for tokens in sentences]
    for tokens, found in zip(sentences, together, strict=True):
        np.testing.assert_allclose(reading.embed([tokens], layers="top")[0], found, atol=4e-6)
    assert not together[0][2, zh.width :].any()
    assert together[0][0, zh.width :].any()


def test_told_by_the_data(zh):
    cut = [list(sentence) for sentence in SENTENCES]
    assert are_characters_of_words(cut, [zh])
    assert not are_characters_of_words([zh.tokens(sentence) for sentence in SENTENCES], [zh])
    assert not are_characters_of_words(cut, [elmokit.load("en")])
    assert not are_characters_of_words([list("thecatsees")], [zh])
    assert not are_characters_of_words([], [zh])


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, "yes"), ({"whole_words": "no"}, "no"), ({"trainable": "top"}, "auto")],
    ids=["by itself", "refused", "for frozen models alone"],
)
def test_a_task_says_so_and_finds_it_again(zh, conll, tmp_path, options, expected):
    folder = tmp_path / "ner"
    settings = {"epochs": 1, "settings": {"hidden": 8}}
    trained = tasks.train("tagging", train=conll, dev=conll, embedders={"zh": zh}, folder=folder, **settings, **options)
    assert trained.config.inputs.whole_words == expected
    again = tasks.load(folder)
    texts = [list(sentence) for sentence in SENTENCES]
    assert again.config.inputs.whole_words == expected
    assert again.predict(texts) == trained.predict(texts)


def test_not_of_a_model_that_learns(zh, conll, tmp_path):
    options = {"embedders": {"zh": zh}, "folder": tmp_path / "ner", "whole_words": "yes", "trainable": "all"}
    with pytest.raises(ConfigError, match="whole_words are read by frozen models"):
        tasks.train("tagging", train=conll, dev=conll, **options)
