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
from elmokit.tasks.examples import CoreferenceDocument, Frame, LabelledSpan, Place, RoleSentence, TaggedSentence
from elmokit.tasks.readers.lines import Line, blocks, expecting, fields, read_lines, unescape
from elmokit.text.packing import ending
from elmokit.text.sentences import Span

CONLLU_COLUMNS = {"upos": 3, "xpos": 4}
ENDINGS = ("conll", "conll.gz", "conll.xz", "conll.zst")
WORD, FIRST_ROLES, COREFERENCE, FEWEST_COLUMNS = 3, 11, -1, 12  # of CoNLL-2012
NO_PREDICATE = "-"
NO_MENTION = ("-", "_", "*")
_DOCUMENT_START = re.compile(r"-DOCSTART-(?:[ \t].*)?")
_CELL = re.compile(r"(?:\((?P<label>[^()*]+))?\*(?P<closed>\)?)")
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
_BEGIN = re.compile(r"#begin document \(?(?P<name>.*?)\)?(?:; part (?P<part>[0-9]+))?\s*")
_MENTION = re.compile(r"(?P<opens>\(?)(?P<cluster>[^()|]+)(?P<closes>\)?)")


class WordRow(NamedTuple):
    """The columns of a word."""

    cells: list[str]
    place: Place


def read_tagged(path: Path, *, column: str | int | None = None, words: int = 0) -> Iterator[TaggedSentence]:
    """CoNLL-U by the ending .conllu, with "upos" or "xpos"; else columns, with the number of the one that has the tags.

    If not said otherwise, they are universal parts of speech, or what the last column has. Columns count from 0, or
    from -1 backwards.
    """
    if ending(path)[0] == ".conllu":
        name = "upos" if column is None else str(column)
        if name not in CONLLU_COLUMNS:
            raise ConfigError(f"there is no column {name!r} of tags in CoNLL-U: choose {' or '.join(CONLLU_COLUMNS)}")
        return _read_conllu(path, name)
    try:
        number = -1 if column is None else int(column)
    except ValueError:
        message = f"column {column!r} is no number: {path} is not in CoNLL-U, its columns have no names"
        raise ConfigError(message) from None
    return _read_columns(path, number, words)


@expecting("a word and its tag a line, in columns, and a blank line after each sentence")
def _read_columns(path: Path, column: int, words: int) -> Iterator[TaggedSentence]:
    width = None
    lines = (line._replace(text="") if _DOCUMENT_START.fullmatch(line.text) else line for line in read_lines(path))
    for block in blocks(lines):
        rows = [fields(line) for line in block]
        width = width or len(rows[0])
        for line, row in zip(block, rows, strict=True):
            _check_columns(line, row, width, (column, words))
        tokens, tags = (tuple(row[number] for row in rows) for number in (words, column))
        yield TaggedSentence(tokens, tags, str(path), tuple(line.place.line for line in block))


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


@expecting("sentences in CoNLL-U, ten columns a line")
def _read_conllu(path: Path, column: str) -> Iterator[TaggedSentence]:
    for block in blocks(line for line in read_lines(path) if not line.text.startswith("#")):
        rows = [WordRow(line.text.split("\t"), line.place) for line in block]
        for cells, place in rows:
            if len(cells) != 10:
                raise place.error(f"found {len(cells)} columns: expected the ten of CoNLL-U, with tabs between them")
        words = [row for row in rows if not _NO_WORD.fullmatch(row.cells[0])]
        tags = tuple(row.cells[CONLLU_COLUMNS[column]] for row in words)
        for number, ((cells, place), tag) in enumerate(zip(words, tags, strict=True), 1):
            if cells[0] != str(number):
                raise place.error(f"found the word number {cells[0]!r}: expected {number}")
            if tag in ("_", ""):
                raise place.error(f"the word {cells[1]!r} has no {column.upper()}: expected a tag, found '_'")
        lines = tuple(row.place.line for row in words)
        yield TaggedSentence(tuple(row.cells[1] for row in words), tags, str(path), lines)


@expecting("sentences in the columns of CoNLL-2005 or CoNLL-2012")
def read_roles(path: Path) -> Iterator[RoleSentence]:
    """The sentences of a file, or of all files under a folder whose names end in "conll", with predicates and roles.

    A file of CoNLL-2012 begins with `#begin document`, else it is one of CoNLL-2005.
    """
    for file in _conll_files(path):
        first = next(read_lines(file, blank=False), None)
        yield from _roles_2012(file) if first and _BEGIN.fullmatch(first.text) else _roles_2005(file)


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
        for cells, place in rows:
            if len(cells) != width:
                raise place.error(f"found {len(cells)} columns: expected {width} as at the head of its sentence")
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
    frames = []
    for column in zip(*(row.cells[first:last] for row in rows), strict=True):
        spans = _read_spans(column, places)
        predicate = next((span.start for span in spans if span.label == "V"), None)
        if predicate is None:
            raise places[0].error("a column of roles of this sentence has no predicate: expected '(V*)' in it")
        frames.append(Frame(predicate, spans))
    return RoleSentence(tuple(unescape(row.cells[word]) for row in rows), tuple(frames), places[0])


def _read_spans(cells: Sequence[str], places: Sequence[Place]) -> tuple[LabelledSpan, ...]:
    """The spans of a column, (A0*, *, *), one cell per token; they follow one another."""
    spans: list[LabelledSpan] = []
    opened: LabelledSpan | None = None
    for position, (cell, place) in enumerate(zip(cells, places, strict=True)):
        found = _CELL.fullmatch(cell)
        if found is None:
            raise place.error(f"found {cell!r}: expected '*', '(A0*', '*)' or '(A0*)', for spans may not overlap")
        if found["label"]:
            if opened:
                raise place.error(f"found {cell!r} within {opened.label}: spans of a column may not overlap")
            opened = LabelledSpan(position, position, found["label"])
        if found["closed"]:
            if opened is None:
                raise place.error(f"unbalanced bracket: {cell!r} closes nothing")
            spans.append(opened._replace(end=position + 1))
            opened = None
    if opened:
        raise places[opened.start].error(f"unbalanced bracket: '({opened.label}*' is not closed in its sentence")
    return tuple(spans)


@expecting("documents in the columns of CoNLL-2012")
def read_coreference(path: Path) -> Iterator[CoreferenceDocument]:
    """The documents of a file of CoNLL-2012, or of all files under a folder whose names end in "conll".

    In the last column (1 opens a mention of cluster 1, and 1) closes it.
    """
    for name, sentences, place in chain.from_iterable(map(_documents, _conll_files(path))):
        tokens = tuple(tuple(unescape(row.cells[WORD]) for row in rows) for rows in sentences)
        yield CoreferenceDocument(name, tokens, _clusters(chain.from_iterable(sentences)), place)


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
    merged: list[set[Span]] = []  # clusters that share a mention are one: OntoNotes has some mentions in two
    for mentions in found.values():
        others = [other for other in merged if other.isdisjoint(mentions)]
        merged = [*others, mentions.union(*(other for other in merged if not other.isdisjoint(mentions)))]
    return tuple(sorted(tuple(sorted(mentions)) for mentions in merged))


def _conll_files(path: Path) -> list[Path]:
    """The file itself, or all files under a folder whose names end in "conll"."""
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.name.endswith(ENDINGS) and file.is_file()]
    if not files:
        raise DataError(f"{path}: no file here ends in {', '.join(ENDINGS)}")
    return files


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
