"""A text to study: read in a stream and as often as it takes, sentence by sentence."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from elmokit.errors import DataError
from elmokit.pretrain.cutting import LONGEST_SENTENCE
from elmokit.pretrain.documents import ending, find_files, iter_documents
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import Token, Tokenizer

SPELLINGS_COMPARED = 50_000  # the most frequent words; comparing more would take seconds
LEAST_LIKENESS = 0.5  # two Chinese words of two characters that share one are as much alike


class Context(NamedTuple):
    """A sentence, its tokens and the document it stands in."""

    text: str
    """As it was written."""
    tokens: Sequence[Token]
    """With their places in the text."""
    document: str
    """The file; of a .jsonl file the object too, by its number."""

    @property
    def words(self) -> list[str]:
        """The tokens as a model reads them."""
        return [token.text for token in self.tokens]

    def around(self, position: int, *, reach: int | None = None) -> tuple[str, str, str]:
        """The text before a token, the token, and the text after it; at most so many characters on either side."""
        token = self.tokens[position]
        before, after = self.text[: token.start], self.text[token.end :]
        if reach is not None and len(before) > reach:
            before = f"…{before[-reach:]}"
        if reach is not None and len(after) > reach:
            after = f"{after[:reach]}…"
        return before, token.text, after

    def marked(self, position: int, *, reach: int | None = None) -> str:
        """The sentence with brackets around one token."""
        before, token, after = self.around(position, reach=reach)
        return f"{before}[{token}]{after}"


class Survey(NamedTuple):
    """What one reading of a corpus tells."""

    counts: Counter[str]
    """How often each word occurs."""
    sentences: int
    """Sentences that have any words."""

    def check_word(self, word: str) -> None:
        """Refuse a word that the corpus lacks, and offer near spellings."""
        if word in self.counts:
            return
        known = [known for known, _ in self.counts.most_common(SPELLINGS_COMPARED)]
        near = get_close_matches(word, known, n=5, cutoff=LEAST_LIKENESS)
        if near:
            raise DataError(f"the corpus has no word {word!r}; near spellings that it has: {', '.join(near)}")
        raise DataError(f"the corpus has no word {word!r}, nor one spelled nearly so")


@dataclass(frozen=True)
class TextCorpus:
    """Text files cut into sentences and tokens anew at each reading."""

    files: tuple[Path, ...]
    tokenizer: Tokenizer
    split: bool = True
    """Each line is a paragraph to be split into sentences; else a sentence."""

    def __iter__(self) -> Iterator[Context]:
        for file in self.files:
            for number, document in enumerate(iter_documents([file]), 1):
                name = f"{file}:{number}" if ending(file)[0] == ".jsonl" else str(file)
                for line in document.text.split("\n"):
                    yield from cut_line(line, self.tokenizer, split=self.split, document=name)


def cut_line(line: str, tokenizer: Tokenizer, *, split: bool, document: str = "") -> Iterator[Context]:
    """The sentences of a paragraph, or the line as one, without those that have no words."""
    for start, end in split_sentences(line) if split else [(0, len(line))]:
        sentence = line[start:end]
        tokens = tokenizer(sentence)
        for first in range(0, len(tokens), LONGEST_SENTENCE):
            yield Context(sentence, tokens[first : first + LONGEST_SENTENCE], document)


def open_corpus(paths: Iterable[Path], tokenizer: Tokenizer, *, split: bool = True) -> TextCorpus:
    """The corpus in files (.txt, .jsonl, plain or .gz or .xz) or folders of them."""
    return TextCorpus(tuple(find_files(paths)), tokenizer, split)


def make_corpus(sentences: Iterable[Sequence[str]], *, document: str = "") -> list[Context]:
    """A corpus of sentences that are cut into tokens already."""
    return [_context(tokens, document) for tokens in sentences if tokens]


def survey(corpus: Iterable[Context]) -> Survey:
    """Count a corpus; its words' counts are all that is kept."""
    counts: Counter[str] = Counter()
    sentences = 0
    for context in corpus:
        counts.update(context.words)
        sentences += 1
    if not sentences:
        raise DataError("the corpus holds no words")
    return Survey(counts, sentences)


def is_wordlike(token: str) -> bool:
    """Whether a token has a letter or digit: punctuation is no word to study."""
    return any(character.isalnum() for character in token)


def _context(words: Sequence[str], document: str) -> Context:
    tokens, end = [], -1
    for word in words:
        start, end = end + 1, end + 1 + len(word)
        tokens.append(Token(word, start, end))
    return Context(" ".join(words), tokens, document)
