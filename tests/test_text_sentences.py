import time
import timeit
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.text.sentences import split_sentences

ENGLISH = [
    ["The river froze.", "Did anyone skate?", "Nobody dared!"],
    ['"What?" he said.', '"Go!"', "She went."],
    ['She wrote "No." and left.', "He (why?) stayed."],
    ["(It was late.)", "[We slept.]", 'They asked ("why?").', "Nobody knew."],
    ["Mr. and Mrs. Gray met Dr. Lee, Prof. Adams and Capt. Hill on St. James Street.", "It rained."],
    ["The books of J. K. Rowling and J. A. Smith sold well.", "Mine did not."],
    ["Bring fruit, e.g. plums, i.e. small ones, vs. the large, cf. p. 5 and No. 7.", "No.", "Never."],
    ["We left at 5 p.m. on Friday and came back at 9 p.m.", "Then we slept."],
    ["The U.S. Senate voted.", "He lives in the U.S.", "She does not."],
    ["Acme Inc. Magazine praised Acme Inc.", "They sell nails, screws, etc.", "We buy them."],
    ["He was born in Oct. 1990 as Tom Brown Jr.", "His son was not."],
    ["Pi is 3.14 at www.example.com and in file.txt.", "Read it."],
    ["Well... perhaps.", "Hmm…", "Yes."],
    ["He waited . . .", "She came ."],
    ["i went home.", "it was late."],
    ["1. Heat the oven.", "2. Bake for 30 minutes.", "It was 1999.", "We ate."],
    ["One more rep.", "Stop!"],
]
CHINESE = [
    ["今天下雨了。", "你带伞了吗？", "快跑！"],
    ["他说：“我们走吧。”", "大家都笑了。"],
    ["“真的吗？”，他问。", "没人回答……", "天黑了。"],
    ["（他来了。）", "「好！」", "『是吗？』", "《走！》", "我同意。"],
    ["什么？！", "你再说一遍！！！"],
    ["先洗菜；再切菜；最后下锅。", "很简单。"],
    ["你好!", "我很好?", "是吗...", "不知道"],
    ["我用Python 3.11写代码。", "真快！", "It works"],
]


def sentences(text):
    return [text[span.start : span.end] for span in split_sentences(text)]


@pytest.mark.parametrize("expected", ENGLISH, ids=lambda expected: expected[0])
def test_english(expected):
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize("expected", CHINESE, ids=lambda expected: expected[0])
@pytest.mark.parametrize("between", ["", " ", "\u3000", "\n"])
def test_chinese_needs_no_space_between(expected, between):
    assert sentences(between.join(expected)) == expected


@pytest.mark.parametrize("text", ["", " ", "\n\n", " \t\n \u3000"])
def test_nothing_in_nothing_out(text):
    assert split_sentences(text) == []


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\n \t\n", "\n\n\n\n"])
def test_a_blank_line_ends_a_sentence(blank):
    assert sentences(f"A Title{blank}Mr.{blank}the text") == ["A Title", "Mr.", "the text"]


def test_a_single_newline_is_white_space():
    assert sentences("The text\ngoes on.\nIt ends.") == ["The text\ngoes on.", "It ends."]


@given(st.text() | st.text(alphabet="aA我1. \n!?…。！？”\")'(“，,"))
def test_spans_cover_every_character_once_in_order(text):
    spans = split_sentences(text)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(left.end <= right.start for left, right in pairwise(spans))


@pytest.mark.parametrize(
    "unit", [".", "a.", "a", "a. ", "A. ", "1. ", "。", '."', "\n", ".\n", " ", "Mr. ", "“", "(", "...a"], ids=repr
)
def test_linear_time(unit):
    def seconds(size):
        text = unit * (size // len(unit))
        return min(timeit.repeat(lambda: split_sentences(text), number=1, repeat=3, timer=time.process_time))

    assert seconds(40_000) < 24 * seconds(5_000) + 0.01  # linear: 8 times, quadratic: 64 times


@pytest.mark.parametrize("unit", [".", "a.", "a", "我"])
def test_a_megabyte_without_a_boundary_is_one_sentence(unit):
    text = unit * (1_000_000 // len(unit))
    assert split_sentences(text) == [(0, 1_000_000)]
