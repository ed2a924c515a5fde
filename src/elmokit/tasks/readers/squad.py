"""SQuAD 1.1: articles, paragraphs, questions and where their answers begin, counted in characters."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from elmokit.errors import DataError
from elmokit.tasks.examples import Answer, Place, Question
from elmokit.tasks.readers.lines import at_least_one, decode, open_unpacked, read_bytes

_ID = re.compile(r'"id"\s*+:\s*+("(?:[^"\\]|\\.)*+")')
LARGEST = 1 << 30  # bytes; SQuAD itself has 30 million


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
    """The questions, each with its context; every answer is checked to stand where it is said to."""
    return at_least_one(_questions(path), path, "questions in the JSON of SQuAD 1.1")


def _questions(path: Path) -> Iterator[Question]:
    text = _read(path)
    ids, line = _id_lines(text), 1
    for article in _decode(text, path).data:
        for paragraph in article.paragraphs:
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
    answers = tuple(_answer(answer, context, place) for answer in question.answers)
    return Question(question.id, question.question, context, answers, place)


def _answer(answer: _Answer, context: str, place: Place) -> Answer:
    start, text = answer.answer_start, answer.text
    found = context[start : start + len(text)] if start >= 0 else ""
    if not text or found != text:
        raise place.error(f"answer_start is {start}, where the context has {found!r}: expected the answer {text!r}")
    return Answer(text, start)


def _read(path: Path) -> str:
    with open_unpacked(path) as file:
        content = read_bytes(file, path, LARGEST)
    if len(content) == LARGEST:
        raise DataError(f"{path}: larger than {LARGEST >> 30} GB: divide it into several files")
    return decode(content, Place(str(path), 1), "utf-8-sig")


def _decode(text: str, path: Path) -> _File:
    try:
        return msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(f"{path}: not the JSON of SQuAD 1.1: {error}") from None
