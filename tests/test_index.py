"""The index of occurrences: against plain numpy, through kills and mistakes."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from conftest import BYTES, CONFIGS, random_checkpoint, random_elmo
from test_lexicon import EMBEDDER, MONEY, RIVER, TOKENIZER, Neighborhood, Recorder, around, cosine

import elmokit
from elmokit.checkpoints import write_checkpoint
from elmokit.cli import app
from elmokit.errors import CheckpointError, ConfigError, DataError, MissingExtraError, OutputError
from elmokit.lexicon import index as module
from elmokit.lexicon.index import (
    MANIFEST,
    ModelId,
    Reading,
    build_index,
    identify,
    open_index,
    read_manifest,
    write_manifest,
)
from elmokit.lexicon.index_tables import Tables
from elmokit.lexicon.neighbors import context_neighbors
from elmokit.static.files import write_vectors
from elmokit.text.brackets import read_brackets
from elmokit.text.corpus import Context, make_corpus, open_corpus

pytest.importorskip("lancedb", reason="needs the extra 'search'")

READING = {"model": ModelId("neighborhood", "0" * 64), "layers": "average", "tokenizer": "words"}
CHUNK = 100  # tokens: the corpus below takes several commits
WILD = ["it's", '"', "\\", "'; DROP TABLE occurrences; --", "🤷‍♀️", "宝玉", "%", "a\nb"]
EVERYTHING = 10_000


class BrokenOffError(Exception):
    pass


class Weak:
    """An embedder that gives in after some chunks."""

    width, layer_count = EMBEDDER.width, EMBEDDER.layer_count

    def __init__(self, chunks: int) -> None:
        self.left = chunks

    def embed(self, sentences, *, layers="average"):
        if sentences:
            if not self.left:
                raise BrokenOffError
            self.left -= 1
        return EMBEDDER.embed(sentences, layers=layers)


@pytest.fixture(scope="module")
def corpus():
    river, money = around("bank", RIVER, 40), around("bank", MONEY, 30, seed=1)
    wild = [WILD, [*WILD[::-1], "bank"]]
    return [*make_corpus(river, document="river.txt"), *make_corpus([*money, *wild], document="o'money.txt")]


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_TOKENS", CHUNK)
        yield


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory):
    """A finished index; not to be written to."""
    folder = tmp_path_factory.mktemp("index") / "of" / "words"
    build_index(corpus, EMBEDDER, folder, **READING)
    return folder


@pytest.fixture(scope="module")
def index(folder):
    return open_index(folder)


@pytest.fixture(scope="module")
def plain(corpus):
    """Every occurrence: token, sentence's number, position, document, and its unit vector."""
    rows = []
    for number, context in enumerate(corpus):
        for position, vector in enumerate(EMBEDDER.embed([context.words])[0]):
            unit = vector / np.linalg.norm(vector)
            rows.append((context.tokens[position].text, number, position, context.document, unit))
    return rows


def rows_of(folder: Path):
    table = Tables(folder, read_manifest(folder).width).occurrences.to_arrow().to_pydict()
    vectors = np.array(table.pop("vector"), np.float32)
    lengths = np.array(table.pop("length"), np.float32)
    assert ((lengths > 0) == vectors.any(axis=1)).all()
    return list(zip(*table.values(), strict=True)), vectors


def assert_same_rows(one: Path, other: Path) -> None:
    (rows, vectors), (others, other_vectors) = rows_of(one), rows_of(other)
    assert rows == others
    np.testing.assert_array_equal(vectors, other_vectors)
    texts = [Tables(folder, 1).sentences.to_arrow().to_pylist() for folder in (one, other)]
    assert texts[0] == texts[1]
    assert read_manifest(one) == read_manifest(other)


