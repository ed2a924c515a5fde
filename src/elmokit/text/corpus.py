"""Documents to sentences and tokens: the one way in which every command reads running text."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from elmokit.config import Tokenization
from elmokit.shards import WHOLE, Shard
from elmokit.text.documents import Paths, TextFile, iter_documents, open_texts
from elmokit.text.encodings import UTF8
from elmokit.text.languages import AUTO, check_language
from elmokit.text.layout import Lines
from elmokit.text.metadata import Metadata, read_metadata
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import Token, Tokenizer, get_tokenizer, name_for, with_settings

logger = logging.getLogger(__name__)

LONGEST_SENTENCE = 10_000  # tokens; for text without any full stop
FILES_LOOKED_AT = 20  # to see what a corpus is written in


class Context(NamedTuple):
    """A sentence, its tokens and the document it stands in."""

    text: str
    """As it was written."""
    tokens: Sequence[Token]
    """With their indices in the text."""
    document: str
    """The file; of a .jsonl file the object too, by its number."""
    metadata: dict[str, str] = {}  # noqa: RUF012 (a named tuple's default, never written to)
    """What a table tells of the document: its date, its author and the like."""

    @property
    def words(self) -> list[str]:
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

    def bracketed(self, position: int, *, reach: int | None = None) -> str:
        """The sentence with brackets around one token."""
        before, token, after = self.around(position, reach=reach)
        return f"{before}[{token}]{after}"


@dataclass(frozen=True)
class TextCorpus:
    """Text files read into sentences and tokens anew at each iteration."""

    files: tuple[TextFile, ...]
    tokenizer: Tokenizer
    language: str = AUTO
    """Decides where sentences end; auto sees each paragraph's script."""
    keep_empty: bool = False
    """Whether sentences without tokens, such as blank lines where each line is a sentence, are sentences too."""
    metadata: Metadata | None = None
    only: frozenset[str] | None = None
    """The documents that are read, by name; all unless given."""

    @property
    def name(self) -> str:
        """The corpus as messages call it."""
        return self.files[0].name if len(self.files) == 1 else f"{len(self.files)} files"

    def __iter__(self) -> Iterator[Context]:
        return (context for _, context in self.numbered())

    def numbered(self, shard: Shard = WHOLE) -> Iterator[tuple[int, Context]]:
        """The sentences of a shard, or of all, each with the index of its document among all."""
        documents = ((file, document) for file in self.files for document in iter_documents([file]))
        for index, (file, document) in enumerate(documents):
            if not shard.takes(index) or (self.only is not None and document.name not in self.only):
                continue
            fields = self.metadata.of(document.name) if self.metadata else {}
            for sentence in iter_sentences(document.text, split=file.lines != "sentences", language=self.language):
                tokens = self.tokenizer(sentence)
                for first in range(0, len(tokens) or self.keep_empty, LONGEST_SENTENCE):
                    yield index, Context(sentence, tokens[first : first + LONGEST_SENTENCE], document.name, fields)


def open_corpus(
    paths: Paths,
    tokenizer: Tokenizer | Tokenization,
    *,
    lines: Lines = "auto",
    field: str = "text",
    encoding: str = UTF8,
    language: str = AUTO,
    repeatable: bool = True,
    keep_empty: bool = False,
    metadata: Metadata | Path | str | None = None,
) -> TextCorpus:
    """The corpus in files (.txt, .jsonl, .fasta, plain or .gz, .xz, .zst), folders of them, or standard input, "-".

    `metadata` is a .csv or .tsv table with a column `document`; what else it tells of each goes with its sentences.
    """
    check_language(language)
    files = open_texts(paths, lines=lines, field=field, encoding=encoding, repeatable=repeatable)
    if not callable(tokenizer):
        tokenizer = get_tokenizer(tokenizer_for(files, tokenizer))
    if isinstance(metadata, Path | str):
        metadata = read_metadata(metadata)
    if metadata is not None:
        metadata.check(files)
    return TextCorpus(tuple(files), tokenizer, language, keep_empty, metadata)


def tokenizer_for(files: Sequence[TextFile], tokenizer: Tokenization) -> Tokenization:
    """The tokenizer; "auto" is decided by what the texts begin with, and the logger is told of Chinese."""
    if with_settings(tokenizer).name != "auto":
        return tokenizer
    name = name_for(beginning(files))
    if name == "jieba":
        logger.info("mostly Han characters: jieba finds the words; for names that it lacks, --dictionary or --hmm")
    return name if isinstance(tokenizer, str) else with_settings(tokenizer, name=name)


def beginning(files: Sequence[TextFile]) -> str:
    """What the texts begin with, or some of them."""
    return "\n".join(file.head() for file in files[:: 1 + len(files) // FILES_LOOKED_AT])


def iter_sentences(text: str, *, split: bool, language: str = AUTO) -> Iterator[str]:
    """The sentences of a document's text, which has one paragraph per line to be split, or one sentence."""
    for line in text.split("\n"):
        yield from (line[start:end] for start, end in split_sentences(line, language)) if split else [line]


def make_corpus(sentences: Iterable[Sequence[str]], *, document: str = "") -> list[Context]:
    """A corpus of sentences that are tokens already."""
    corpus = []
    for words in filter(None, sentences):
        starts = accumulate((len(word) + 1 for word in words), initial=0)
        tokens = [Token(word, start, start + len(word)) for word, start in zip(words, starts, strict=False)]
        corpus.append(Context(" ".join(words), tokens, document))
    return corpus
