"""One word per line in columns, and a blank line between sentences: the formats of CoNLL and what is like them.

| format | what stands where |
|---|---|
| CoNLL-2003, WNUT and others | a word, other columns, its tag |
| CoNLL-U | ten columns, words numbered from 1; ranges (1-2) and empty nodes (3.1) are no words |
| CoNLL-2005 | a word, other columns, the lemmas of predicates ("-" for other words), each predicate's column of roles |
| CoNLL-2012 | documents; the word is the fourth column, roles the twelfth to the last but one, coreference the last |
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import CoreferenceDocument, Frame, Place, RoleSentence, TaggedSentence
from elmokit.tasks.readers.brackets import read_spans, unescape
from elmokit.tasks.readers.lines import Line, at_least_one, blocks, fields, read_lines
from elmokit.text.sentences import Span

DOCUMENT_START = "-DOCSTART-"
CONLLU_COLUMNS = {"upos": 3, "xpos": 4}
ENDINGS = ("conll", "conll.gz", "conll.xz", "conll.zst")
WORD, FIRST_ROLES, COREFERENCE, FEWEST_COLUMNS = 3, 11, -1, 12  # of CoNLL-2012
NO_PREDICATE = "-"
NO_MENTION = ("-", "_", "*")
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
_BEGIN = re.compile(r"#begin document \(?(?P<name>.*?)\)?(?:; part (?P<part>[0-9]+))?\s*")
_MENTION = re.compile(r"(?P<opens>\(?)(?P<cluster>[^()|]+)(?P<closes>\)?)")


class WordRow(NamedTuple):
    """The columns of a word."""

    cells: list[str]
    place: Place


def read_columns(path: Path, *, column: int = -1, words: int = 0) -> Iterator[TaggedSentence]:
    """The sentences with the tags of one column; columns count from 0, or from -1 backwards."""
    expected = "a word and its tag a line, in columns, and a blank line after each sentence"
    return at_least_one(_tagged(path, column, words), path, expected)


def _tagged(path: Path, column: int, words: int) -> Iterator[TaggedSentence]:
    width = None
    lines = (line._replace(text="") if _is_document_start(line) else line for line in read_lines(path))
    for block in blocks(lines):
        rows = [fields(line) for line in block]
        width = width or len(rows[0])
        for line, row in zip(block, rows, strict=True):
            _check_columns(line, row, width, (column, words))
        tokens, tags = (tuple(row[number] for row in rows) for number in (words, column))
        yield TaggedSentence(tokens, tags, str(path), tuple(line.place.line for line in block))


def _is_document_start(line: Line) -> bool:
    return line.text.startswith(DOCUMENT_START) and fields(line)[0] == DOCUMENT_START


def _check_columns(line: Line, row: list[str], width: int, asked: tuple[int, ...]) -> None:
    if len(row) != width:
        raise line.place.error(f"found {line.text[:60]!r}, {len(row)} columns: expected {width} as in the first line")
    if width < 2:
        raise line.place.error(f"found {line.text[:60]!r}, a single column: expected a word and its tag")
    for number in asked:
        if number not in range(-width, width):
            raise line.place.error(f"there is no column {number}: the line has {width}, counted from 0")
        if not row[number]:
            raise line.place.error(f"found {line.text[:60]!r}: column {number} is empty")


def read_conllu(path: Path, *, column: str = "upos") -> Iterator[TaggedSentence]:
    """The sentences of CoNLL-U with their universal or their treebank's own parts of speech."""
    if column not in CONLLU_COLUMNS:
        raise ConfigError(f"there is no column {column!r} of tags in CoNLL-U: choose {' or '.join(CONLLU_COLUMNS)}")
    lines = (line for line in read_lines(path) if not line.text.startswith("#"))
    sentences = (_conllu_sentence(block, path, column) for block in blocks(lines))
    return at_least_one(sentences, path, "sentences in CoNLL-U, ten columns a line")


