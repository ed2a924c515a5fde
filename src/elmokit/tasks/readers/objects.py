"""JSON: one object per line, and the whole files of SQuAD."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from elmokit.errors import DataError
from elmokit.tasks.examples import Answer, LabelledPair, LabelledText, Place, Question
from elmokit.tasks.readers.lines import at_least_one, decode, open_unpacked, read_bytes, read_lines

UNDECIDED = "-"  # SNLI's label of a pair that people could not agree upon
LARGEST = 1 << 30  # bytes of a SQuAD file; SQuAD itself has 30 million
_ID = re.compile(r'"id"\s*+:\s*+("(?:[^"\\]|\\.)*+")')


def read_objects(path: Path, *, label: str | None = None, text: str | None = None) -> Iterator[LabelledText]:
    """Texts, or lists of tokens, and their labels."""
    examples = (
        LabelledText(_text(row, text or "text", place), _label(row, label or "label", place), place)
        for row, place in _rows(path)
    )
    return at_least_one(examples, path, 'an object a line: {"text": "…", "label": "…"}')


def read_snli(path: Path) -> Iterator[LabelledPair]:
    """SNLI and MultiNLI; pairs without a gold label are left out."""
    examples = (
        LabelledPair(
            _string(row, "sentence1", place), _string(row, "sentence2", place), _label(row, "gold_label", place), place
        )
        for row, place in _rows(path)
    )
    decided = (example for example in examples if example.label != UNDECIDED)
    return at_least_one(decided, path, "an object a line with gold_label, sentence1 and sentence2")


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], Place]]:
    for line in read_lines(path, blank=False):
        try:
            yield msgspec.json.decode(line.text, type=dict[str, Any]), line.place
        except (msgspec.DecodeError, RecursionError) as error:
            raise line.place.error(f"found no JSON object ({error}): expected one a line") from None


def _string(row: dict[str, Any], name: str, place: Place) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        found = f"{name} = {value!r}" if name in row else f"the fields {', '.join(map(repr, row)) or 'none'}"
        raise place.error(f"found {found}: expected a string in the field {name!r}")
    return value


def _text(row: dict[str, Any], name: str, place: Place) -> str | tuple[str, ...]:
    value = row.get(name)
    if isinstance(value, list) and all(isinstance(token, str) for token in value):
        return tuple(value)
    return _string(row, name, place)


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


def read_questions(path: Path) -> Iterator[Question]:
    """SQuAD 1.1: the questions, each with its context; every answer is checked to stand where it is said to."""
    return at_least_one(_questions(path), path, "questions in the JSON of SQuAD 1.1")


def _questions(path: Path) -> Iterator[Question]:
    with open_unpacked(path) as file:
        content = read_bytes(file, path, LARGEST)
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
