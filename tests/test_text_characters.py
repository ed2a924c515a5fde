import time
import timeit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.config import CharacterConfig
from elmokit.errors import ConfigError
from elmokit.text.characters import ByteCharacters, UnicodeCharacters, character_encoder, most_frequent_characters
from elmokit.text.vocabulary import BOS, EOS

WORDS = ["the", "猫", "", BOS, "caf\u00e9", EOS, "👍🏽", "\x00", "a" * 5_000, "猫" * 100]
ENCODERS = [
    ByteCharacters(),
    ByteCharacters(max_characters=10),
    ByteCharacters(max_characters=3),
    UnicodeCharacters("the猫"),
    UnicodeCharacters("thé猫👍", max_characters=3),
]


def allennlp_way(word, max_characters=50):
    """One word at a time, as ELMoCharacterMapper does it, before its shift by 1."""
    if word in (BOS, EOS):
        characters = [256 if word == BOS else 257]
    else:
        characters = list(word.encode("utf-8", "ignore")[: max_characters - 2])
    row = [258, *characters, 259]
    return row + [260] * (max_characters - len(row))


@pytest.fixture(params=ENCODERS, ids=lambda encoder: f"{type(encoder).__name__}-{encoder.max_characters}")
def encoder(request):
    return request.param


def test_no_words(encoder):
    ids = encoder.encode([])
    assert (ids.shape, ids.dtype) == ((0, encoder.max_characters), np.int64)


def test_every_id_has_a_row_in_the_table(encoder):
    ids = encoder.encode(WORDS)
    assert (ids.shape, ids.dtype) == ((len(WORDS), encoder.max_characters), np.int64)
    assert ids.min() >= 0
    assert ids.max() < encoder.size


def test_a_word_is_the_same_alone_and_among_others(encoder):
    alone = np.concatenate([encoder.encode([word]) for word in WORDS])
    assert np.array_equal(encoder.encode(WORDS), alone)


def test_pad_comes_only_after_the_word(encoder):
    padded = encoder.encode(WORDS) == encoder.pad
    assert np.array_equal(padded, np.logical_or.accumulate(padded, axis=1))


@pytest.mark.parametrize("max_characters", [3, 10, 50])
def test_bytes_are_allennlps(max_characters):
    expected = [allennlp_way(word, max_characters) for word in WORDS]
    assert ByteCharacters(max_characters).encode(WORDS).tolist() == expected


@given(st.lists(st.text()))
def test_bytes_of_any_words_are_allennlps(words):
    assert ByteCharacters().encode(words).tolist() == [allennlp_way(word) for word in words]


def test_bytes_written_out():
    ids = ByteCharacters(max_characters=6).encode(["猫", "a\ud800b", "猫猫", BOS])
    assert ids.tolist() == [
        [258, 0xE7, 0x8C, 0xAB, 259, 260],
        [258, 97, 98, 259, 260, 260],
        [258, 0xE7, 0x8C, 0xAB, 0xE7, 259],  # the second character is cut after its first byte
        [258, 256, 259, 260, 260, 260],
    ]


def test_unicode_written_out():
    ids = UnicodeCharacters("e猫👍", max_characters=5).encode(["猫e", "👍z\U0010ffff", "eeeeee", "\ud800", BOS, EOS])
    assert ids.tolist() == [
        [2, 7, 6, 3, 0],
        [2, 8, 1, 1, 3],
        [2, 6, 6, 6, 3],
        [2, 1, 3, 0, 0],
        [2, 4, 3, 0, 0],
        [2, 5, 3, 0, 0],
    ]


@pytest.mark.parametrize("make", [ByteCharacters, lambda width: UnicodeCharacters("a", width)])
def test_no_room_for_a_character(make):
    with pytest.raises(ConfigError, match="max_characters is 2: it must be at least 3"):
        make(2)


def test_the_configured_encoder():
    narrow = ((1, 4),)
    of_bytes = character_encoder(CharacterConfig(max_characters=10, filters=narrow))
    of_unicode = character_encoder(
        CharacterConfig(alphabet="unicode", characters="ab", max_characters=8, filters=narrow)
    )
    assert (of_bytes.size, of_bytes.pad, of_bytes.max_characters) == (261, 260, 10)
    assert (of_unicode.size, of_unicode.pad, of_unicode.max_characters) == (8, 0, 8)


@pytest.mark.parametrize(
    ("options", "expected"), [({}, "猫abc"), ({"min_count": 3}, "猫ab"), ({"limit": 2}, "猫a"), ({"limit": 0}, "")]
)
def test_most_frequent_characters(options, expected):
    assert most_frequent_characters({"猫猫": 2, "ab": 3, "c": 1}, **options) == expected


def test_thousands_of_words_in_milliseconds(encoder):
    words = ["contextual", "词向量", "of", "语言模型", BOS] * 4_000
    seconds = min(timeit.repeat(lambda: encoder.encode(words), number=1, repeat=3, timer=time.process_time))
    assert seconds < 0.2  # 0.006 to 0.010 on two cores; encoding the words one at a time takes 1.0