def _conllu_sentence(block: list[Line], path: Path, column: str) -> TaggedSentence:
    rows = [WordRow(line.text.split("\t"), line.place) for line in block]
    for row in rows:
        if len(row.cells) != 10:
            raise row.place.error(
                f"found {len(row.cells)} columns: expected the ten of CoNLL-U, with tabs between them"
            )
    words = [row for row in rows if not _NO_WORD.fullmatch(row.cells[0])]
    tags = tuple(row.cells[CONLLU_COLUMNS[column]] for row in words)
    for number, (row, tag) in enumerate(zip(words, tags, strict=True), 1):
        if row.cells[0] != str(number):
            raise row.place.error(f"found the word number {row.cells[0]!r}: expected {number}")
        if tag in ("_", ""):
            raise row.place.error(f"the word {row.cells[1]!r} has no {column.upper()}: expected a tag, found '_'")
    return TaggedSentence(tuple(row.cells[1] for row in words), tags, str(path), tuple(row.place.line for row in words))


def read_roles(path: Path) -> Iterator[RoleSentence]:
    """The sentences of a file, or of all files under a folder whose names end in "conll", with predicates and roles.

    A file of CoNLL-2012 begins with `#begin document`, else it is one of CoNLL-2005.
    """
    sentences = chain.from_iterable(
        _roles_2012(file) if _is_conll2012(file) else _roles_2005(file) for file in _conll_files(path)
    )
    return at_least_one(sentences, path, "sentences in the columns of CoNLL-2005 or CoNLL-2012")


def _roles_2012(path: Path) -> Iterator[RoleSentence]:
    for rows in chain.from_iterable(sentences for _, sentences, _ in _documents(path)):
        for row in rows:
            # Roles are written with a star, coreference never is: a column is missing.
            if "*" in (found := row.cells[COREFERENCE]):
                raise row.place.error(f"found {found!r} in the last column: expected coreference after the roles")
        yield _role_sentence(rows, word=WORD, first=FIRST_ROLES, last=-1)


def _roles_2005(path: Path) -> Iterator[RoleSentence]:
    lemmas = None
    for block in blocks(read_lines(path)):
        rows = [WordRow(fields(line), line.place) for line in block]
        width = len(rows[0].cells)
        for row in rows:
            if len(row.cells) != width:
                raise row.place.error(
                    f"found {len(row.cells)} columns: expected {width} as at the head of its sentence"
                )
        lemmas = lemmas or _find_lemmas(rows)
        predicates = sum(row.cells[lemmas : lemmas + 1] != [NO_PREDICATE] for row in rows)
        if width != lemmas + 1 + predicates:
            expected = f"expected {lemmas + 1 + predicates}, for {predicates} predicates"
            raise rows[0].place.error(f"found {width} columns: {expected}")
        yield _role_sentence(rows, word=0, first=lemmas + 1, last=None)


def _find_lemmas(rows: list[WordRow]) -> int:
    """The column with as many lemmas as there are columns after it: files differ in what else they have."""
    columns = list(zip(*(row.cells for row in rows), strict=True))
    for number in range(len(columns) - 1, 0, -1):
        cells = columns[number]
        is_roles = any("*" in cell for cell in cells)
        if not is_roles and sum(cell != NO_PREDICATE for cell in cells) == len(columns) - number - 1:
            return number
    raise rows[0].place.error(
        "no column has as many predicates as there are columns after it: expected a word, the lemmas of predicates "
        f"({NO_PREDICATE!r} for other words) and a column of roles for each predicate"
    )


def _role_sentence(rows: list[WordRow], *, word: int, first: int, last: int | None) -> RoleSentence:
    places = [row.place for row in rows]
    columns = zip(*(row.cells[first:last] for row in rows), strict=True)
    frames = tuple(_frame(column, places) for column in columns)
    return RoleSentence(tuple(unescape(row.cells[word]) for row in rows), frames, places[0])


def _frame(column: Sequence[str], places: Sequence[Place]) -> Frame:
    spans = read_spans(column, places)
    predicate = next((span.start for span in spans if span.label == "V"), None)
    if predicate is None:
        raise places[0].error("a column of roles of this sentence has no predicate: expected '(V*)' in it")
    return Frame(predicate, spans)


