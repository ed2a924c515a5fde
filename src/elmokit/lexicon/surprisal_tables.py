"""How surprising every word of a corpus is, as a table: .csv, .tsv or .parquet, a row a word.

| column | |
|---|---|
| document | the file; of a .jsonl file the object too, by its number |
| sentence | its number in the corpus, from 0, as in the files that `elmokit embed` writes |
| position | that of the word in its sentence, from 0 |
| word | as the tokenizer gives it |
| start, end | where it stands in the text of its sentence, in characters |
| forward_bits, backward_bits | its surprisal after the words before it, and before those after it |
| known | whether it is in the vocabulary; if not, the bits are those of <UNK> |

The bounds of a sentence have no rows.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from elmokit.elmo import Elmo
from elmokit.errors import ConfigError
from elmokit.files import replacing, writing
from elmokit.lexicon.predictions import surprisals
from elmokit.progress import SILENCE, Progress, tracked
from elmokit.text.corpus import Context
from elmokit.vectors import import_pyarrow

ROWS_A_GROUP = 8192


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
    known: bool


class TableSize(NamedTuple):
    """What was written: rows, and how many of their words are not in the vocabulary."""

    words: int
    unknown: int


Write = Callable[[Sequence[Row]], None]


def write_surprisal(
    path: Path | str, corpus: Iterable[Context], elmo: Elmo, *, progress: Progress = SILENCE
) -> TableSize:
    """Write the table of a corpus in the format of the ending, in bounded memory; it appears when it is complete."""
    path = Path(path).expanduser()
    check_table(path)
    rows = iter_surprisal(tracked(corpus, progress, "measuring", unit="sentences"), elmo)
    words = unknown = 0
    with replacing(path) as new, writing(path), FORMATS[path.suffix](new) as write:
        while group := list(islice(rows, ROWS_A_GROUP)):
            write(group)
            words += len(group)
            unknown += sum(not row.known for row in group)
    return TableSize(words, unknown)


def iter_surprisal(corpus: Iterable[Context], elmo: Elmo) -> Iterator[Row]:
    """A row for each word of a corpus, in order and in bounded memory."""
    waiting: deque[Context] = deque()

    def sentences() -> Iterator[list[str]]:
        for context in corpus:
            waiting.append(context)
            yield context.words

    for number, found in enumerate(surprisals(elmo, sentences())):
        _, tokens, document = waiting.popleft()
        for position, (token, one) in enumerate(zip(tokens, found.words, strict=True)):
            bits = one.forward, one.backward
            yield Row(document, number, position, one.word, token.start, token.end, *bits, known=one.known)


def check_table(path: Path) -> None:
    """Raise at once what writing would raise in the end: a wrong ending, no permission, a missing folder or extra."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: unknown ending {path.suffix!r}: a table is written as {', '.join(FORMATS)}")
    if path.suffix == ".parquet":
        import_pyarrow()
    with replacing(path, keep=False):
        pass


@contextmanager
def _write_text(path: Path, delimiter: str) -> Iterator[Write]:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(Row._fields)

        def write(rows: Sequence[Row]) -> None:
            for *words, forward, backward, known in rows:
                writer.writerow([*words, f"{forward:.4f}", f"{backward:.4f}", "true" if known else "false"])

        yield write


@contextmanager
def _write_parquet(path: Path) -> Iterator[Write]:
    pyarrow, parquet = import_pyarrow()
    kinds = {str: pyarrow.string(), int: pyarrow.int32(), float: pyarrow.float32(), bool: pyarrow.bool_()}
    schema = pyarrow.schema({name: kinds[kind] for name, kind in Row.__annotations__.items()} | {"sentence": "int64"})
    with parquet.ParquetWriter(path, schema) as file:

        def write(rows: Sequence[Row]) -> None:
            file.write_table(pyarrow.table(list(map(list, zip(*rows, strict=True))), schema=schema))

        yield write


FORMATS: dict[str, Callable[[Path], AbstractContextManager[Write]]] = {
    ".csv": partial(_write_text, delimiter=","),
    ".tsv": partial(_write_text, delimiter="\t"),
    ".parquet": _write_parquet,
}
