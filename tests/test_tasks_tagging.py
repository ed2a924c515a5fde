"""Tags: the schemes they come in, and tags that mark no span."""

import pytest

from elmokit.tasks import tagging
from elmokit.tasks.examples import Place, TaggedSentence


def tagged(tags: str) -> TaggedSentence:
    return TaggedSentence(tuple("abcdefgh"[: len(tags.split())]), tuple(tags.split()), "some.conll", ())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("I-PER I-PER O I-LOC", "B-PER I-PER O B-LOC"),  # as CoNLL-2003 came: B- only after one of the same kind
        ("I-PER B-PER I-LOC", "B-PER B-PER B-LOC"),
        ("B-PER I-PER O B-LOC", "B-PER I-PER O B-LOC"),
        ("B-PER E-PER O S-LOC", "B-PER E-PER O S-LOC"),
        ("NN I-PER", "NN I-PER"),
    ],
)
def test_spans_begin_with_b(written, read, tmp_path):
    path = tmp_path / "some.conll"
    path.write_text("".join(f"word {tag}\n" for tag in written.split()), encoding="utf-8")
    [sentence] = tagging.read(path, tagging.Settings())
    assert sentence.tags == tuple(read.split())
    assert sentence.place(1) == Place(str(path), 2)


def test_a_predicted_tag_that_marks_no_span_is_outside_of_all():
    scores = tagging.score([tagged("B-PER O B-LOC")], [tagged("B-PER -X- -X-")])
    assert scores["precision"] == 1
    assert scores["recall"] == 0.5
    assert scores["accuracy"] == pytest.approx(1 / 3)


def test_tags_made_in_python_have_no_lines():
    assert list(tagging.TASK.labels(tagged("B-PER O"))) == [
        ("B-PER", Place("some.conll", 0)),
        ("O", Place("some.conll", 0)),
    ]
