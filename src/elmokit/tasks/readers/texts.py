"""Texts and their labels, pairs of texts, and questions about them: PTB trees, TREC, tables, JSON lines, SQuAD's JSON.

Tables, SICK's among them, have the names of their columns in the first line, or not; there is no quoting.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import Answer, LabelledPair, LabelledSpan, LabelledText, Place, Question
from elmokit.tasks.readers.lines import Line, decode, expecting, read_bytes, read_lines, unescape
from elmokit.text.packing import ending

LABELS = ("label", "labels", "gold_label", "class", "category")
TEXTS = ("text", "text_a", "sentence", "review", "question")
JUDGMENTS = ("entailment_judgment", "entailment_label", "gold_label", "label")
SICK_COLUMNS = (("sentence_A", "sentence1"), ("sentence_B", "sentence2"), JUDGMENTS)
UNDECIDED = "-"  # SNLI's label of a pair that people could not agree upon
LARGEST = 1 << 30  # bytes of a SQuAD file; SQuAD itself has 30 million
Names = Sequence[Sequence[str]]
_TREC_LINE = re.compile(r"(?P<coarse>[A-Z]+):(?P<fine>[A-Za-z]+) (?P<question>.*\S.*)")
_ID = re.compile(r'"id"\s*+:\s*+("(?:[^"\\]|\\.)*+")')


def read_labelled(
    path: Path, *, label: str | None = None, text: str | None = None, fine: bool = False, phrases: bool = False
) -> Iterator[LabelledText]:
    """JSON lines by the ending; trees, TREC's questions and tables by how their first line looks.

    `label` and `text` name fields or columns; `fine` is for TREC's labels, `phrases` for all nodes of the trees.
    """
    jsonl = ending(path)[0] == ".jsonl"
    first = "" if jsonl else next((line.text.lstrip(" ") for line in read_lines(path, blank=False)), "")
    if first.startswith("(") and "\t" not in first:
        return _read_trees(path, phrases)
    if phrases:
        raise ConfigError(f"{path}: phrases with labels of their own are in PTB trees alone, and these are none")
    if jsonl:
        return _read_objects(path, label or "label", text or "text")
    if _TREC_LINE.fullmatch(first):
        return _read_trec(path, fine)
    return _read_table(path, label, text)


def read_pairs(path: Path) -> Iterator[LabelledPair]:
    """SNLI's JSON lines by the ending .jsonl; else SICK's table."""
    return _read_snli(path) if ending(path)[0] == ".jsonl" else _read_sick(path)


@expecting("a tree a line: (3 (2 It) (4 works))")
def _read_trees(path: Path, phrases: bool) -> Iterator[LabelledText]:
    """The sentences with the labels of their roots, or all phrases with theirs; brackets are written out."""
    for line in read_lines(path, blank=False):
        tokens, nodes = _parse(line)
        for start, end, label in nodes if phrases else nodes[-1:]:
            yield LabelledText(tokens[start:end], label, line.place)


def _parse(line: Line) -> tuple[tuple[str, ...], list[LabelledSpan]]:
    """The leaves, and the nodes in the order in which they are closed: the root is the last."""
    tokens: list[str] = []
    nodes: list[LabelledSpan] = []
    opened: list[tuple[int, str]] = []
    expects_leaf = False
    for piece in line.text.strip(" ").split(" "):  # a leaf may hold U+00A0
        if nodes and not opened:
            raise line.place.error(f"unbalanced brackets: the tree ends before {piece!r}")
        if piece.startswith("("):
            label = piece[1:]
            if not label or "(" in label or ")" in label:
                raise line.place.error(f"found {piece!r}: expected a bracket and a label, '(3'")
            opened.append((len(tokens), label))
            expects_leaf = True
            continue
        leaf = piece.rstrip(")")
        if not expects_leaf or leaf == piece or not leaf:
            raise line.place.error(f"found {piece!r}: expected a node, '(label word)' or '(label (…) (…))'")
        expects_leaf = False
        tokens.append(unescape(leaf))
        for _ in range(len(piece) - len(leaf)):
            if not opened:
                raise line.place.error(f"unbalanced brackets: one too many is closed after {leaf!r}")
            start, label = opened.pop()
            nodes.append(LabelledSpan(start, len(tokens), label))
    if opened or not nodes:
        raise line.place.error(f"unbalanced brackets: {len(opened)} not closed at the end of the line")
    return tuple(tokens), nodes


@expecting("COARSE:fine and a question a line")
def _read_trec(path: Path, fine: bool) -> Iterator[LabelledText]:
    for line in read_lines(path, blank=False):
        found = _TREC_LINE.fullmatch(line.text)
        if found is None:
            raise line.place.error(f"found {line.text[:60]!r}: expected COARSE:fine and a question")
        label = f"{found['coarse']}:{found['fine']}" if fine else found["coarse"]
        yield LabelledText(tuple(token for token in found["question"].split(" ") if token), label, line.place)


@expecting("a label, a tab and a text a line")
def _read_table(path: Path, label: str | None, text: str | None) -> Iterator[LabelledText]:
    """Columns by their names, or by their numbers from 0 where there are no names.

    If not said otherwise, by the names that are usual, and else the first column and the second.
    """
    names = ((label,) if label else LABELS, (text,) if text else TEXTS)
    for (its_label, its_text), place in _table_rows(path, names, unnamed=(label or "0", text or "1")):
        yield LabelledText(its_text, its_label, place)


@expecting("two sentences and a label a line")
def _read_sick(path: Path) -> Iterator[LabelledPair]:
    for (first, second, label), place in _table_rows(path, SICK_COLUMNS):
        yield LabelledPair(first, second, label, place)


def _table_rows(path: Path, names: Names, unnamed: Sequence[str] = ()) -> Iterator[tuple[list[str], Place]]:
    """The columns that have one of the names each; without names, those whose numbers are given."""
    header: list[str] = []
    for line in read_lines(path, blank=False):
        if not header:
            header = line.text.split("\t")
            columns, is_named = _find_columns(line, header, names, unnamed)
            if is_named:
                continue
        cells = line.text.split("\t", len(header) - 1)  # a text in the last column may have tabs of its own
        if len(cells) < len(header):
            expected = f"expected {len(header)} as in the first line, with tabs between"
            raise line.place.error(f"found {len(cells)} columns: {expected}")
        chosen = [cells[column] for column in columns]
        if not all(cell.strip() for cell in chosen):
            raise line.place.error("an empty column: expected something in each")
        yield chosen, line.place


def _find_columns(first: Line, header: list[str], names: Names, unnamed: Sequence[str]) -> tuple[list[int], bool]:
    """The numbers of the columns, and whether the first line names them."""
    folded = [name.strip().lower() for name in header]
    found = [[folded.index(name.lower()) for name in choices if name.lower() in folded] for choices in names]
    if all(found):
        return [numbers[0] for numbers in found], True
    is_data = all(folded[numbers[0]].isdigit() for numbers in found if numbers)  # a class may look like a number
    if not is_data or not unnamed or not set(unnamed) <= {str(number) for number in range(len(header))}:
        expected = ", ".join(" or ".join(map(repr, choices)) for choices in names)
        raise first.place.error(f"found {header}: expected tab-separated columns, among them {expected}")
    return [int(number) for number in unnamed], False


@expecting('an object a line: {"text": "…", "label": "…"}')
def _read_objects(path: Path, label: str, text: str) -> Iterator[LabelledText]:
    for row, place in _objects(path):
        found = row.get(text)
        is_tokens = isinstance(found, list) and all(isinstance(token, str) for token in found)
        whole = tuple(found or ()) if is_tokens else _string(row, text, place)
        yield LabelledText(whole, _label(row, label, place), place)


@expecting("an object a line with gold_label, sentence1 and sentence2")
def _read_snli(path: Path) -> Iterator[LabelledPair]:
    """SNLI and MultiNLI; pairs without a gold label are left out."""
    for row, place in _objects(path):
        first, second = (_string(row, name, place) for name in ("sentence1", "sentence2"))
        if (label := _label(row, "gold_label", place)) != UNDECIDED:
            yield LabelledPair(first, second, label, place)


def _objects(path: Path) -> Iterator[tuple[dict[str, Any], Place]]:
    for line in read_lines(path, blank=False):
        try:
            yield msgspec.json.decode(line.text, type=dict[str, Any]), line.place
        except (msgspec.DecodeError, RecursionError) as error:
            raise line.place.error(f"found no JSON object ({error}): expected one per line") from None


def _string(row: dict[str, Any], name: str, place: Place) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        found = f"{name} = {value!r}" if name in row else f"the fields {', '.join(map(repr, row)) or 'none'}"
        raise place.error(f"found {found}: expected a string in the field {name!r}")
    return value


def _label(row: dict[str, Any], name: str, place: Place) -> str:
    """Labels may be numbers."""
    value = row.get(name)
    return str(value) if isinstance(value, int) else _string(row, name, place)


class _Answer(msgspec.Struct):
    text: str
    answer_start: int


class _Question(msgspec.Struct):
    id: str
    question: str
    answers: list[_Answer]


class _Paragraph(msgspec.Struct):
    context: str
    qas: list[_Question]


class _Article(msgspec.Struct):
    paragraphs: list[_Paragraph]


class _File(msgspec.Struct):
    data: list[_Article]


@expecting("questions in the JSON of SQuAD 1.1")
def read_questions(path: Path) -> Iterator[Question]:
    """SQuAD 1.1: the questions, each with its context; every answer is checked to stand where it is said to."""
    content = next(read_bytes(path, LARGEST), b"")
    if len(content) == LARGEST:
        raise DataError(f"{path}: larger than {LARGEST >> 30} GB: divide it into several files")
    text = decode(content, Place(str(path), 1), "utf-8-sig")
    try:
        articles = msgspec.json.decode(text, type=_File).data
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(f"{path}: not the JSON of SQuAD 1.1: {error}") from None
    ids, line = _id_lines(text), 1
    for paragraph in (paragraph for article in articles for paragraph in article.paragraphs):
        for question in paragraph.qas:
            line = next((number for name, number in ids if name == question.id), line)
            yield _question(question, paragraph.context, Place(str(path), line, f"question {question.id!r}"))


def _id_lines(text: str) -> Iterator[tuple[str, int]]:
    """Every "id" of a file and its line, read once from end to end; a quote within a string cannot look like one."""
    line, reached = 1, 0
    for found in _ID.finditer(text):
        line, reached = line + text.count("\n", reached, found.start(1)), found.start(1)
        yield json.loads(found[1]), line


def _question(question: _Question, context: str, place: Place) -> Question:
    if not question.answers:
        raise place.error("it has no answers: SQuAD 1.1 has at least one for each question")
    for start, text in ((answer.answer_start, answer.text) for answer in question.answers):
        found = context[start : start + len(text)] if start >= 0 else ""
        if not text or found != text:
            raise place.error(f"answer_start is {start}, where the context has {found!r}: expected the answer {text!r}")
    answers = tuple(Answer(answer.text, answer.answer_start) for answer in question.answers)
    return Question(question.id, question.question, context, answers, place)
