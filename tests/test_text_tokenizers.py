import pickle
import time
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.config import TOKENIZER_NAMES, TokenizerConfig
from elmokit.errors import ConfigError
from elmokit.text.tokenizers import get_tokenizer

TEXTS = [
    "The quick brown fox doesn't jump over the lazy dog's bed.",
    "我们在北京的咖啡馆见面，好吗？",
    "我用 Python 写了 3.14 行代码, it's easy!中文English混合",
    "😀👍🏽👨\u200d👩\u200d👧🇬🇧🇨🇳❤\ufe0f text 1\ufe0f\u20e3",
    "𠮷野家 sells 𪚥 and 🍜, 他说𠀀。",
    "cafe\u0301 nai\u0308ve हिन्दी में ភាសាខ្មែរ",
    "a\x1cb\x85c\u2028d\u3000e\xa0f\tg\r\nh",
    "zero\u200bwidth \ufeff \x00 \ud800 lone",
]


@pytest.fixture(params=TOKENIZER_NAMES)
def tokenize(request):
    return get_tokenizer(request.param)


VANISHING = "\u00ad\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"


def check_contract(text, tokens, vanishing=VANISHING):
    """Every character but blanks and the vanishing ones is in just one token, where the token says that it stands."""
    without = str.maketrans("", "", vanishing)
    assert all(token.text == text[token.start : token.end].translate(without) for token in tokens)
    assert all(token.text and token.text.split() == [token.text] for token in tokens)
    covered = [position for token in tokens for position in range(token.start, token.end)]
    assert covered == sorted(set(covered))
    needed = {position for position, character in enumerate(text) if not character.isspace()}
    assert needed - set(covered) <= {position for position in needed if text[position] in vanishing}


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\u3000\xa0\u2028"])
def test_no_tokens_in_white_space(tokenize, text):
    assert tokenize(text) == []


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_point_back_and_cover_the_text(tokenize, text):
    tokens = tokenize(text)
    assert tokens
    check_contract(text, tokens, "" if tokenize is get_tokenizer("whitespace") else VANISHING)


@pytest.mark.parametrize("name", TOKENIZER_NAMES)
@given(text=st.text() | st.text(alphabet="aZ1.,:'’-n't我カ한\u0301\u200d👍🏽🇬@/ \n\x1c\ud800"))
def test_any_text_is_covered(name, text):
    check_contract(text, get_tokenizer(name)(text), "" if name == "whitespace" else VANISHING)


@pytest.mark.parametrize("character", ["a", "1", "é"])
def test_a_token_of_5000_characters(tokenize, character):
    text = f"so {character * 5_000} ends"
    check_contract(text, tokenize(text))
    assert "".join(token.text for token in tokenize(text)[1:-1]) == character * 5_000


