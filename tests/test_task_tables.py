"""Which columns of a table are the texts and the labels: by names, by numbers, by what they hold."""

import json
from collections import Counter

import pytest

from elmokit.errors import DataError
from elmokit.tasks.readers import find_labelled, find_pairs, read_labelled, read_pairs

LABELLED = [
    ("a fine and moving film", "good"),
    ("dull, and far too long", "bad"),
    ("nothing of note in it", "so-so"),
    ("I would see it again", "good"),
    ("they should have stayed at home", "bad"),
    ("worth the ticket", "good"),
    ("neither here nor there", "so-so"),
    ("a waste of an evening", "bad"),
    ("the best of the year", "good"),
    ("it made me laugh", "good"),
    ("my feet fell asleep", "bad"),
    ("on the whole, well", "so-so"),
]
PAIRS = [
    ("a man sleeps in the park", "nobody is awake there", "neutral"),
    ("a dog runs", "an animal moves", "entailment"),
    ("two women sing", "nobody sings", "contradiction"),
    ("a boy eats soup", "a child eats", "entailment"),
    ("it rains", "it is dry outside", "contradiction"),
    ("she reads a book", "it is a novel", "neutral"),
]


@pytest.fixture
def write(tmp_path):
    def write_file(name, *rows, header=(), between="\t"):
        path = tmp_path / name
        lines = [header, *rows] if header else rows
        path.write_text("".join(between.join(map(str, row)) + "\n" for row in lines), encoding="utf-8")
        return path

    return write_file


def found(path, **columns):
    return [(one.text, one.label) for one in read_labelled(path, **columns)]


class TestWithoutNames:
    def test_the_label_first(self, write):
        assert found(write("a.tsv", *((label, text) for text, label in LABELLED))) == LABELLED

    def test_the_text_first(self, write):
        assert found(write("a.tsv", *LABELLED)) == LABELLED

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_few_lines_are_enough(self, write, count):
        assert found(write("a.tsv", *LABELLED[:count])) == LABELLED[:count]

    @pytest.mark.parametrize("place", range(4))
    def test_beside_numbers_and_what_is_always_the_same(self, write, place):
        rows = [[f"item {number}", "web", text] for number, (text, _) in enumerate(LABELLED)]
        for row, (_, label) in zip(rows, LABELLED, strict=True):
            row.insert(place, label)
        assert found(write("a.tsv", *rows)) == LABELLED

    def test_all_of_one_label(self, write):
        good = [(text, label) for text, label in LABELLED if label == "good"]
        assert found(write("a.tsv", *good)) == good

    def test_a_label_that_looks_like_a_name(self, write):
        """Of the usual names for a column, "question" is one; here it is a class."""
        rows = [(text, {"good": "question", "bad": "title", "so-so": "comment"}[label]) for text, label in LABELLED]
        assert found(write("a.tsv", *rows)) == rows
        assert found(write("a.tsv", *((label, text) for text, label in rows))) == rows

    def test_chinese(self, write):
        rows = [("这部电影很感人", "好评"), ("又长又闷", "差评"), ("下次还会来看", "好评"), ("不值票价", "差评")]
        assert found(write("a.tsv", *rows)) == rows

    def test_pairs(self, write):
        for rows in (PAIRS, [(label, first, second) for first, second, label in PAIRS]):
            pairs = [(one.first, one.second, one.label) for one in read_pairs(write("a.tsv", *rows))]
            assert pairs == PAIRS


