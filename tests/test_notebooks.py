"""What notebooks and tables get: results that show themselves, columns that are read, progress in a real kernel."""

import re
import sys
from queue import Empty
from xml.etree import ElementTree

import numpy as np
import pandas
import polars
import pytest
from conftest import SENTENCES, random_elmo
from jupyter_client.manager import start_new_kernel
from test_lexicon import Recorder

import elmokit
from elmokit.embedder import TokenVectors
from elmokit.errors import DataError, MissingExtraError
from elmokit.lexicon import find_senses, make_corpus, surprisal
from elmokit.progress.drawing import LineProgress, shown

HOSTILE = "<script>alert('&')</script>"


def parsed(html):
    """The HTML, which is well-formed and in which nothing runs."""
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    assert not [node.tag for node in tree.iter() if node.tag == "script"]
    return tree


def text_of(tree):
    return "".join(tree.itertext())


class TestTables:
    TEXTS = ("He sat on the bank.", "今天天气很好。", "")

    @pytest.mark.parametrize("column", [pandas.Series, polars.Series, np.array, pandas.Index])
    def test_columns_are_read(self, elmo, column):
        expected = elmo.embed(list(self.TEXTS))
        for found, vectors in zip(elmo.embed(column(self.TEXTS)), expected, strict=True):
            np.testing.assert_array_equal(found, vectors)
        found = elmo.sentence_vectors(column(self.TEXTS))
        np.testing.assert_array_equal(found, elmo.sentence_vectors(list(self.TEXTS)))

    @pytest.mark.parametrize("column", [pandas.Series, polars.Series])
    def test_columns_of_tokens(self, elmo, column):
        tokens = [["He", "sat"], ["on"]]
        for found, vectors in zip(elmo.embed(column(tokens)), elmo.embed(tokens), strict=True):
            np.testing.assert_array_equal(found, vectors)

    @pytest.mark.parametrize("library", [pandas, polars])
    def test_a_missing_text_is_named(self, elmo, library):
        with pytest.raises(DataError, match="sentence 1 is"):
            elmo.embed(library.Series(["He sat.", None]))

    @pytest.mark.parametrize("library", [pandas, polars])
    def test_a_whole_table_is_refused(self, elmo, library):
        table = library.DataFrame({"id": [1], "text": ["He sat."]})
        with pytest.raises(DataError, match="pass one of its columns \\('id', 'text'\\)"):
            elmo.embed(table)
        with pytest.raises(DataError, match="pass one of its columns"):
            elmo.sentence_vectors(table)


class TestTokenVectors:
    def test_an_array_with_tokens(self, elmo):
        for found, vectors, tokens in zip(elmo.embed_tokens(SENTENCES), elmo.embed(SENTENCES), SENTENCES, strict=True):
            assert found.tokens == list(tokens)
            assert (len(found), found.shape) == (len(tokens), vectors.shape)
            np.testing.assert_array_equal(np.asarray(found), vectors)
            np.testing.assert_array_equal(found[0], vectors[0])
            assert np.asarray(found, dtype=np.float64).dtype == np.float64

    def test_a_data_frame(self, elmo):
        [found] = elmo.embed_tokens("He sat on the bank.")
        table = found.to_dataframe()
        assert table.index.tolist() == ["He", "sat", "on", "the", "bank", "."]
        np.testing.assert_array_equal(table.loc["bank"], found[4])

    def test_a_data_frame_of_all_layers(self, elmo):
        [found] = elmo.embed_tokens("He sat.", layers="all")
        np.testing.assert_array_equal(found.to_dataframe().loc[2, "sat"], found[2, 1])

    def test_without_tokens(self, elmo):
        [found] = elmo.embed_tokens([[]])
        assert found.to_dataframe().shape == (0, elmo.width)
        assert text_of(parsed(found._repr_html_())) == f"0 × {elmo.width}"

    def test_without_pandas(self, elmo, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtraError, match=r"elmokit\[pandas\]"):
            elmo.embed_tokens("He sat.")[0].to_dataframe()

    def test_a_list_of_words_is_warned_of_where_it_was_passed(self, elmo):
        with pytest.warns(UserWarning, match="every sentence is one word") as caught:
            elmo.embed_tokens(["He", "sat"])
        assert caught[0].filename == __file__


