"""The surprisal of every word of files: the table, as users of other libraries open it."""

import csv
import gzip
import json

import pytest
from test_lexicon_substitutes import random_predictor

import elmokit
from elmokit.cli import app
from elmokit.errors import CheckpointError, ConfigError, DataError, OutputError
from elmokit.lexicon import iter_surprisal, open_corpus, surprisal, write_surprisal
from elmokit.lexicon import tables as module
from elmokit.lexicon.surprisal_tables import Row
from elmokit.lexicon.tables import FORMATS

TEXT = 'The bank of the river, "NA" and null. It was green!\n\n今天天气很好。 A tab\tand a comma, too.\n'
ENDINGS = sorted(FORMATS)
COLUMNS = list(Row._fields[:-1])  # metadata has columns of its own


def run(*arguments) -> None:
    app([str(argument) for argument in arguments], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("softmax") / "model"
    random_predictor("full").save(folder)
    return folder


@pytest.fixture(scope="module")
def elmo(model):
    return elmokit.load(model)


@pytest.fixture
def novel(tmp_path):
    path = tmp_path / "a, b.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def rows_by_hand(elmo, *paths) -> list[Row]:
    rows = []
    for number, context in enumerate(open_corpus(paths, elmo.tokenizer)):
        words = surprisal(elmo, context.words).words
        for position, (token, word) in enumerate(zip(context.tokens, words, strict=True)):
            rows.append(Row(context.document, number, position, word[0], token.start, token.end, *word[1:]))
    return rows


def assert_same(found, expected: list[Row], *, digits: float) -> None:
    found = [Row(*row) for row in found]
    assert [row[:6] for row in found] == [row[:6] for row in expected]
    assert [row.known for row in found] == [row.known for row in expected]
    for name in ("forward_bits", "backward_bits", "forward_entropy_bits", "backward_entropy_bits"):
        values = [getattr(row, name) for row in expected]
        # 4 digits after the point in text; batches of other sizes sum in another order
        assert [getattr(row, name) for row in found] == pytest.approx(values, abs=digits)


class TestTable:
    def test_rows(self, elmo, novel):
        expected = rows_by_hand(elmo, novel)
        assert_same(iter_surprisal(open_corpus(novel, elmo.tokenizer), elmo), expected, digits=1e-4)
        contexts = list(open_corpus(novel, elmo.tokenizer))
        assert all(contexts[row.sentence].text[row.start : row.end] == row.word for row in expected)
        assert {row.word for row in expected} >= {"NA", "null", '"', "很"}
        assert {row.known for row in expected} == {True, False}

    @pytest.mark.parametrize("group", [1, 3, 8192])
    @pytest.mark.parametrize("ending", ENDINGS)
    def test_groups_change_nothing(self, ending, group, elmo, novel, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "ROWS_A_GROUP", group)
        polars = pytest.importorskip("polars")
        path = tmp_path / f"t{ending}"
        size = write_surprisal(path, open_corpus(novel, elmo.tokenizer), elmo)
        expected = rows_by_hand(elmo, novel)
        assert size == (len(expected), sum(not row.known for row in expected))
        separator = "\t" if ending == ".tsv" else ","
        table = polars.read_parquet(path) if ending == ".parquet" else polars.read_csv(path, separator=separator)
        assert table.columns == COLUMNS
        assert table.schema["known"] == polars.Boolean
        assert_same(table.rows(), expected, digits=1e-4)

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_by_pandas(self, ending, elmo, novel, tmp_path):
        pandas = pytest.importorskip("pandas")
        path = tmp_path / f"t{ending}"
        write_surprisal(path, open_corpus(novel, elmo.tokenizer), elmo)
        if ending == ".parquet":
            table = pandas.read_parquet(path)
        else:
            table = pandas.read_csv(path, sep="\t" if ending == ".tsv" else ",", keep_default_na=False)
        assert table["known"].dtype == bool
        assert_same(table.itertuples(index=False, name=None), rows_by_hand(elmo, novel), digits=1e-4)

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_an_error_on_the_way_leaves_the_old_file(self, ending, elmo, novel, tmp_path):
        path = tmp_path / f"t{ending}"
        path.write_text("old")

        def broken():
            yield from open_corpus(novel, elmo.tokenizer)
            raise DataError("line 7 is not UTF-8")

        with pytest.raises(DataError, match="line 7"):
            write_surprisal(path, broken(), elmo)
        assert path.read_text() == "old"
        assert sorted(tmp_path.iterdir()) == sorted([path, novel])

    def test_an_empty_corpus_has_a_table_without_rows(self, elmo, tmp_path):
        for ending in ENDINGS:
            assert write_surprisal(tmp_path / f"t{ending}", [], elmo) == (0, 0)
        assert (tmp_path / "t.csv").read_text() == ",".join(COLUMNS) + "\n"
        assert pytest.importorskip("pandas").read_parquet(tmp_path / "t.parquet").columns.tolist() == COLUMNS

    def test_memory_is_bounded(self, elmo, tmp_path):
        """No more sentences are asked for than are sorted by length together."""
        seen, asked = [], 0

        def endless():
            nonlocal asked
            [context] = open_corpus_of("The bank of the river .", elmo, tmp_path)
            while True:
                asked += 1
                yield context

        for row in iter_surprisal(endless(), elmo):
            seen.append(row)
            if len(seen) == 3:
                break
        assert asked < 100_000


def open_corpus_of(text: str, elmo, folder):
    (folder / "one.txt").write_text(text, encoding="utf-8")
    return open_corpus(folder / "one.txt", elmo.tokenizer)


class TestCommand:
    def test_files(self, model, elmo, novel, tmp_path, capsys):
        other = tmp_path / "more"
        other.mkdir()
        (other / "b.txt.gz").write_bytes(gzip.compress(b"She saw the bank. Twice."))
        run("surprisal", novel, other, "-m", model, "-o", tmp_path / "t.csv")
        expected = rows_by_hand(elmo, novel, other)
        unknown = sum(not row.known for row in expected)
        output = capsys.readouterr()
        out = f"{tmp_path / 't.csv'}: {len(expected)} words, {unknown} of them not in the model's vocabulary\n"
        assert output.out == out
        assert "2 files: done, 6 sentences" in output.err
        with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["word"] for row in rows] == [row.word for row in expected]
        assert {row["document"] for row in rows} == {str(novel), str(other / "b.txt.gz")}
        run("surprisal", novel, other, "-m", model, "-o", tmp_path / "t.tsv", "--json")
        assert json.loads(capsys.readouterr().out) == {"words": len(expected), "unknown": unknown}

    def test_sentences_are_numbered_as_embed_does(self, model, tmp_path):
        polars = pytest.importorskip("polars")
        (tmp_path / "lines.txt").write_text("The bank .\n\nThe river .\n", encoding="utf-8")
        for lines in ("sentences", "paragraphs"):
            arguments = [tmp_path / "lines.txt", "-m", model, "--lines", lines, "-o"]
            run("surprisal", *arguments, tmp_path / "s.parquet")
            run("embed", *arguments, tmp_path / "e.parquet")
            names = ["document", "sentence", "position", "start", "end"]
            one, other = (polars.read_parquet(tmp_path / name).select(names) for name in ("s.parquet", "e.parquet"))
            assert one.rows() == other.rows()
            assert one["sentence"].to_list()[-1] == (2 if lines == "sentences" else 1)

    def test_a_sentence_stays_a_sentence(self, model, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for sentence in ("- the bank", "The bank " * 100, "river "):
            (tmp_path / "river").touch()
            run("surprisal", sentence, "-m", model)
            assert capsys.readouterr().out.startswith("forward (entropy)  backward (entropy)  bits\n")

    @pytest.mark.parametrize(
        ("arguments", "kind", "message"),
        [
            (["here.txt"], ConfigError, r"here.txt is a file or folder: -o table.csv \(.tsv, .parquet\) says where"),
            (["-"], ConfigError, "- is a file or folder"),
            (["a", "b"], ConfigError, "2 arguments: give one sentence, in quotes; of files, -o"),
            (["-o", "t.csv"], ConfigError, "0 arguments"),
            (["here.txt", "-o", "t.xlsx"], ConfigError, r"unknown ending '.xlsx': a table is written as .csv, .tsv"),
            (["here.txt", "-o", "no/t.csv"], OutputError, "No such file or directory"),
            (["missing.txt", "-o", "t.csv"], DataError, "missing.txt: there is no such file"),
        ],
    )
    def test_mistakes(self, arguments, kind, message, model, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "here.txt").write_text("The bank .")
        with pytest.raises(kind, match=message):
            run("surprisal", *arguments, "-m", model)
        assert [path.name for path in tmp_path.iterdir()] == ["here.txt"]

    def test_a_model_without_a_softmax(self, model_folder, novel, tmp_path):
        with pytest.raises(CheckpointError, match="no softmax"):
            run("surprisal", novel, "-m", model_folder, "-o", tmp_path / "t.csv")
        assert not (tmp_path / "t.csv").exists()
