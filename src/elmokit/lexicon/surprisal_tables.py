"""How surprising every word of a corpus is, as a table: .csv, .tsv or .parquet, a row a word.

| column | |
|---|---|
| document | the file; of a .jsonl file the object too, by its number |
| sentence | its number in the corpus, from 0, as in the files that `elmokit embed` writes |
| position | that of the word in its sentence, from 0 |
| word | as the tokenizer gives it |
| start, end | where it stands in the text of its sentence, in characters |
| forward_bits, backward_bits | its surprisal after the words before it, and before those after it |
| forward_entropy_bits, backward_entropy_bits | the entropy of what could stand there, judged by the same words |
| known | whether it is in the vocabulary; if not, the bits are those of <UNK> |

The columns of a metadata table come after these. The bounds of a sentence have no rows.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.elmo import Elmo
from elmokit.lexicon.predictions import surprisals
from elmokit.lexicon.tables import table_row, write_table
from elmokit.progress import SILENCE, Progress, tracked
from elmokit.text.corpus import Context


class Row(NamedTuple):
    """A word of a corpus; the columns are described above."""

    document: str
    sentence: int
    position: int
    word: str
    start: int
    end: int
    forward_bits: float
    backward_bits: float
    forward_entropy_bits: float
    backward_entropy_bits: float
    known: bool
    metadata: dict[str, str] = {}  # noqa: RUF012 (a named tuple's default, never written to)


class TableSize(NamedTuple):
    """What was written: rows, and how many of their words are not in the vocabulary."""

    words: int
    unknown: int


def write_surprisal(
    path: Path | str, corpus: Iterable[Context], elmo: Elmo, *, progress: Progress = SILENCE
) -> TableSize:
    """Write the table of a corpus in the format of the ending, in bounded memory; it appears when it is complete."""
    known: Counter[bool] = Counter()

    def rows() -> Iterator[dict[str, Any]]:
        for row in iter_surprisal(tracked(corpus, progress, "measuring", unit="sentences"), elmo):
            known[row.known] += 1
            yield table_row(row)

    return TableSize(write_table(path, rows(), columns=Row._fields[:-1]), known[False])


def iter_surprisal(corpus: Iterable[Context], elmo: Elmo) -> Iterator[Row]:
    """A row for each word of a corpus, in order and in bounded memory."""
    waiting: deque[Context] = deque()

    def sentences() -> Iterator[list[str]]:
        for context in corpus:
            waiting.append(context)
            yield context.words

    for number, found in enumerate(surprisals(elmo, sentences())):
        _, tokens, document, fields = waiting.popleft()
        for position, (token, one) in enumerate(zip(tokens, found.words, strict=True)):
            where = document, number, position, one.word, token.start, token.end
            entropies = one.forward_entropy, one.backward_entropy
            yield Row(*where, one.forward, one.backward, *entropies, known=one.known, metadata=fields)