class TestBuild:
    def test_a_row_an_occurrence_in_order(self, folder, plain):
        rows, vectors = rows_of(folder)
        assert rows == [row[:4] for row in plain]
        np.testing.assert_allclose(vectors, [row[4] for row in plain], atol=1e-6)  # float32 of another order of sums

    def test_manifest(self, folder, corpus, plain):
        found = read_manifest(folder)
        assert (found.sentences, found.total, found.rows) == (len(corpus), len(corpus), len(plain))
        assert found.finished
        assert found.reading == Reading(READING["model"], "average", "words")

    def test_progress(self, corpus, tmp_path):
        progress, total = Recorder(), len(corpus)
        build_index(corpus, EMBEDDER, tmp_path / "i", **READING, progress=progress)
        assert progress.updates[:total] == [("reading", number, None, "sentences") for number in range(1, total + 1)]
        committed = [done for stage, done, *_ in progress.updates[total:]]
        assert committed == sorted(set(committed))
        assert progress.updates[-1] == ("embedding", total, total, "sentences")

    def test_no_more_files_than_needed(self, folder):
        assert len(list((folder / "occurrences.lance" / "data").iterdir())) == 1

    def test_a_finished_index_is_left_as_it_is(self, folder, corpus):
        times = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        assert build_index(corpus, Weak(0), folder, **READING).finished
        assert times == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    @pytest.mark.parametrize("chunks", range(6))
    def test_goes_on_where_it_was_broken_off(self, chunks, folder, corpus, tmp_path):
        with pytest.raises(BrokenOffError):
            build_index(corpus, Weak(chunks), tmp_path / "i", **READING)
        done = read_manifest(tmp_path / "i").sentences
        assert (done > 0) == (chunks > 0)
        with pytest.raises(DataError, match=rf"unfinished \({done} of {len(corpus)} sentences\): give the same"):
            open_index(tmp_path / "i")
        build_index(corpus, EMBEDDER, tmp_path / "i", **READING)
        assert_same_rows(tmp_path / "i", folder)

    @pytest.mark.parametrize("lost", ["manifest", "manifest and occurrences"])
    def test_what_was_written_but_not_committed_is_written_anew(self, lost, folder, corpus, tmp_path):
        """As after a kill between the writing of sentences, of occurrences, and of the manifest."""
        with pytest.raises(BrokenOffError):
            build_index(corpus, Weak(2), tmp_path / "i", **READING)
        before = read_manifest(tmp_path / "i")
        with pytest.raises(BrokenOffError):
            build_index(corpus, Weak(1), tmp_path / "i", **READING)
        write_manifest(tmp_path / "i", before)
        if lost != "manifest":
            Tables(tmp_path / "i", EMBEDDER.width).occurrences.delete(f"sentence >= {before.sentences}")
        build_index(corpus, EMBEDDER, tmp_path / "i", **READING)
        assert_same_rows(tmp_path / "i", folder)

    @pytest.mark.parametrize("exact_rows", [300, 1000])
    def test_broken_off_at_the_very_end(self, exact_rows, corpus, tmp_path):
        settings = READING | {"exact_rows": exact_rows}
        finished = build_index(corpus, EMBEDDER, tmp_path / "i", **settings)
        shutil.copytree(tmp_path / "i", tmp_path / "copy")
        write_manifest(tmp_path / "i", msgspec.structs.replace(finished, finished=False))
        build_index(corpus, Weak(0), tmp_path / "i", **settings)
        assert_same_rows(tmp_path / "i", tmp_path / "copy")

    def test_of_a_sentence_read_in_pieces_each_is_kept(self, tmp_path):
        text = "a line without an end that was read in two pieces"
        tokens = TOKENIZER(text)
        build_index(
            [Context(text, tokens[:6], "d"), Context(text, tokens[6:], "d")], EMBEDDER, tmp_path / "i", **READING
        )
        words = [token.text for token in tokens[6:]]
        found = open_index(tmp_path / "i").search(EMBEDDER.embed([words])[0][3], k=1)[0].occurrence
        assert found.bracketed == "was read in [two] pieces"
        assert found.context.words == words

    def test_a_generator_is_refused(self, corpus, tmp_path):
        with pytest.raises(DataError, match="changed between two readings"):
            build_index((context for context in corpus), EMBEDDER, tmp_path / "i", **READING)

    def test_an_empty_corpus_is_refused(self, tmp_path):
        with pytest.raises(DataError, match="holds no words"):
            build_index([], EMBEDDER, tmp_path / "i", **READING)
        assert not (tmp_path / "i").exists()

    def test_a_model_tells_what_it_is(self, elmo, tmp_path):
        corpus = make_corpus([["the", "bank"], ["a", "river"]])
        build_index(corpus, elmo, str(tmp_path / "i"), layers="top")
        known = identify(elmo, elmo.source)
        assert read_manifest(tmp_path / "i").reading == Reading(known, "top", elmo.config.tokenizer)
        index = open_index(str(tmp_path / "i"), model=elmo)
        [near] = index.search_word("a [bank]", elmo, k=1)
        assert near.occurrence.bracketed == "the [bank]"
        assert index.search_word("the [bank]", elmo) == []  # its own sentence does not count
        with pytest.raises(ConfigError, match="their vectors cannot be compared"):
            open_index(tmp_path / "i", model=random_elmo(seed=1))
        with pytest.raises(ConfigError, match="Neighborhood is no Elmo: say which model and tokenizer"):
            build_index(corpus, EMBEDDER, tmp_path / "other")

    def test_all_layers_are_refused(self, corpus, tmp_path):
        with pytest.raises(ConfigError, match="'all' is not one"):
            build_index(corpus, EMBEDDER, tmp_path / "i", **READING | {"layers": "all"})

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"model": ModelId("other", "1" * 64)}, r"by the model neighborhood \(0{12}\), not by other \(1{12}\)"),
            ({"layers": 1}, 'layer was "average" and is 1'),
            ({"tokenizer": "jieba"}, 'tokenizer was "words" and is "jieba"'),
        ],
    )
    def test_another_reading_is_refused(self, changes, message, folder, corpus):
        with pytest.raises(ConfigError, match=message):
            build_index(corpus, EMBEDDER, folder, **READING | changes)

    def test_another_text_is_refused(self, folder, corpus):
        with pytest.raises(ConfigError, match="from another text"):
            build_index(corpus[:-1], EMBEDDER, folder, **READING)

    def test_another_place_is_refused(self, corpus, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError, match="is a file"):
            build_index(corpus, EMBEDDER, tmp_path / "file", **READING)
        with pytest.raises(OutputError, match="not empty, and not an index"):
            build_index(corpus, EMBEDDER, tmp_path, **READING)
        with pytest.raises(OutputError, match="cannot be written: Not a directory"):
            build_index(corpus, EMBEDDER, tmp_path / "file" / "i", **READING)


