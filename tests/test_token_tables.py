"""Surprisal and entropy word by word, beside a table that was given; checked by hand and against the perplexity."""

import csv
import math

import numpy as np
import pytest
from test_lexicon_substitutes import KINDS, random_predictor
from test_surprisal_tables import run

import elmokit
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon import align_surprisal, iter_surprisal, open_corpus, surprisal, write_aligned
from elmokit.pretrain import perplexity
from elmokit.text.tables import Table, read_table

TEN = [
    "It is a truth universally acknowledged, that a single man must be in want of a wife.",
    "The harbour was quiet.",
    "She walked slowly along the river to the old mill.",
    "“Nobody minded the rain,” he said.",
    "Call me Ishmael.",
    "The horse raced past the barn fell.",
    "In the beginning there was nothing but water and wind.",
    "He sat on the bank and counted his money twice.",
    "When did you last see your father?",
    "All happy families are alike; every unhappy family is unhappy in its own way.",
]


@pytest.fixture(scope="module")
def en():
    return elmokit.load("en")


@pytest.mark.parametrize("kind", KINDS)
def test_entropy_by_hand(kind):
    elmo, words = random_predictor(kind), "The bank of the zigzag was steep".split()
    _, forward, backward = elmo.predictions(words)  # (T, V) log probabilities
    for row, found in enumerate(surprisal(elmo, words).words):
        for log_p, entropy in ((forward[row], found.forward_entropy), (backward[row], found.backward_entropy)):
            p = np.exp(log_p.astype(np.float64))
            assert entropy == pytest.approx(-(p * np.log2(p)).sum(), rel=1e-4)
            assert 0 < entropy < math.log2(len(p))


def test_ten_sentences_against_the_perplexity(en, tmp_path):
    """Table and aligned table have the bits of which the perplexity is made; with those of the bounds they are all."""
    text, given, aligned = tmp_path / "ten.txt", tmp_path / "ten.csv", tmp_path / "aligned.csv"
    text.write_text("\n".join(TEN), encoding="utf-8")
    with given.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "word", "rt"])
        writer.writerows([number, word, 300 + number] for number, line in enumerate(TEN) for word in line.split())
    assert write_aligned(aligned, given, en, sentence="item") == sum(len(line.split()) for line in TEN)
    corpus = open_corpus(text, en.tokenizer, lines="sentences")
    contexts, rows, pairs = list(corpus), list(iter_surprisal(corpus, en)), read_table(aligned).rows
    assert [context.text for context in contexts] == TEN
    for number, context in enumerate(contexts):
        whole, bounds = perplexity(en, [context.words]), surprisal(en, context.words)
        for direction, bound in (("forward", bounds.end), ("backward", bounds.begin)):
            bits = sum(getattr(row, f"{direction}_bits") for row in rows if row.sentence == number) + bound
            same = sum(float(row[f"{direction}_bits"]) for row in pairs if row["item"] == str(number)) + bound
            expected = math.log2(getattr(whole, direction)) * whole.targets
            assert bits == pytest.approx(expected, rel=1e-5)
            assert same == pytest.approx(expected, rel=1e-5)
    assert [(row["word"], row["rt"]) for row in pairs[-2:]] == [("own", "309"), ("way.", "309")]
    assert [row["tokens"] for row in pairs[-2:]] == ["1", "2"]


def test_a_word_of_several_tokens(en):
    rows = [{"sentence": "1", "word": word} for word in ("The", "quiet", "river,", "", "too.")]
    found = list(align_surprisal(Table("t", ("sentence", "word"), rows), en))
    words = surprisal(en, "The quiet river , too .".split()).words
    assert found[2]["forward_bits"] == pytest.approx(words[2].forward + words[3].forward, rel=1e-5)
    assert found[2]["forward_entropy_bits"] == pytest.approx(words[2].forward_entropy, rel=1e-5)
    assert found[2]["backward_entropy_bits"] == pytest.approx(words[3].backward_entropy, rel=1e-5)
    assert found[3] == {"sentence": "1", "word": "", "tokens": 0, "known": False} | dict.fromkeys(
        ["forward_bits", "backward_bits", "forward_entropy_bits", "backward_entropy_bits"]
    )


def test_the_command(tmp_path, capsys):
    random_predictor("full").save(tmp_path / "model")
    given = tmp_path / "given.tsv"
    given.write_text("s\tw\tRT\n1\tThe\t300\n1\tbank.\t411\n2\t今天\t250\n", encoding="utf-8")
    arguments = ["--tokens", given, "-m", tmp_path / "model", "--word-column", "w", "--sentence-column", "s"]
    run("surprisal", *arguments, "-o", tmp_path / "out.tsv")
    assert capsys.readouterr().out == f"{tmp_path / 'out.tsv'}: 3 rows\n"
    expected = list(align_surprisal(read_table(given), elmokit.load(tmp_path / "model"), word="w", sentence="s"))
    found = read_table(tmp_path / "out.tsv").rows
    assert [float(row["forward_bits"]) for row in found] == [row["forward_bits"] for row in expected]
    assert [row["RT"] for row in found] == ["300", "411", "250"]
    with pytest.raises(DataError, match="given.tsv has no column 'word': it has s, w, RT"):
        run("surprisal", "--tokens", given, "-m", tmp_path / "model", "-o", tmp_path / "out.csv")
    with pytest.raises(ConfigError, match="--tokens takes the place of texts, and needs -o"):
        run("surprisal", *arguments)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", "a,b\n", "unknown ending '.xlsx': a table is read from .csv or .tsv"),
        ("t.csv", "", "empty: the first line should name the columns"),
        ("t.csv", "a,a\n1,2\n", "line 1: every column needs a name of its own, found a, a"),
        ("t.csv", "a,b\n1,2\n1\n", "line 3: 1 cells, where line 1 names 2 columns"),
        ("t.csv", 'a,b\n1,"2\n', "line 2: unexpected end of data"),
    ],
)
def test_broken_tables(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / name)


def test_semicolons_and_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('\ufeffword;note\n"a;b";"two\nlines"\n', encoding="utf-8")
    assert read_table(tmp_path / "t.csv").rows == [{"word": "a;b", "note": "two\nlines"}]
