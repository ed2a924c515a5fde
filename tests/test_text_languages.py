"""Sentences and words of many scripts, and a language model that learns from ten of them."""

import logging
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elmokit
from elmokit.cli import main
from elmokit.errors import ConfigError, MissingExtraError
from elmokit.pretrain import pretrain, read_recipe
from elmokit.text import unspaced
from elmokit.text.corpus import open_corpus
from elmokit.text.languages import language_of
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import get_tokenizer

SENTENCES = {  # by "|"; the language is what the script says
    "hi": "सुबह बंदरगाह शांत था।| नाव अभी नहीं आई थी।| क्या बारिश होगी?| किसी को पता नहीं था!",
    "ur": "صبح بندرگاہ خاموش تھی۔| کشتی ابھی نہیں آئی تھی۔| کیا بارش ہوگی؟| کسی کو معلوم نہیں تھا۔",
    "ar": "كان الميناء هادئا في الصباح.| هل تأخرت العبارة؟| لا أحد يعرف!",
    "am": "ወደቡ በጠዋት ጸጥ ያለ ነበር።| ጀልባው ገና አልመጣም።| ማንም አያውቅም።",
    "my": "မနက်ခင်းမှာ ဆိပ်ကမ်းက တိတ်ဆိတ်တယ်။| လှေ မလာသေးဘူး။",
    "el": "Το λιμάνι ήταν ήσυχο το πρωί.| Πού ήταν το πλοίο;| Κανείς δεν ήξερε.",
    "hy": "Առավոտյան նավահանգիստը լուռ էր։| Նավը դեռ չէր եկել։",
    "ru": "Утром в гавани было тихо.| Где был паром?| А. С. Пушкин об этом не писал.",
    "ja": "港の朝は静かだった。|船はまだ来ていない。|雨が降るのだろうか？",
    "km": "ពេលព្រឹក កំពង់ផែស្ងាត់។| ទូកមិនទាន់មកទេ។",
    "bo": "ཞོགས་པ་གྲུ་ཁ་ཁུ་སིམ་པོ་རེད།| གྲུ་ད་དུང་སླེབས་མི་འདུག།",
    "ko": "아침에 항구는 조용했다.| 배는 아직 오지 않았다.",
    "he": "הנמל היה שקט בבוקר.| איפה הייתה המעבורת?| איש לא ידע.",
    "ta": "காலையில் துறைமுகம் அமைதியாக இருந்தது.| படகு இன்னும் வரவில்லை.",
    "ka": "დილით ნავსადგური წყნარი იყო.| გემი ჯერ არ მოსულა.",
    "zh": "早上港口很安静。|船还没有来。|会下雨吗？",
    "en": "The harbour was quiet, said Mr. Gray.| Where was the ferry?",
}
WITHOUT_BLANKS = {
    "th": "ฉัน|รัก|ภาษา|ไทย|และ|ชอบ|กิน|ข้าว",
    "lo": "ຂ້ອຍ|ຮັກ|ພາສາ|ລາວ",
    "km": "ខ្ញុំ|ទៅ|សាលារៀន",
    "my": "သူ|ကျောင်း|သွား|တယ်",
    "ja": "私|は|東京|が|好き|です",
}
CLUSTERS = {
    "th": "ต|อ|น|เ|ช้|า",
    "km": "ក្រុ|ម|គ្រួ|សា|រ",  # the letters below stay with those above
    "my": "မြ|န်|မာ",
    "lo": "ງ|ຽ|ບ",
}


def plain(marked: str) -> str:
    return marked.replace("|", "")


@pytest.mark.parametrize("code", SENTENCES)
def test_sentences_end_where_they_do(code):
    text = plain(SENTENCES[code])
    expected = [sentence.strip() for sentence in SENTENCES[code].split("|")]
    assert [text[start:end] for start, end in split_sentences(text)] == expected


@pytest.mark.parametrize("code", sorted(SENTENCES.keys() - {"ur", "zh"}))
def test_the_script_tells_the_language(code):
    assert language_of(plain(SENTENCES[code])) == code


def test_most_letters_decide():
    assert language_of("." * 1000 + "ก็") == "en"  # letters that come too late to be looked at
    assert language_of("The word да means yes in Russian.") == "en"
    assert language_of("他在日本买了一本书，书名是『こころ』，讲的是老师和学生的故事。") in ("en", "zh")
    assert language_of("Слово yes значит да.") == "ru"


LATIN = {
    "de": ("Am 3. Mai kam er mit Dr. Weber z. B. nach Hause. Es war spät.", 2),
    "fr": ("« Il est là ? » demanda-t-elle. Il dormait.", 2),
    "it": ("Il sig. Rossi è qui. Dorme.", 2),
}


@pytest.mark.parametrize("code", LATIN)
def test_a_language_in_latin_letters_is_named(code):
    text, count = LATIN[code]
    assert len(split_sentences(text, code)) == count