class TestSearch:
    @pytest.mark.parametrize("k", [1, 10, EVERYTHING])
    @pytest.mark.parametrize(
        "wanted", [{}, {"token": "bank"}, {"document": "o'money.txt"}, {"token": "bank", "document": "river.txt"}]
    )
    def test_exact_search_is_that_of_numpy(self, wanted, k, index, plain):
        query = np.random.default_rng(0).normal(size=EMBEDDER.width).astype(np.float32)
        rows = [row for row in plain if wanted.items() <= {"token": row[0], "document": row[3]}.items()]
        cosines = np.array([cosine(row[4], query) for row in rows])
        best = np.argsort(-cosines, kind="stable")[:k]
        found = index.search(7 * query, k=k, **wanted)
        np.testing.assert_allclose([near.cosine for near in found], cosines[best], atol=1e-6)
        assert len(found) == min(k, len(rows))
        for near in found:  # equal cosines may stand in either order
            occurrence = near.occurrence
            where = occurrence.token, occurrence.position, occurrence.context.document
            assert cosine(occurrence.vector, query) == pytest.approx(near.cosine, abs=1e-6)
            assert where in [(row[0], row[2], row[3]) for row in rows]

    def test_finds_itself_with_its_sentence(self, index, corpus):
        for context in corpus[::7]:
            for position, vector in enumerate(EMBEDDER.embed([context.words])[0]):
                found, likeness = index.search(vector, k=1)[0]
                assert (found.context.words, found.position) == (context.words, position)
                assert (found.context, found.bracketed) == (context, context.bracketed(position))
                assert likeness == pytest.approx(1, abs=1e-6)

    @pytest.mark.parametrize("token", WILD)
    def test_a_filter_is_no_program(self, token, index, plain):
        found = index.search(np.ones(EMBEDDER.width), k=EVERYTHING, token=token)
        assert len(found) == sum(row[0] == token for row in plain) == 2
        assert {near.occurrence.token for near in found} == {token}
        with pytest.raises(DataError, match="has no document"):
            index.search(np.ones(EMBEDDER.width), document=f"{token}' OR 1 = 1 OR token = '")

    def test_by_a_word_in_brackets(self, index):
        text = "the steep [bank] with reed and willow"
        query = read_brackets(text, TOKENIZER)
        found = index.search_word(query, EMBEDDER, k=5, token="bank")
        assert [near.cosine for near in index.search_word(text, EMBEDDER, k=5, token="bank")] == [
            near.cosine for near in found
        ]
        vector = EMBEDDER.embed([query.context.words])[0][query.position]
        assert [near.cosine for near in found] == [near.cosine for near in index.search(vector, k=5, token="bank")]

    @pytest.mark.parametrize("width", [128, 20])
    def test_approximate_above_a_number_of_rows(self, width, corpus, tmp_path, monkeypatch):
        embedder = Neighborhood()
        embedder.width = width
        for name, exact_rows in {"approximate": 400, "exact": 1000}.items():
            build_index(corpus, embedder, tmp_path / name, **READING, exact_rows=exact_rows)
        approximate, exact = open_index(tmp_path / "approximate"), open_index(tmp_path / "exact")
        assert approximate.manifest.rows > 400
        columns = sorted(column for one in approximate.tables.occurrences.list_indices() for column in one.columns)
        assert columns == ["document", "token", "vector"]
        assert not list(exact.tables.occurrences.list_indices())
        for context in corpus[::7]:
            vector = embedder.embed([context.words])[0][2]
            [near] = approximate.search(vector, k=1)
            assert near.cosine == pytest.approx(1, abs=1e-6)
            assert cosine(near.occurrence.vector, vector) == pytest.approx(1, abs=1e-6)
            for few in (10, 1000):  # with the filter all are compared, or again those that seem nearest
                monkeypatch.setattr(module, "FEW_ROWS", few)
                found = [one.search(vector, k=9, token="bank", document="river.txt") for one in (approximate, exact)]
                assert {(near.occurrence.token, near.occurrence.context.document) for near in found[0]} == {
                    ("bank", "river.txt")
                }
                assert [near.cosine for near in found[0]] == pytest.approx([near.cosine for near in found[1]], abs=1e-6)

    def test_layer_of_the_index(self, corpus, tmp_path):
        build_index(corpus, EMBEDDER, tmp_path / "i", **READING | {"layers": 0})
        query = read_brackets("a [bank]", TOKENIZER)
        likeness = [near.cosine for near in open_index(tmp_path / "i").search_word(query, EMBEDDER, k=5)]
        assert likeness == pytest.approx([1] * 5, abs=1e-6)  # a word's own vector is the same everywhere

    @pytest.mark.parametrize(
        ("kind", "wanted", "message"),
        [
            (DataError, {"token": "bnak"}, "no word 'bnak'; near spellings that it has: bank"),
            (DataError, {"token": "xyzzy"}, "no word 'xyzzy', nor one spelled nearly so"),
            (DataError, {"document": "rivers.txt"}, "no document 'rivers.txt'; some that it has: river.txt"),
            (DataError, {"document": "?"}, "no document '?'; some that it has: river.txt, o'money.txt"),
            (DataError, {"document": "river.txt", "token": "gold"}, "river.txt has no word 'gold': it is in other"),
            (ConfigError, {"k": 0}, "k is 0"),
            (ConfigError, {"vector": np.ones(3)}, r"the vector is \(3,\): those of .* are \(128,\)"),
            (ConfigError, {"vector": np.zeros(128)}, "no direction"),
            (ConfigError, {"vector": np.full(128, np.nan)}, "no direction"),
        ],
    )
    def test_mistakes(self, index, kind, wanted, message):
        with pytest.raises(kind, match=message.replace("?", r"\?") if "'?'" in message else message):
            index.search(**({"vector": np.ones(128)} | wanted))


