"""Function words of English and Chinese, told from content words by a list."""

import pytest

from elmokit.lexicon.function_words import CHINESE, ENGLISH, is_function_word


@pytest.mark.parametrize("word", ["the", "Or", "of", "NOT", "you", "n't", "’s", "的", "了", "什么", "他们"])
def test_a_function_word(word):
    assert is_function_word(word)


@pytest.mark.parametrize("word", ["river", "Bank", "walk", "happy", "quietly", "", "银行", "走", "高兴", "人", "说"])
def test_a_content_word(word):
    assert not is_function_word(word)


def test_the_lists_hold_words_as_they_are_looked_up():
    assert all(word == word.lower() and "’" not in word for word in ENGLISH)
    assert not any(word.isascii() for word in CHINESE)
