"""From files to sentences, and from words to numbers: what every command and every training reads."""

import json
import textwrap
from collections import Counter

import numpy as np
import pytest

from elmokit.text.corpus import LONGEST_SENTENCE, Context, iter_sentences, make_corpus, open_corpus
from elmokit.text.numbering import TRAIN, VALID, Numberer, Piece, WordCounter, number_pieces
from elmokit.text.tokenizers import get_tokenizer

LINES = [
    "The harbour was quiet in the morning, and nobody minded the rain, for the ferry was late. Mr. Smith had left.",
    "",
    "“好！”他说。 It was raining on the boats that lay where they had been left the night before by their owners.",
]


def read(path, tokenizer="words", **options) -> list[list[str]]:
    return [context.words for context in open_corpus([path], get_tokenizer(tokenizer), **options)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


class TestCorpus:
    def test_sentences_with_their_tokens_and_document(self, file):
        corpus = open_corpus([file], get_tokenizer("words"))
        contexts = list(corpus)
        assert [context.words[-2:] for context in contexts] == [
            ["late", "."],
            ["left", "."],
            ["！", "”"],
            ["说", "。"],
            ["owners", "."],
        ]
        assert {context.document for context in contexts} == {corpus.name} == {str(file)}
        for context in contexts:
            assert all(context.text[token.start : token.end] == token.text for token in context.tokens)
        assert list(corpus) == contexts  # read again

    @pytest.mark.parametrize("width", [50, 70])
    def test_a_wrapped_copy_gives_the_same_sentences(self, file, tmp_path, width):
        paragraphs = [line for line in LINES if line] * 3
        file.write_text("\n".join(paragraphs), encoding="utf-8")
        copy = tmp_path / "wrapped.txt"
        copy.write_text("\n\n".join(textwrap.fill(text, width) for text in paragraphs), encoding="utf-8")
        assert read(copy) == read(file)
        assert read(copy) != read(copy, lines="paragraphs")
        assert read(file, lines="paragraphs") == read(file)

    def test_one_sentence_per_line(self, file):
        assert [len(words) for words in read(file, "whitespace", lines="sentences")] == [21, 20]
        empty = open_corpus([file], get_tokenizer("whitespace"), lines="sentences", keep_empty=True)
        assert [len(context.tokens) for context in empty] == [21, 0, 20]

    def test_objects_are_documents(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps({"body": text}) + "\n" for text in ("One. Two.", "Three.")))
        found = open_corpus([path], get_tokenizer("words"), field="body")
        assert [(context.text, context.document) for context in found] == [
            ("One.", f"{path}:1"),
            ("Two.", f"{path}:1"),
            ("Three.", f"{path}:2"),
        ]

    def test_a_sentence_without_end_is_divided(self, tmp_path):
        (tmp_path / "a.txt").write_text("word " * (2 * LONGEST_SENTENCE + 5))
        assert [len(words) for words in read(tmp_path / "a.txt")] == [LONGEST_SENTENCE, LONGEST_SENTENCE, 5]

    def test_of_several_files(self, file, tmp_path):
        (tmp_path / "b.txt").write_text("One.\n")
        corpus = open_corpus([tmp_path], get_tokenizer("words"))
        assert corpus.name == "2 files"
        assert [context.words for context in corpus][-1] == ["One", "."]

    def test_of_tokens(self):
        (context,) = make_corpus([["New York", "is", "large"], []], document="here")
        assert context == Context("New York is large", [("New York", 0, 8), ("is", 9, 11), ("large", 12, 17)], "here")
        assert context.bracketed(1) == "New York [is] large"
        assert context.around(2, reach=3) == ("… is ", "large", "") or context.around(2, reach=3)[0].startswith("…")

    def test_lines_are_never_joined_here(self):
        assert list(iter_sentences("One. Two\nthree.", split=True)) == ["One.", "Two", "three."]
        assert list(iter_sentences("One. Two\nthree.", split=False)) == ["One. Two", "three."]


class TestNumbering:
    def test_each_sentence_between_its_bounds(self):
        words, ids = Numberer("words")("A b. A c!\n\nb")
        assert words == ["A", "b", ".", "c", "!"]
        assert ids.tolist() == [0, 3, 4, 5, 1, 0, 3, 6, 7, 1, 0, 4, 1]

    def test_lines_as_sentences(self):
        assert Numberer("whitespace", split=False)("A b. A\nc").ids.tolist() == [0, 3, 4, 3, 1, 0, 5, 1]

    @pytest.mark.parametrize("workers", [1, 2])
    def test_order_is_kept(self, workers):
        pieces = [Piece(f"word{number} and", number % 2, number) for number in range(40)]
        found = list(number_pieces(pieces, Numberer("words"), workers=workers, size=10_000_000))
        assert [piece for piece, _ in found] == pieces
        assert all(numbered.words == [f"word{piece.position}", "and"] for piece, numbered in found)

    def test_an_error_in_a_process_arrives(self):
        pieces = [Piece("Fine.", 0, 0), Piece(b"Not a text.", 0, 0)]
        with pytest.raises(TypeError, match="bytes-like"):
            list(number_pieces(pieces, Numberer("words"), workers=2, size=10_000_000))

    def test_words_are_counted_by_part_and_ranked(self):
        counter, texts = (
            WordCounter(("<S>", "</S>", "<UNK>", "given"), limit=100),
            {TRAIN: "b a b given", VALID: "c b b"},
        )
        written = []
        for part, text in texts.items():
            words, ids = Numberer("whitespace")(text)
            written.append(counter.add(words, ids, part))
        ranked = counter.ranked()
        assert ranked.words == ["<S>", "</S>", "<UNK>", "given", "b", "a", "c"]
        assert ranked.counts.tolist() == [[1, 1, 0, 1, 2, 1, 0], [1, 1, 0, 0, 2, 0, 1]]
        assert [ranked.words[number] for number in ranked.ids[written[1]]] == ["<S>", "c", "b", "b", "</S>"]
        assert ranked.forgotten == 0

    def test_beyond_the_limit_the_rarest_are_forgotten(self):
        counter, counts = WordCounter(("<S>", "</S>", "<UNK>"), limit=20), Counter()
        random = np.random.default_rng(0)
        for _ in range(50):
            text = " ".join(f"w{number}" for number in np.minimum(random.zipf(1.5, 40), 5000))
            counts.update(text.split())
            counter.add(*Numberer("whitespace")(text), TRAIN)
        ranked = counter.ranked()
        assert len(ranked.words) <= 23
        assert {word for word, _ in counts.most_common(5)} < set(ranked.words)
        assert ranked.counts.sum() == counts.total() + 100
        assert ranked.forgotten == ranked.counts[TRAIN, 2] > 0


def test_a_single_path_is_a_corpus_too(tmp_path):
    (tmp_path / "a.txt").write_text("One line. Another sentence.\n", encoding="utf-8")
    for given in (tmp_path / "a.txt", str(tmp_path / "a.txt"), [tmp_path / "a.txt"]):
        assert [context.text for context in open_corpus(given, get_tokenizer("words"))] == [
            "One line.",
            "Another sentence.",
        ]