@pytest.mark.parametrize(
    "unit",
    ["a", "'", "-", ".", "a.", "a'", "a-", "a+", "n't'", "a@", "http://.", "1,", "a\u0301", "👍\u200d", "中", "\n"],
)
def test_linear_time(tokenize, unit):
    def seconds(size):
        text = unit * (size // len(unit))
        return min(timeit.repeat(lambda: tokenize(text), number=1, repeat=3, timer=time.process_time))

    assert seconds(40_000) < 24 * seconds(5_000) + 0.01  # linear: 8 times, quadratic: 64 times


@pytest.mark.parametrize("unit", ["a", "-", "."])
def test_a_megabyte_of_one_character(unit):
    text = unit * 1_000_000
    assert get_tokenizer("words")(text) == [(text, 0, 1_000_000)]


def texts(name, text):
    return [token.text for token in get_tokenizer(name)(text)]


def test_whitespace_leaves_everything_else():
    assert texts("whitespace", " don't \u3000stop,你好。 ") == ["don't", "stop,你好。"]


WORDS = [
    "I do|n't know",
    "it|'s they|'ll we|'re I|'ve she|'d I|'m",
    "it|’s wo|n’t",
    "would|n't|'ve DO|N'T",
    "cannot stay O'Brien o'clock",
    "Smith|'s mother-in-law|'s dogs|' tails",
    "'|hello|' said|, |“|no|”|.",
    "it 's do n't",
    "3.14 1,000,000 10:30 192.168.0.1 50|% $|5 5th 1/2|.",
    "a well-known F-16 (|10-year-old|)",
    "Mr. Gray|, of U.S. fame|, e.g. here",
    "J. K. Rowling|, Ph.D.",
    "the U.S.-based U.S.|'s",
    "wait|...|what -- no|……",
    "naïve cafe\u0301 हिन्दी में",
    "👍🏽|👨\u200d👩\u200d👧|🇬🇧|🇨🇳|❤\ufe0f|1\ufe0f\u20e3|2\ufe0f\u20e3|🏴\U000e0067\U000e0062\U000e007f|ok",
    "see https://example.com/a?b=it's|, (|www.example.org/x|)|.",
    "见|https://example.com|，|谢|谢",
    "mail jane.doe+x@mail.example.co.uk|, file.txt|!|!",
    "我|爱|北|京|Python 3.11|的|𠮷|野|家|。",
    "私|は|Python|が|好|きです|。 カタカナ",
    "한국어는 재미있다|.",
    "snake_case and|/|or C|+|+ #tag @me|, not a|@|b",
    "I|'m #1 @home|: #话题# @张三 好|吧",
]


@pytest.mark.parametrize("marked", WORDS)
def test_words(marked):
    expected = marked.replace("|", " ").split()
    assert texts("words", marked.replace("|", "")) == expected


@pytest.mark.parametrize("marked", WORDS)
def test_words_leave_their_own_output_alone(marked):
    spaced = " ".join(marked.replace("|", " ").split())
    assert texts("words", spaced) == spaced.split()


@pytest.mark.parametrize(
    "marked",
    [
        "我们|在|北京|的|咖啡馆|见面|，|好|吗|？",
        "小|明|毕业|于|清华大学|。",
        "🍜|北京|的 😀 天安门",
        "我|爱 Python 和 3.14",
        "看|https://a.b/c?d=1|，|写信给|a@b.com|，|#话题#|，|问 @张三 吧",
        "👨\u200d👩\u200d👧|和|👍🏽|去|唱歌|，|穿|T恤|，|看|well-known|的|书",
    ],
)
def test_jieba(marked):
    assert texts("jieba", marked.replace("|", "")) == marked.replace("|", " ").split()


@pytest.mark.parametrize(
    "marked",
    [
        "我|用|Python|写|了|3.14|行|，|好|吗|？",
        "don't stop|, well-known|.|.|.",
        "𠮷|野|家|👍🏽|…|…",
        "12|月|1|日 10:30",
    ],
)
def test_characters(marked):
    assert texts("characters", marked.replace("|", "")) == marked.replace("|", " ").split()


@pytest.mark.parametrize("name", ["words", "jieba", "characters"])
def test_characters_without_width_vanish(name):
    text = "ze\u200bro wid\u00adth \ufeffmark"
    assert get_tokenizer(name)(text) == [("zero", 0, 5), ("width", 6, 12), ("mark", 14, 18)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＥＬＭｏ１２３　模型", ["ELMo123", "模", "型"]),
        ("ﬁne cafe\u0301 ㎏", ["fine", "café", "kg"]),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", ["한국"]),
    ],
)
def test_normalised(text, expected):
    tokens = get_tokenizer(TokenizerConfig(name="words", normalize="nfkc"))(text)
    assert [token.text for token in tokens] == expected
    assert "".join(text[token.start : token.end] for token in tokens) == "".join(text.split())


def test_jieba_guesses_words_or_not():
    assert texts("jieba", "花开了，3.14 well-known") == ["花", "开", "了", "，", "3.14", "well-known"]
    guessing = get_tokenizer(TokenizerConfig(name="jieba", hmm=True))
    assert [token.text for token in guessing("花开了，小明毕业")] == ["花开", "了", "，", "小明", "毕业"]


def test_jieba_knows_the_words_it_is_given():
    sentence = "焦恩俊演过白浅儿"
    named = get_tokenizer(TokenizerConfig(name="jieba", dictionary=("白浅儿", "焦恩俊")))
    assert [token.text for token in named(sentence)] == ["焦恩俊", "演", "过", "白浅儿"]
    assert texts("jieba", sentence) != ["焦恩俊", "演", "过", "白浅儿"]  # and others do not learn them


def test_traditional_characters_are_read_as_simplified():
    tokens = get_tokenizer(TokenizerConfig(name="jieba", simplify=True))("這個東西，臺灣的軟體")
    assert [token.text for token in tokens[:2]] == ["这个", "东西"]
    assert [(token.start, token.end) for token in tokens[:2]] == [(0, 2), (2, 4)]


def test_an_unknown_name_lists_the_known():
    with pytest.raises(ConfigError, match=r"'spacy'.*whitespace, words, icu, jieba, characters"):
        get_tokenizer("spacy")


@pytest.mark.parametrize("name", TOKENIZER_NAMES)
def test_tokenizers_travel_to_worker_processes(name):
    copy = pickle.loads(pickle.dumps(get_tokenizer(name)))
    assert copy("我 don't") == get_tokenizer(name)("我 don't")