def test_german_ordinals_need_the_language(tmp_path):
    (tmp_path / "a.txt").write_text("Am 3. Mai kam er. Es war spät.\n", encoding="utf-8")
    read = {
        code: [one.text for one in open_corpus(tmp_path, get_tokenizer("words"), language=code)]
        for code in ("de", "en")
    }
    assert read["de"] == ["Am 3. Mai kam er.", "Es war spät."]
    assert read["en"] == ["Am 3.", "Mai kam er.", "Es war spät."]


@pytest.mark.parametrize("language", ["german", "", "DE", "d"])
def test_what_is_no_code_is_refused(tmp_path, language):
    (tmp_path / "a.txt").write_text("Eins.")
    with pytest.raises(ConfigError, match="no code of a language: write en, zh, de, hi … or auto"):
        open_corpus(tmp_path, get_tokenizer("words"), language=language)


MARKS = "aB1 .!?…。！؟۔।።։;:'\"«»“”()[]\n\r\u2028\u3000\u0301\u200d👍𠮷ไกខ។ན་།က၏かカ漢अआ\ud800"


@given(
    text=st.text() | st.text(alphabet=MARKS),
    language=st.sampled_from("auto de hi ar am my el hy ru ja km bo ko xx".split()),
)
def test_no_character_is_lost_and_none_moves(text, language):
    spans = split_sentences(text, language)
    assert [end for _, end in spans] == sorted(end for _, end in spans)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    covered = [position for start, end in spans for position in range(start, end)]
    assert covered == sorted(set(covered))
    assert all(character.isspace() for position, character in enumerate(text) if position not in set(covered))


@pytest.mark.parametrize("code", WITHOUT_BLANKS)
def test_icu_finds_words(code):
    pytest.importorskip("icu4py")
    words = WITHOUT_BLANKS[code].split("|")
    assert [token.text for token in get_tokenizer("icu")("".join(words))] == words


def test_icu_leaves_other_words_as_they_are():
    pytest.importorskip("icu4py")
    text = "I don't know #ไทย, see https://example.com and Mr. Gray 👍🏽 𠮷野家"
    assert [token.text for token in get_tokenizer("icu")(text)][:-2] == [
        token.text for token in get_tokenizer("words")(text)
    ][:-3]


@pytest.mark.parametrize("code", CLUSTERS)
@pytest.mark.parametrize("name", ["words", "characters", "jieba"])
def test_other_tokenizers_find_grapheme_clusters_and_say_so_once(code, name, caplog):
    unspaced.report_clusters.cache_clear()
    caplog.set_level(logging.INFO)
    clusters = CLUSTERS[code].split("|")
    for _ in range(2):
        assert [token.text for token in get_tokenizer(name)("".join(clusters))] == clusters
    if name == "words":
        assert caplog.text.count("the tokenizer icu finds words") == 1


@pytest.mark.parametrize("name", ["words", "icu", "characters", "jieba"])
def test_tibetan_syllables(name):
    if name == "icu":
        pytest.importorskip("icu4py")
    assert [token.text for token in get_tokenizer(name)("བོད་ཡིག་ནི། ང་")] == ["བོད་", "ཡིག་", "ནི", "།", "ང་"]


def test_icu_is_named_where_it_is_missing(monkeypatch):
    get_tokenizer.cache_clear()
    unspaced.word_breaker.cache_clear()
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(MissingExtraError, match=r'pip install "elmokit\[languages\]"'):
        get_tokenizer("icu")


TEN = ("en", "zh", "ja", "ko", "ru", "el", "ar", "hi", "am", "my")


@pytest.fixture(scope="module")
def ten_scripts(tmp_path_factory):
    """A text in ten scripts and Thai, and a model that learned it by heart."""
    folder = tmp_path_factory.mktemp("ten")
    text = "".join(f"{plain(SENTENCES[code])}\n" for code in TEN) + "".join(WITHOUT_BLANKS["th"].split("|")) + "\n"
    (folder / "ten.txt").write_text(text * 3, encoding="utf-8")
    values = read_recipe("tiny")
    values["training"] |= {"epochs": 8, "batch": 8}
    values["corpus"]["valid_share"] = 0.0
    pretrain([folder / "ten.txt"], folder / "run", values, workers=1)
    return folder


def test_a_model_of_ten_scripts_learns_and_embeds(ten_scripts, capsys):
    elmo = elmokit.load(ten_scripts / "run")
    known = set(elmo.vocabulary.words)
    for code in TEN:
        sentence = SENTENCES[code].split("|")[0].strip()
        words = [token.text for token in elmo.tokenizer(sentence)]
        assert set(words) <= known
        [vectors] = elmo.embed([sentence])
        assert vectors.shape == (len(words), elmo.width)
        assert np.isfinite(vectors).all()
    main(["perplexity", str(ten_scripts / "run"), str(ten_scripts / "ten.txt")])
    assert float(capsys.readouterr().out.split()[1]) < len(known) / 4  # chance would be all words alike
