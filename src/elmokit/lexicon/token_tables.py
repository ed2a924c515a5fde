"""The surprisal of the words of a given table, such as one of reading times, word by word and in its own words."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.elmo import Elmo
from elmokit.errors import DataError
from elmokit.lexicon.predictions import WordSurprisal, surprisals
from elmokit.lexicon.tables import write_table
from elmokit.progress import SILENCE, Progress, tracked
from elmokit.text.tables import Table, read_table
from elmokit.text.tokenizers import Tokenizer


class WordBits(NamedTuple):
    """What a row gets: none of the numbers if its word has no tokens."""

    tokens: int
    """Those of the model that the word is made of."""
    forward_bits: float | None
    """The sum of theirs: - log2 p(word | words before), by the chain rule."""
    backward_bits: float | None
    forward_entropy_bits: float | None
    """Before the first of them is read."""
    backward_entropy_bits: float | None
    """Backwards, before the last of them is read."""
    known: bool
    """Whether all of them are in the vocabulary."""


def align_surprisal(
    table: Table,
    elmo: Elmo,
    *,
    tokenizer: Tokenizer | None = None,
    word: str = "word",
    sentence: str = "sentence",
    progress: Progress = SILENCE,
) -> Iterator[dict[str, Any]]:
    """Each row of a table with what the model expected of its word; rows follow each other as the words do.

    A sentence is the rows that follow each other with the same value in its column. Each word is split into the
    model's tokens by itself, so that no token is part of two words.
    """
    table.check_columns(word, sentence)
    if taken := [name for name in WordBits._fields if name in table.columns]:
        raise DataError(f"{table.name} has a column {taken[0]!r} already, which would be written: rename it")
    split = tokenizer or elmo.tokenizer
    rows = tracked(table.rows, progress, "measuring", len(table.rows), unit="words")
    sentences = [list(group) for _, group in groupby(rows, key=lambda row: row[sentence])]
    pieces = [[[token.text for token in split(row[word])] for row in group] for group in sentences]
    found = surprisals(elmo, ([token for tokens in words for token in tokens] for words in pieces))
    for group, words, measured in zip(sentences, pieces, found, strict=True):
        left = iter(measured.words)
        for row, tokens in zip(group, words, strict=True):
            yield row | _together([next(left) for _ in tokens])._asdict()


def write_aligned(path: Path | str, table: Path | str, elmo: Elmo, **options: Any) -> int:
    """Write a table, .csv or .tsv, with what `align_surprisal` finds beside its columns; the rows are counted."""
    given = read_table(table)
    columns = (*given.columns, *WordBits._fields)
    return write_table(path, align_surprisal(given, elmo, **options), columns=columns)


def _together(tokens: Sequence[WordSurprisal]) -> WordBits:
    """A word's numbers from those of its tokens."""
    if not tokens:
        return WordBits(0, None, None, None, None, known=False)
    forward, backward = sum(token.forward for token in tokens), sum(token.backward for token in tokens)
    entropies = tokens[0].forward_entropy, tokens[-1].backward_entropy
    return WordBits(len(tokens), forward, backward, *entropies, known=all(token.known for token in tokens))