class TestOpen:
    def test_another_model_is_refused(self, folder):
        with pytest.raises(ConfigError, match=r"neighborhood \(000000000000\), not by other \(abc\)"):
            open_index(folder, model=ModelId("other", "abc"))
        assert open_index(folder, model=ModelId("moved", "0" * 64)).manifest.rows

    def test_not_an_index(self, tmp_path):
        for path in (tmp_path, tmp_path / "missing", Path(__file__)):
            with pytest.raises(DataError, match="not an index: there is no manifest.json"):
                open_index(path)

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b'{"format": "other"}', b"\xff\xfe", b'{"format": "elmokit index", "version": 1}']
    )
    def test_a_damaged_manifest(self, folder, tmp_path, content):
        shutil.copytree(folder, tmp_path / "i")
        (tmp_path / "i" / MANIFEST).write_bytes(content)
        with pytest.raises(DataError, match="manifest.json: damaged, or of another version"):
            open_index(tmp_path / "i")

    def test_damaged_tables(self, folder, corpus, tmp_path):
        for number, part in enumerate(("occurrences.lance", "sentences.lance", "occurrences.lance/data")):
            copy = tmp_path / str(number)
            shutil.copytree(folder, copy)
            shutil.rmtree(copy / part)
            with pytest.raises(DataError, match="damaged"):
                open_index(copy).search(np.ones(EMBEDDER.width))
        copy = tmp_path / "rows"
        shutil.copytree(folder, copy)
        Tables(copy, EMBEDDER.width).occurrences.delete("position = 0")
        with pytest.raises(DataError, match=r"damaged: \d+ occurrences in 72 sentences, where manifest.json says"):
            open_index(copy)

    @pytest.mark.parametrize("content", [b"", b"damaged", None])
    def test_damaged_means(self, folder, tmp_path, content):
        shutil.copytree(folder, tmp_path / "i")
        path = tmp_path / "i" / module.MEANS
        path.unlink() if content is None else path.write_bytes(content)
        index = open_index(tmp_path / "i")
        with pytest.raises(DataError, match=r"words.safetensors: cannot be read .*Build the index anew"):
            index.word_neighbors("bank")
        assert index.search(np.ones(EMBEDDER.width))

    def test_a_missing_extra(self, folder, corpus, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "lancedb", None)
        for call in (lambda: open_index(folder), lambda: build_index(corpus, EMBEDDER, tmp_path, **READING)):
            with pytest.raises(MissingExtraError, match=r'needs lancedb: pip install "elmokit\[search\]"'):
                call()