def read_coreference(path: Path) -> Iterator[CoreferenceDocument]:
    """The documents of a file of CoNLL-2012, or of all files under a folder whose names end in "conll".

    In the last column (1 opens a mention of cluster 1, and 1) closes it.
    """
    documents = (
        CoreferenceDocument(
            name,
            tuple(tuple(unescape(row.cells[WORD]) for row in rows) for rows in sentences),
            _clusters(chain.from_iterable(sentences)),
            place,
        )
        for file in _conll_files(path)
        for name, sentences, place in _documents(file)
    )
    return at_least_one(documents, path, "documents in the columns of CoNLL-2012")


def _clusters(rows: Iterable[WordRow]) -> tuple[tuple[Span, ...], ...]:
    """All clusters of a document, in the order of their first mentions."""
    opened: dict[str, list[tuple[int, Place]]] = defaultdict(list)
    found: dict[str, set[Span]] = defaultdict(set)
    for position, (cells, place) in enumerate(rows):
        cell = cells[COREFERENCE]
        for part in () if cell in NO_MENTION else cell.split("|"):
            mention = _MENTION.fullmatch(part)
            if mention is None or not (mention["opens"] or mention["closes"]):
                raise place.error(f"found {cell!r}: expected '-', '(1', '1)' or '(1)', with '|' between several")
            cluster = mention["cluster"]
            if mention["opens"]:
                opened[cluster].append((position, place))
            if mention["closes"]:
                if not opened[cluster]:
                    raise place.error(f"unbalanced bracket: '{cluster})' closes nothing")
                found[cluster].add(Span(opened[cluster].pop()[0], position + 1))
    for cluster, left in opened.items():
        if left:
            raise left[0][1].error(f"unbalanced bracket: '({cluster}' is not closed in its document")
    return tuple(sorted(tuple(sorted(mentions)) for mentions in _merged(found.values())))


def _merged(clusters: Iterable[set[Span]]) -> list[set[Span]]:
    """Clusters that share a mention are one: OntoNotes has some mentions in two."""
    merged: list[set[Span]] = []
    for cluster in clusters:
        others = [other for other in merged if other.isdisjoint(cluster)]
        merged = [*others, cluster.union(*(other for other in merged if not other.isdisjoint(cluster)))]
    return merged


def _conll_files(path: Path) -> list[Path]:
    """The file itself, or all files under a folder whose names end in "conll"."""
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.name.endswith(ENDINGS) and file.is_file()]
    if not files:
        raise DataError(f"{path}: no file here ends in {', '.join(ENDINGS)}")
    return files


def _is_conll2012(path: Path) -> bool:
    first = next(read_lines(path, blank=False), None)
    return first is not None and _BEGIN.fullmatch(first.text) is not None


def _documents(path: Path) -> Iterator[tuple[str, list[list[WordRow]], Place]]:
    """The documents of a file of CoNLL-2012, or parts of them: their names, sentences, and where each begins."""
    begun: tuple[str, Place] | None = None
    sentences: list[list[WordRow]] = []
    for line in read_lines(path):
        if found := _BEGIN.fullmatch(line.text):
            if begun:
                raise line.place.error(f"a document begins: expected '#end document' for that of {begun[1]}")
            part = int(found["part"] or 0)
            begun, sentences = (f"{found['name']}, part {part}" if part else found["name"], line.place), [[]]
        elif begun is None:
            if line.text.strip():
                raise line.place.error(f"found {line.text[:60]!r}: expected '#begin document (name); part 000'")
        elif line.text.startswith("#end document"):
            yield begun[0], [sentence for sentence in sentences if sentence], begun[1]
            begun = None
        elif not line.text.strip():
            sentences.append([])
        else:
            row = WordRow(fields(line), line.place)
            width = len(sentences[-1][0].cells) if sentences[-1] else max(len(row.cells), FEWEST_COLUMNS)
            if len(row.cells) != width:
                raise line.place.error(f"found {len(row.cells)} columns: expected {width}")
            sentences[-1].append(row)
    if begun:
        raise begun[1].error("the document does not end: expected '#end document' before the end of the file")
