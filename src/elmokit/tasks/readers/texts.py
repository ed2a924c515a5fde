"""Texts and their labels, pairs of texts, and questions about them: PTB trees, TREC, fastText, tables, SQuAD's JSON."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.examples import Answer, LabelledPair, LabelledSpan, LabelledText, Place, Question
from elmokit.tasks.readers.lines import Line, decode, expecting, read_bytes, read_lines, unescape
from elmokit.tasks.readers.tables import Column, Layout, Wanted, find_columns, is_json, read_columns
from elmokit.text.packing import ending

LABELS = (
    *("label", "labels", "gold_label", "class", "category", "sentiment", "intent", "emotion", "topic", "polarity"),
    *("target", "class index", "stars", "rating", "标签", "类别", "分类", "情感", "意图", "標籤", "類別", "分類"),
)
TEXTS = (
    *("text", "text_a", "sentence", "review", "question", "content", "comment", "tweet", "message", "utterance"),
    *("query", "document", "body", "description", "title"),
    *("文本", "内容", "句子", "评论", "正文", "问题", "标题", "文字", "內容", "評論", "問題", "標題"),
)
FIRSTS = ("sentence_a", "sentence1", "premise", "text_a", "text1", "question1", "first", "句子1", "文本1", "前提")
SECONDS = ("sentence_b", "sentence2", "hypothesis", "text_b", "text2", "question2", "second", "句子2", "文本2", "假设")
JUDGMENTS = ("entailment_judgment", "entailment_label", *LABELS, "is_duplicate", "relation", "关系")
UNDECIDED = "-"  # SNLI's label of a pair that people could not agree upon
LARGEST = 1 << 30  # bytes of a SQuAD file; SQuAD itself has 30 million
_TREC_LINE = re.compile(r"(?P<coarse>[A-Z]+):(?P<fine>[A-Za-z]+) (?P<question>.*\S.*)")
_FASTTEXT_LINE = re.compile(r"__label__(?P<label>\S+)[ \t]+(?P<text>.*\S.*)")
_ID = re.compile(r'"id"\s*+:\s*+("(?:[^"\\]|\\.)*+")')


def read_labelled(
    path: Path, *, label: Column = None, text: Column = None, fine: bool = False, phrases: bool = False
) -> Iterator[LabelledText]:
    """Trees, TREC's questions and fastText's lines by how their first line looks; else tables and JSON lines.

    `label` and `text` name fields or columns; `fine` is for TREC's labels, `phrases` for all nodes of the trees.
    """
    read = _lines_reader(path)
    if read is _read_trees:
        return _read_trees(path, phrases)
    if phrases:
        raise ConfigError(f"{path}: phrases with labels of their own are in PTB trees alone, and these are none")
    if read is _read_trec:
        return _read_trec(path, fine)
    return _read_fasttext(path) if read else _read_table(path, _label_and_text(label, text))


def read_pairs(
    path: Path, *, label: Column = None, first: Column = None, second: Column = None
) -> Iterator[LabelledPair]:
    """SNLI's JSON lines, SICK's table, and what is like them; pairs without a gold label are left out."""
    return _read_pair_table(path, _pair_and_label(label, first, second))


def find_labelled(path: Path, *, label: Column = None, text: Column = None) -> Layout | None:
    """Where the columns are that `read_labelled` reads; none where the format has no columns."""
    return None if _lines_reader(path) else find_columns(path, _label_and_text(label, text))


def find_pairs(path: Path, *, label: Column = None, first: Column = None, second: Column = None) -> Layout:
    """Where the columns are that `read_pairs` reads."""
    return find_columns(path, _pair_and_label(label, first, second))


def _label_and_text(label: Column, text: Column) -> tuple[Wanted, ...]:
    return Wanted("label", LABELS, label, is_label=True), Wanted("text", TEXTS, text)


def _pair_and_label(label: Column, first: Column, second: Column) -> tuple[Wanted, ...]:
    texts = Wanted("first text", FIRSTS, first), Wanted("second text", SECONDS, second)
    return *texts, Wanted("label", JUDGMENTS, label, is_label=True)


def _lines_reader(path: Path) -> Callable[..., Iterator[LabelledText]] | None:
    """The reader of a format whose lines are no tables."""
    if is_json(path) or ending(path)[0] == ".csv":
        return None
    line = next((line.text.lstrip(" ") for line in read_lines(path, blank=False)), "")
    if line.startswith("(") and "\t" not in line:
        return _read_trees
    if _FASTTEXT_LINE.fullmatch(line):
        return _read_fasttext
    return _read_trec if _TREC_LINE.fullmatch(line) else None


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


@expecting("__label__CLASS and a text a line")
def _read_fasttext(path: Path) -> Iterator[LabelledText]:
    for line in read_lines(path, blank=False):
        found = _FASTTEXT_LINE.fullmatch(line.text)
        if found is None or found["text"].startswith("__label__"):
            raise line.place.error(f"found {line.text[:60]!r}: expected one __label__CLASS and a text")
        yield LabelledText(found["text"], found["label"], line.place)


@expecting('a label, a tab and a text a line, or {"text": "…", "label": "…"}')
def _read_table(path: Path, wanted: tuple[Wanted, ...]) -> Iterator[LabelledText]:
    for (label, text), place in read_columns(path, wanted):
        is_tokens = isinstance(text, list) and all(isinstance(token, str) for token in text)
        whole = tuple(text) if is_tokens else _string(text, "text", place)
        yield LabelledText(whole, _label(label, place), place)


@expecting("two texts and a label a line")
def _read_pair_table(path: Path, wanted: tuple[Wanted, ...]) -> Iterator[LabelledPair]:
    for (first, second, label), place in read_columns(path, wanted):
        texts = _string(first, "first text", place), _string(second, "second text", place)
        if (its_label := _label(label, place)) != UNDECIDED:
            yield LabelledPair(*texts, its_label, place)


def _string(value: Any, what: str, place: Place) -> str:
    if not isinstance(value, str):
        found = "nothing" if value is None else repr(value)[:60]
        raise place.error(f"found {found} as the {what}: expected a string")
    return value


def _label(value: Any, place: Place) -> str:
    """Labels may be numbers."""
    return str(value) if isinstance(value, int) else _string(value, "label", place)


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