class TestIdentify:
    def test_weights_and_config_count(self):
        one = identify(random_elmo(), "one")
        assert one == identify(random_elmo(), "one")
        assert one.digest != identify(random_elmo(seed=1), "one").digest
        digests = {identify(random_elmo(config), "").digest for config in CONFIGS.values()}
        assert len(digests) == len(CONFIGS)

    def test_the_format_does_not(self, tmp_path):
        for kind in ("native", "allenai"):
            write_checkpoint(random_checkpoint(BYTES), tmp_path / kind, to=kind)
        digests = {identify(elmokit.load(tmp_path / kind), kind).digest for kind in ("native", "allenai")}
        assert len(digests) == 1


def run(*arguments) -> None:
    app([str(argument) for argument in arguments], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "river.txt"
    lines = [" ".join(words) + " ." for words in around("bank", RIVER, 30) + around("bank", MONEY, 20, seed=1)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def built(text, model_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "index"
    run("index", "build", text, "-m", model_folder, "-o", folder, "--layer", "top")
    return folder


class TestCommands:
    def test_build(self, text, model_folder, tmp_path, capsys):
        run("index", "build", text, "-m", model_folder, "-o", tmp_path / "i")
        assert capsys.readouterr().out == f"{tmp_path / 'i'}: 400 occurrences in 50 sentences\n"
        run("index", "build", text, "-m", model_folder, "-o", tmp_path / "i", "--json")
        assert json.loads(capsys.readouterr().out) == {"occurrences": 400, "sentences": 50}

    def test_search(self, built, text, model_folder, capsys):
        query = "the steep [bank] of the stream"
        run("index", "search", built, query, "-k", 5, "--document", text, "--json")
        found = [near["occurrence"] | near for near in json.loads(capsys.readouterr().out)["neighbors"]]
        elmo = elmokit.load(model_folder)
        corpus = open_corpus([text], elmo.tokenizer)
        near = context_neighbors(read_brackets(query, elmo.tokenizer), corpus, elmo, k=5, layers="top")
        assert [one["cosine"] for one in found] == pytest.approx([one.cosine for one in near], abs=1e-5)
        assert [one["sentence"] for one in found] == [one.occurrence.context.text for one in near]
        assert {one["token"] for one in found} == {"bank"}
        assert {one["document"] for one in found} == {str(text)}
        run("index", "search", built, query, "-k", 5, "--token", "bank")
        assert capsys.readouterr().out.splitlines() == [
            f"{one['cosine']:.3f}  {one['sentence'].replace('bank', '[bank]')}  ({text})" for one in found
        ]

    @pytest.mark.parametrize(
        "question",
        [
            ["bank"],
            ["bank", "--min-count", "2", "-k", "30"],
            ["."],
            ["the steep [bank] of the stream"],
            ["the steep [bank] of the stream", "--token", "shore", "-k", "3"],
            ["the steep [bank] of the stream", "--any-word", "-k", "25"],
        ],
    )
    def test_answers_as_neighbors_does(self, question, built, text, model_folder, capsys):
        """The same words and options, and the same answers."""
        answers = []
        for command in (["index", "search", built], ["neighbors"]):
            corpus = ["--corpus", text, "-m", model_folder, "--layer", "top"] if command == ["neighbors"] else []
            run(*command, *question, *corpus, "--json")
            answers.append(json.loads(capsys.readouterr().out)["neighbors"])
        cosines = [[near["cosine"] for near in answer] for answer in answers]
        assert cosines[0] == pytest.approx(cosines[1], abs=1e-5)
        named = [[near.get("word") or near["occurrence"]["sentence"] for near in answer] for answer in answers]
        assert sorted(named[0]) == sorted(named[1])

    def test_static_vectors_beside(self, built, tmp_path, capsys):
        write_vectors(tmp_path / "v.txt", ["bank", "shore"], np.eye(2, dtype=np.float32))
        run("index", "search", built, "bank", "--static", tmp_path / "v.txt", "--json")
        assert json.loads(capsys.readouterr().out)["static"] == [{"word": "shore", "cosine": 0}]

    def test_the_model_may_move_but_not_change(self, text, built, model_folder, tmp_path, capsys):
        shutil.copytree(model_folder, tmp_path / "model")
        write_checkpoint(random_checkpoint(BYTES, seed=1), tmp_path / "other")
        run("index", "build", text, "-m", tmp_path / "model", "-o", tmp_path / "i", "--layer", "top")
        (tmp_path / "model").rename(tmp_path / "moved")
        with pytest.raises(CheckpointError, match=r"no such file or folder, .* needs the model .*: --model says where"):
            run("index", "search", tmp_path / "i", "the [bank]")
        capsys.readouterr()
        run("index", "search", tmp_path / "i", "the [bank]", "-m", tmp_path / "moved")
        moved = capsys.readouterr().out
        run("index", "search", built, "the [bank]")
        assert moved == capsys.readouterr().out
        with pytest.raises(
            ConfigError, match=rf"by the model {tmp_path / 'model'} \(\w+\), not by {tmp_path / 'other'} \("
        ):
            run("index", "search", tmp_path / "i", "the [bank]", "-m", tmp_path / "other")
        with pytest.raises(ConfigError, match="their vectors cannot be compared"):
            run("index", "build", text, "-m", tmp_path / "other", "-o", tmp_path / "i", "--layer", "top")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["the bank of the stream"], "no word in brackets"),
            (["the [bank] of the [stream]"], "more brackets than one pair"),
            (["the []"], "nothing in its brackets"),
            (["bnak"], "no word 'bnak'; near spellings that it has: bank"),
            (["the [bank]", "--token", "bnak"], "no word 'bnak'; near spellings that it has: bank"),
            (["the [bank]", "--document", "sea.txt"], "no document 'sea.txt'; some that it has: .*river.txt"),
        ],
    )
    def test_mistakes(self, built, arguments, message):
        with pytest.raises(DataError, match=message):
            run("index", "search", built, *arguments)

    def test_a_wrong_layer_leaves_nothing(self, text, model_folder, tmp_path):
        with pytest.raises(ConfigError, match="unknown layers 'tops'"):
            run("index", "build", text, "-m", model_folder, "-o", tmp_path / "i", "--layer", "tops")
        assert not (tmp_path / "i").exists()