class TestNames:
    @pytest.mark.parametrize(
        "header",
        [
            ("text", "label"),
            ("sentence", "Category"),
            ("review", "sentiment"),
            ("Description", "Class Index"),
            ("文本", "标签"),
            ("内容", "类别"),
            ("評論", "標籤"),
        ],
    )
    @pytest.mark.parametrize("count", [1, 12])
    def test_usual_ones(self, write, header, count):
        path = write("a.tsv", *LABELLED[:count], header=header)
        assert found(path) == LABELLED[:count]
        assert (
            find_labelled(path).described == f"the label is column 2 ({header[1]}), the text is column 1 ({header[0]})"
        )

    def test_a_usual_one_goes_before_what_the_columns_hold(self, write):
        rows = [
            (number % 2, text, label, f"https://example.org/{text}") for number, (text, label) in enumerate(LABELLED)
        ]
        assert found(write("a.tsv", *rows, header=("fold", "text", "label", "address"))) == LABELLED

    @pytest.mark.parametrize("header", [("said", "label"), ("text", "opinion")])
    def test_one_usual_name_of_two(self, write, header):
        assert found(write("a.tsv", *LABELLED[:3], header=header)) == LABELLED[:3]

    def test_none_usual(self, write):
        """The first line's label never comes again, and all others do: it is a name."""
        assert found(write("a.tsv", *LABELLED, header=("said", "opinion"))) == LABELLED

    def test_given(self, write):
        rows = [(text, "x", label) for text, label in LABELLED[:2]]
        path = write("a.tsv", *rows, header=("said", "text", "opinion"))
        assert found(path, label="opinion", text="said") == LABELLED[:2]
        assert found(path, label="OPINION", text="said ") == LABELLED[:2]
        with pytest.raises(
            DataError, match=r"line 1: found the columns 'said', 'text', 'opinion': expected the label in "
        ):
            found(path, label="stars")

    def test_numbers(self, write):
        rows = [(text, "x", label) for text, label in LABELLED[:2]]
        assert found(write("a.tsv", *rows), label=2, text=0) == LABELLED[:2]
        assert found(write("a.tsv", *rows, header=("text", "y", "label")), label=2, text=0) == LABELLED[:2]
        with pytest.raises(DataError, match=r"line 1: there is no column 4: the line has 3"):
            found(write("a.tsv", *rows), label=3)

    def test_one_column_for_both(self, write):
        with pytest.raises(DataError, match="expected the label and the text, each in one of several columns"):
            found(write("a.tsv", *LABELLED), label=1, text=1)

    def test_pairs(self, write):
        header = ("id", "premise", "hypothesis", "label")
        path = write("a.tsv", *((n, *pair) for n, pair in enumerate(PAIRS)), header=header)
        assert [(one.first, one.second, one.label) for one in read_pairs(path)] == PAIRS
        swapped = next(read_pairs(path, first="hypothesis", second="premise"))
        assert (swapped.first, swapped.second) == (PAIRS[0][1], PAIRS[0][0])
        assert "the second text is column 3 (hypothesis)" in find_pairs(path).described


class TestFormats:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_csv(self, tmp_path, delimiter):
        """As spreadsheets write it."""
        rows = [('he said "no", and\nleft; twice', "bad"), ("fine", "good")]
        quoted = [f'"{text.replace(chr(34), chr(34) * 2)}"{delimiter}{label}\r\n' for text, label in rows]
        (tmp_path / "a.csv").write_bytes(f"\ufefftext{delimiter}label\r\n{''.join(quoted)}".encode())
        examples = list(read_labelled(tmp_path / "a.csv"))
        assert [(one.text.replace("\r", ""), one.label) for one in examples] == rows
        assert [one.place.line for one in examples] == [2, 4]

    def test_a_table_with_tabs_has_no_quoting(self, write):
        (example,) = read_labelled(write("a.tsv", ("1", 'say "yes')))
        assert example.text == 'say "yes'

    def test_json_by_usual_names(self, tmp_path):
        rows = [{"id": n, "sentence": text, "category": label} for n, (text, label) in enumerate(LABELLED)]
        path = tmp_path / "a.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        assert found(path) == LABELLED
        assert found(path, label=2, text=1) == LABELLED

    def test_json_by_what_the_fields_hold(self, tmp_path):
        rows = [{"n": n, "said": text, "opinion": label} for n, (text, label) in enumerate(LABELLED)]
        path = tmp_path / "a.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        assert found(path) == LABELLED

    def test_fasttext(self, write):
        rows = [(f"__label__{label}", text) for text, label in LABELLED]
        path = write("a.txt", *rows, between=" ")
        assert found(path) == LABELLED
        assert find_labelled(path) is None

    def test_pairs_without_a_gold_label_are_left_out(self, write):
        rows = [*PAIRS, ("a", "b", "-")]
        path = write("a.tsv", *rows, header=("sentence1", "sentence2", "gold_label"))
        assert [one.label for one in read_pairs(path)] == [label for *_, label in PAIRS]


def test_real_data_loads_as_before(shared_data):
    """ChnSentiCorp, TREC, SST and SICK: the sizes and classes that they are known for."""
    folder = shared_data / "classify"
    labels = Counter(one.label for one in read_labelled(folder / "chnsenticorp" / "train.tsv"))
    assert labels == {"1": 4799, "0": 4801}
    assert len({one.label for one in read_labelled(folder / "trec" / "train.txt")}) == 6
    assert sum(1 for _ in read_labelled(folder / "trec" / "test.txt")) == 500
    assert Counter(len(one.label) for one in read_labelled(folder / "sst5" / "dev.txt")) == {1: 1101}
    assert {one.label for one in read_pairs(shared_data / "pairs" / "sick" / "dev.txt")} == {
        "NEUTRAL",
        "ENTAILMENT",
        "CONTRADICTION",
    }
