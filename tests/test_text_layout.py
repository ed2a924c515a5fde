"""What a line is: wrapped prose is joined again, everything else stays as it lies there."""

import textwrap

import pytest

from elmokit.text.corpus import iter_sentences
from elmokit.text.layout import is_wrapped, unwrap

PARAGRAPHS = [
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a "
    "wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood, this "
    "truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful property "
    "of some one or other of their daughters.",
    "“My dear Mr. Bennet,” said his lady to him one day, “have you heard that Netherfield Park is let at last?”",
    "Mr. Bennet replied that he had not.",
    "“But it is,” returned she; “for Mrs. Long has just been here, and she told me all about it. A well-known young "
    "man of large fortune from the north of England--so she says--came down on Monday in a chaise and four to see the "
    "place, and was so much delighted with it that he agreed with Mr. Morris immediately.”",
]
CHINESE = [
    "此开卷第一回也。作者自云：因曾历过一番梦幻之后，故将真事隐去，而借“通灵”之说，撰此《石头记》一书也。故曰“甄士隐”云云。"
    "但书中所记何事何人？自又云：“今风尘碌碌，一事无成，忽念及当日所有之女子，一一细考较去，觉其行止见识，皆出于我之上。",
    "何我堂堂须眉，诚不若彼裙钗哉？实愧则有余，悔又无益之大无可如何之日也！当此，则自欲将已往所赖天恩祖德，锦衣纨裤之时，"
    "饫甘餍肥之日，背父兄教育之恩，负师友规训之德，以至今日一技无成，半生潦倒之罪，编述一集，以告天下人。",
]


def wrapped(paragraph: str, width: int = 72, indent: str = "") -> list[str]:
    return textwrap.wrap(paragraph, width, initial_indent=indent, break_on_hyphens=True)


def wrapped_chinese(paragraph: str, width: int = 35, indent: str = "") -> list[str]:
    text = indent + paragraph
    return [text[start : start + width] for start in range(0, len(text), width)]


def joined(paragraphs: list[list[str]], *, blank: bool) -> list[str]:
    return [line for lines in paragraphs for line in (*lines, *([""] if blank else []))]


def sentences(lines) -> list[str]:
    return list(iter_sentences("\n".join(lines), split=True))


class TestWrapped:
    @pytest.mark.parametrize("width", [40, 60, 72, 100])
    def test_english(self, width):
        lines = joined([wrapped(text, width) for text in PARAGRAPHS], blank=True)
        assert is_wrapped(lines)
        assert list(unwrap(lines)) == PARAGRAPHS

    @pytest.mark.parametrize("width", [20, 35, 40])
    def test_chinese(self, width):
        """Lines of so many characters, each as wide as two letters; no blank comes between two of them."""
        lines = joined([wrapped_chinese(text, width) for text in CHINESE], blank=True)
        assert is_wrapped(lines)
        assert list(unwrap(lines)) == CHINESE

    def test_paragraphs_that_begin_with_an_indent(self):
        """As in many Chinese files, where no line is blank."""
        for lines, expected in (
            (joined([wrapped(text, indent="    ") for text in PARAGRAPHS], blank=False), PARAGRAPHS),
            (joined([wrapped_chinese(text, indent="\u3000\u3000") for text in CHINESE * 2], blank=False), CHINESE * 2),
        ):
            assert is_wrapped(lines)
            assert list(unwrap(lines)) == expected

    def test_a_text_that_is_indented_as_a_whole(self):
        lines = [f"    {line}" if line else "" for line in joined([wrapped(text) for text in PARAGRAPHS], blank=True)]
        assert is_wrapped(lines)
        assert list(unwrap(lines)) == PARAGRAPHS

    @pytest.mark.parametrize("paragraphs", [PARAGRAPHS, CHINESE])
    def test_sentences_are_those_of_the_text_that_is_not(self, paragraphs):
        wrap = wrapped if paragraphs is PARAGRAPHS else wrapped_chinese
        lines = joined([wrap(text) for text in paragraphs], blank=True)
        assert sentences(unwrap(lines)) == sentences(paragraphs)

    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            (["a well-", "known man"], "a well-known man"),
            (["he came--", "at last"], "he came--at last"),
            (["he came", "--at last"], "he came--at last"),
            (["the end —", "of it"], "the end — of it"),
            (["one - two -", "three"], "one - two - three"),
            (["他说", "好"], "他说好"),
            (["他说：", "“好。”"], "他说：“好。”"),
            (["“好", "”他说"], "“好”他说"),
            (["用 Python", "写的"], "用 Python写的"),
            (["a\t", "b "], "a b"),
        ],
    )
    def test_where_a_blank_stood(self, lines, expected):
        assert list(unwrap(lines)) == [expected]

    def test_blank_lines_and_white_space_are_no_paragraphs(self):
        assert list(unwrap(["", " ", "One", "two.", "", "\t", "Three."])) == ["One two.", "Three."]
        assert list(unwrap([])) == list(unwrap(["", ""])) == []


VERSE = """\
Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;""".split("\n")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(PARAGRAPHS, id="one paragraph per line"),
        pytest.param([line for text in PARAGRAPHS for line in (text, "")], id="with blank lines between"),
        pytest.param(CHINESE * 3, id="Chinese paragraphs"),
        pytest.param(sentences(PARAGRAPHS) * 3, id="one sentence per line"),
        pytest.param(["the cat sees the moon .", "a dog follows her friend ."] * 20, id="tokenized sentences"),
        pytest.param("the of and to a in that he was it his her with as had for she not at but".split(), id="words"),
        pytest.param([f"word{number} {number * 37 % 91}" for number in range(99)], id="words and counts"),
        pytest.param(VERSE, id="verse"),
        pytest.param(["床前明月光，", "疑是地上霜。", "举头望明月，", "低头思故乡。"] * 5, id="Chinese verse"),
        pytest.param([], id="nothing"),
        pytest.param(["", "", ""], id="blank lines"),
        pytest.param(wrapped(PARAGRAPHS[0])[:3], id="too little to tell"),
        pytest.param(["x" * 5000] * 50, id="endless lines"),
    ],
)
def test_what_is_not_wrapped(lines):
    assert not is_wrapped(lines)