SCRIPT = """
import os, signal, sys, threading
from elmokit.cli import main
from elmokit.lexicon import index

def commit(folder, manifest, write=index.write_manifest):
    write(folder, manifest)
    if manifest.sentences >= 60:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()

index.CHUNK_TOKENS, index.write_manifest = 100, commit
main(sys.argv[1:])
"""


def test_killed_and_resumed(model_folder, tmp_path):
    """kill -9 in the middle of the work loses what was not committed and nothing else."""
    lines = [" ".join(words) + " ." for seed in range(4) for words in around("bank", RIVER, 50, seed=seed)]
    (tmp_path / "long.txt").write_text("\n".join(lines), encoding="utf-8")
    arguments = ["index", "build", tmp_path / "long.txt", "-m", model_folder, "-o"]
    killed = subprocess.run([sys.executable, "-c", SCRIPT, *arguments, tmp_path / "killed"], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = read_manifest(tmp_path / "killed")
    assert 60 <= left.sentences < left.total == len(lines)
    run(*arguments, tmp_path / "killed")
    run(*arguments, tmp_path / "whole")
    assert_same_rows(tmp_path / "killed", tmp_path / "whole")


WAITING = """
import sys, time
from pathlib import Path
from elmokit.cli import main
from elmokit.lexicon import index

def commit(folder, manifest, write=index.write_manifest):
    write(folder, manifest)
    while manifest.sentences and not Path(folder).with_name("go").exists():
        time.sleep(0.05)

index.CHUNK_TOKENS, index.write_manifest = 100, commit
main(sys.argv[1:])
"""


def test_two_builds_at_once(text, model_folder, tmp_path):
    """The second is told to wait, and changes nothing."""
    arguments = ["index", "build", text, "-m", model_folder, "-o", tmp_path / "i"]
    first = subprocess.Popen([sys.executable, "-c", WAITING, *arguments], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "i" / "occurrences.lance").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        second = subprocess.run(
            [sys.executable, "-m", "elmokit", *arguments], capture_output=True, text=True, check=False
        )
        assert second.returncode == 2
        assert f"{tmp_path / 'i'} is in use by process {first.pid} on " in second.stderr
        assert second.stderr.endswith(": wait for it, or choose another\n")
    finally:
        (tmp_path / "go").touch()
        assert first.wait(timeout=120) == 0
    run(*arguments[:-1], tmp_path / "whole")
    assert_same_rows(tmp_path / "i", tmp_path / "whole")
    assert not [path for path in (tmp_path / "i").iterdir() if path.name.startswith(".")]