class TestHtml:
    def test_a_model(self, elmo):
        found = text_of(parsed(elmo._repr_html_()))
        assert elmo.source in found
        assert f"width{elmo.width}" in found

    @pytest.mark.parametrize("layers", ["top", "all"])
    def test_vectors(self, elmo, layers):
        [found] = elmo.embed_tokens([[HOSTILE, "sat"]], layers=layers)
        top = np.asarray(found)[-2:] if layers == "top" else np.asarray(found)[-1]
        shown = text_of(parsed(found._repr_html_()))
        assert HOSTILE in shown
        assert f"sat{top[1, 0]:.3f}" in shown

    def test_vectors_of_few_numbers(self):
        found = TokenVectors(["a"], np.ones((1, 2), np.float32))
        assert text_of(parsed(found._repr_html_())) == "1 × 2a1.0001.000…"

    def test_surprisal(self):
        found = surprisal(elmokit.load("en"), ["He", "sat", "on", HOSTILE])
        tree = parsed(found._repr_html_())
        assert text_of(tree).split(" ")[:3] == ["He", "sat", "on"]
        words = tree.findall("p/span")
        assert [word.text for word in words][-1] == HOSTILE
        assert words[0].get("title").startswith(f"forward {found.words[0].forward:.1f} bits")
        assert words[3].get("title").endswith("unknown")
        shades = [float(re.search(r"([\d.]+)\)", word.get("style"))[1]) for word in words]
        surprise = [one.forward for one in found.words]
        assert np.argmin(shades) == np.argmin(surprise)
        assert np.argmax(shades) == np.argmax(surprise)

    def test_senses(self, elmo):
        river = (f"{HOSTILE} the bank of river {number} .".split() for number in range(30))
        money = (f"Money in a bank , {number} pounds .".split() for number in range(30))
        corpus = make_corpus([*river, *money])
        found = find_senses("bank", corpus, elmo)
        tree = parsed(found._repr_html_())
        assert len(list(tree.iter("circle"))) == len(found.occurrences) == 60
        assert f"bank: {found.claim}" in text_of(tree)
        assert len(tree.findall("ul")) == len(found.senses)


class TestProgress:
    def test_is_told_after_every_batch(self):
        elmo, told = random_elmo(batch_tokens=12), Recorder()
        sentences = ["one two three four"] * 5
        elmo.embed(sentences, progress=told)
        assert told.updates == [("embedding", done, 5, "sentences") for done in (2, 4, 5)]
        elmo.sentence_vectors(sentences, progress=told)
        elmo.sentence_vectors((sentence for sentence in sentences), progress=told)
        assert [update[1:3] for update in told.updates[3:]] == [(2, 5), (4, 5), (5, 5), (2, None), (4, None), (5, None)]

    def test_lines_where_nobody_watches(self, elmo, capsys):
        elmo.embed(["He sat."], progress=True)
        assert capsys.readouterr().err == "embed: done, 1 sentences, 0 seconds\n"
        elmo.embed(["He sat."])
        assert not capsys.readouterr().err

    def test_what_is_shown(self):
        with shown(True, "embed") as progress:
            assert isinstance(progress, LineProgress)
        told = Recorder()
        with shown(told, "embed") as progress:
            assert progress is told


CELL = """
from elmokit.lexicon import surprisal
import elmokit
elmo = elmokit.load("en")
vectors = elmo.embed(["He sat on the bank of the river."] * 900, progress=True)
surprisal(elmo, "He sat on the bank.")
"""


def test_a_notebook_shows_progress_and_results():
    manager, client = start_new_kernel()
    try:
        client.execute(CELL)
        messages = []
        while not messages or messages[-1]["content"].get("execution_state") != "idle":
            messages.append(client.get_iopub_msg(timeout=60))
    except Empty:
        pytest.fail("the kernel says nothing")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    kinds = [message["msg_type"] for message in messages]
    assert "error" not in kinds, messages
    drawn = [m["content"]["data"] for m in messages if m["msg_type"] in ("display_data", "update_display_data")]
    assert kinds.count("display_data") == 1
    assert re.match("embedding: 900/900 sentences, ", drawn[-1]["text/plain"])
    assert parsed(drawn[-1]["text/html"]).find("div/progress").get("value") == "900"
    [result] = [message["content"]["data"] for message in messages if message["msg_type"] == "execute_result"]
    assert "bank" in text_of(parsed(result["text/html"]))
