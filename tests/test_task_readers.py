"""Every format of labelled data: read, packed, real, and broken in the ways that data is."""

import gzip
import json
import lzma
import re
from contextlib import suppress
from encodings.aliases import aliases
from itertools import chain
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.errors import ConfigError, DataError, ElmoError
from elmokit.tasks.examples import Answer, Frame, LabelledSpan, Place, SenseInstance
from elmokit.tasks.readers import (
    read_coreference,
    read_inventory,
    read_labelled,
    read_pairs,
    read_questions,
    read_roles,
    read_senses,
    read_tagged,
)
from elmokit.text.sentences import Span

COLUMNS = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\t\nGerman JJ B-MISC\n\n\n"
CONLLU = (
    "# text = I can't go\n"
    "1\tI\tI\tPRON\tPRP\t_\t0\t_\t_\t_\n"
    "2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tca\tcan\tAUX\tMD\t_\t0\t_\t_\t_\n"
    "3\tn't\tnot\tPART\tRB\t_\t0\t_\t_\t_\n"
    "3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_\n\n"
    "1\tYes\tyes\tINTJ\tUH\t_\t0\t_\t_\t_\n"
)
TREES = "(3 (2 It) (4 (4 works) (2 -LRB-)))\n\n(1 (2 No) (1 way\u00a0out))\n"
TREC = "DESC:manner How did it go ?\nNUM:date When ?\n"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n6\tA b\tC d\t3.3\tNEUTRAL\r\n"
SNLI = (
    '{"gold_label": "neutral", "sentence1": "A", "sentence2": "B"}\n'
    '{"gold_label": "-", "sentence1": "A", "sentence2": "C"}\n'
)
ROLES_2005 = (
    "The DT (S(NP* - - (A0*  (A0*\n"
    "cat NN *) - - *) *)\n"
    "came VBD (VP*) 01 come (V*) *\n"
    "and CC * - - * *\n"
    "sat VBD *) 01 sit * (V*)\n\n"
    "Yes UH (S*) - -\n"
)
ROLES_2012 = (
    "#begin document (news/1); part 000\n"
    "news/1 0 0 Cats NNS (S* - - - - * (ARG0*) -\n"
    "news/1 0 1 give VBP * give 01 - - * (V* -\n"
    "news/1 0 2 up RP * - - - - * *) -\n\n"
    "news/1 0 0 Yes UH * - - - - * -\n\n"
    "#end document\n"
)
WITHOUT_COREFERENCE = ROLES_2012.replace("news/1 0 0 Yes UH * - - - - * -\n\n", "").replace(" -\n", "\n")


def document(*cells: str, name: str = "#begin document (a); part 001") -> str:
    rows = [f"a\t1\t{number}\tw{number}" + "\t_" * 8 + f"\t{cell}\n" for number, cell in enumerate(cells)]
    return f"{name}\n{''.join(rows)}\n#end document\n"


COREFERENCE = document("(1|(2", "-", "2)", "(3)|1)", "(1)")
SENSES = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="test">
<text id="d0">
<sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="river_bank" pos="NOUN">river bank</instance>
<instance id="d0.s0.t1" lemma="r&amp;d" pos="NOUN">R&amp;D</instance>
</sentence>
<sentence id="d0.s1">
<wf lemma="yes" pos="X">Yes</wf>
</sentence>
</text>
</corpus>
"""
KEYS = "d0.s0.t0 river_bank%1:17:00:: bank%1:17:01::\nd0.s0.t1 r&d%1:04:00::\n"


def squad(context: str = "a 𝔟 c", *, text: str = "c", start: int = 4, **question) -> str:
    asked = {"id": "q1", "question": "What?", "answers": [{"text": text, "answer_start": start}]} | question
    return json.dumps({"data": [{"title": "t", "paragraphs": [{"context": context, "qas": [asked]}]}]}, indent=1)


READERS = {
    "columns.conll": (read_tagged, COLUMNS),
    "words.conllu": (read_tagged, CONLLU),
    "trees.txt": (read_labelled, TREES),
    "trec.txt": (read_labelled, TREC),
    "table.tsv": (read_labelled, "label\ttext_a\n1\tgood\n"),
    "table.csv": (read_labelled, 'text,label\n"so, so",1\n'),
    "fasttext.txt": (read_labelled, "__label__pos good film\n"),
    "objects.jsonl": (read_labelled, '{"text": "good", "label": 1}\n'),
    "snli.jsonl": (read_pairs, SNLI),
    "sick.txt": (read_pairs, SICK),
    "squad.json": (read_questions, squad()),
    "2005.txt": (read_roles, ROLES_2005),
    "2012.conll": (read_roles, ROLES_2012),
    "coreference.conll": (read_coreference, COREFERENCE),
    "senses.xml": (read_senses, SENSES),
}


@pytest.fixture
def write(tmp_path):
    def write_file(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return write_file


def place_of(example) -> Place:
    return example.place() if callable(example.place) else example.place


def without_place(example):
    return [getattr(example, name) for name in example.__slots__ if name not in ("place", "path")]


@pytest.mark.parametrize("name", READERS)
class TestEveryReader:
    def test_it_reads_packed_files_alike(self, write, name):
        read, content = READERS[name]
        plain = write(name, content)
        expected = [without_place(example) for example in read(plain)]
        assert expected
        for ending, pack in ((".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)):
            packed = plain.with_name(name + ending)
            packed.write_bytes(pack(content.encode()))
            assert [without_place(example) for example in read(packed)] == expected

    def test_windows_line_ends_and_a_mark_at_the_head_change_nothing(self, write, name):
        read, content = READERS[name]
        expected = [without_place(example) for example in read(write(name, content))]
        windows = "\ufeff" + content.replace("\r\n", "\n").replace("\n", "\r\n")
        assert [without_place(example) for example in read(write(name, windows))] == expected

    def test_examples_know_their_places(self, write, name):
        read, content = READERS[name]
        path = write(name, content)
        places = [place_of(example) for example in read(path)]
        assert all(place.path == str(path) for place in places)
        lines = [place.line for place in places]
        assert lines == sorted(lines)
        assert 1 <= lines[0] <= lines[-1] <= content.count("\n") + 1

    @pytest.mark.parametrize("content", ["", "\n \n\t\n"])
    def test_an_empty_file(self, write, name, content):
        read, _ = READERS[name]
        with pytest.raises(DataError, match="expected|SQuAD|not XML"):
            list(read(write(name, content)))

    def test_no_file(self, tmp_path, name):
        with pytest.raises(DataError, match="missing.*cannot be read: No such file"):
            list(READERS[name][0](tmp_path / f"missing-{name}"))

    def test_not_utf8(self, tmp_path, name):
        read, content = READERS[name]
        path = tmp_path / name
        path.write_bytes(content.encode() + b"\xff\n")
        with pytest.raises(DataError, match=r"line \d+: (byte 0xff is not UTF-8|not XML)"):
            list(read(path))

    def test_a_packed_file_that_breaks_off(self, tmp_path, name):
        read, content = READERS[name]
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(content.encode())[:-9])
        with pytest.raises(DataError, match="cannot be read to its end"):
            list(read(path))

    @settings(deadline=None)
    @given(damage=st.data())
    def test_damage_is_told_in_one_sentence(self, tmp_path_factory, name, damage):
        read, content = READERS[name]
        start = damage.draw(st.integers(0, len(content)))
        end = damage.draw(st.integers(start, min(len(content), start + 20)))
        path = tmp_path_factory.getbasetemp() / name
        put = damage.draw(st.text('()*|\t\n -{}<>&;"1\u2028', max_size=5))
        path.write_text(content[:start] + put + content[end:], encoding="utf-8", newline="")
        with suppress(ElmoError):
            list(read(path))


class TestTagged:
    def test_columns(self, write):
        first, second = read_tagged(write("a.conll", COLUMNS))
        assert (first.tokens, first.tags, first.lines) == (("EU", "rejects"), ("B-ORG", "O"), (3, 4))
        assert str(second.place()).endswith("a.conll, line 6")

    def test_another_column(self, write):
        path = write("a.conll", COLUMNS)
        assert next(read_tagged(path, column=1)).tags == ("NNP", "VBZ")
        assert next(read_tagged(path, column="1")).tags == ("NNP", "VBZ")
        assert next(read_tagged(path, words=1, column=0)).tokens == ("NNP", "VBZ")
        with pytest.raises(DataError, match="line 3: there is no column 3: the line has 3"):
            next(read_tagged(path, column=3))
        with pytest.raises(ConfigError, match="column 'ner' is no number"):
            read_tagged(path, column="ner")

    def test_strange_blanks_are_parts_of_words(self, write):
        (sentence,) = read_tagged(write("a.conll", "a\u00a0b\tO\n\u3000\tO\n\u2028x O\n".replace(" O", "\tO")))
        assert sentence.tokens == ("a\u00a0b", "\u3000", "\u2028x")

    def test_conllu(self, write):
        first, second = read_tagged(write("a.conllu", CONLLU))
        assert (first.tokens, first.tags) == (("I", "ca", "n't"), ("PRON", "AUX", "PART"))
        assert first.lines == (2, 4, 5)
        assert second.tokens == ("Yes",)
        assert next(read_tagged(write("a.conllu", CONLLU), column="xpos")).tags == ("PRP", "MD", "RB")
        with pytest.raises(ConfigError, match="no column 'lemma' of tags.*upos or xpos"):
            read_tagged(write("a.conllu", CONLLU), column="lemma")


class TestLabelled:
    def test_trees(self, write):
        first, second = read_labelled(write("a.txt", TREES))
        assert (first.text, first.label) == (("It", "works", "("), "3")
        assert (second.text, second.label, second.place.line) == (("No", "way\u00a0out"), "1", 3)

    def test_phrases(self, write):
        found = [(phrase.text, phrase.label) for phrase in read_labelled(write("a.txt", TREES), phrases=True)]
        assert found[:4] == [(("It",), "2"), (("works",), "4"), (("(",), "2"), (("works", "("), "4")]
        assert len(found) == 8

    @pytest.mark.parametrize("name", ["trec.txt", "table.tsv", "objects.jsonl"])
    def test_only_trees_have_phrases(self, write, name):
        with pytest.raises(ConfigError, match=f"{name}: phrases with labels of their own are in PTB trees alone"):
            read_labelled(write(name, READERS[name][1]), phrases=True)

    def test_trec(self, write):
        path = write("a.txt", TREC)
        first, second = read_labelled(path)
        assert (first.text, first.label) == (("How", "did", "it", "go", "?"), "DESC")
        assert [example.label for example in read_labelled(path, fine=True)] == ["DESC:manner", "NUM:date"]
        assert second.place.line == 2

    @pytest.mark.parametrize(
        ("content", "options"),
        [
            ("label\ttext_a\n1\tgood\tfilm\n", {}),
            ("1\tgood film\n", {}),
            ("id\tReview\tLabel\n7\tgood film\t1\n", {}),
            ("stars\tsaid\n1\tgood film\n", {"label": "stars", "text": "said"}),
            ("good film\tx\t1\n", {"label": "2", "text": "0"}),
            ("good film\tquestion\t1\n", {"label": "2", "text": "0"}),
        ],
    )
    def test_tables(self, write, content, options):
        (example,) = read_labelled(write("a.tsv", content), **options)
        assert (example.text.replace("\t", " "), example.label) == ("good film", "1")

    def test_a_table_that_begins_with_a_bracket_is_no_tree(self, write):
        (example,) = read_labelled(write("a.tsv", "(good film)\t1\n"), label="1", text="0")
        assert (example.text, example.label) == ("(good film)", "1")

    def test_objects(self, write):
        lines = ['{"text": "good", "label": "pos"}', "", '{"words": ["so", "so"], "label": 0, "class": 1}']
        path = write("a.jsonl", "\n".join(lines))
        assert next(read_labelled(path)).text == "good"
        with pytest.raises(DataError, match=r"line 1: found the fields 'text', 'label': expected .* field 'words'"):
            next(read_labelled(path, text="words"))
        (example,) = read_labelled(write("b.jsonl", lines[2]), text="words", label="class")
        assert (example.text, example.label) == (("so", "so"), "1")


class TestPairs:
    def test_snli(self, write):
        (pair,) = read_pairs(write("a.jsonl", SNLI))
        assert (pair.first, pair.second, pair.label, pair.place.line) == ("A", "B", "neutral", 1)

    def test_sick(self, write):
        (pair,) = read_pairs(write("a.txt", SICK))
        assert (pair.first, pair.second, pair.label, pair.place.line) == ("A b", "C d", "NEUTRAL", 2)

    def test_sick_by_the_names_of_its_later_edition(self, write):
        names = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\n"
        (pair,) = read_pairs(write("a.txt", names + "1\tA b\tC d\tNEUTRAL\t4.5\n"))
        assert (pair.first, pair.second, pair.label) == ("A b", "C d", "NEUTRAL")


class TestQuestions:
    def test_places_are_counted_in_characters(self, write):
        (question,) = read_questions(write("a.json", squad()))
        assert question.answers == (Answer("c", 4),)
        assert question.answers[0].end == 5
        assert (question.id, question.question, question.context) == ("q1", "What?", "a 𝔟 c")

    def test_the_place_is_that_of_the_question(self, write):
        path = write("a.json", squad())
        (question,) = read_questions(path)
        assert '"q1"' in path.read_text(encoding="utf-8").split("\n")[question.place.line - 1]
        assert str(question.place).endswith("question 'q1'")

    def test_the_place_of_any_id(self, write):
        """Written out or escaped, twice the same, or standing elsewhere before."""
        file = json.loads(squad())
        [paragraph] = file["data"][0]["paragraphs"]
        ids = ["c", "题一", 'a"/\\b', "c", "c"]
        paragraph["qas"] = [paragraph["qas"][0] | {"id": name} for name in ids]
        for ascii_only in (True, False):
            path = write("a.json", json.dumps(file, indent=1, ensure_ascii=ascii_only))
            lines = path.read_text(encoding="utf-8").split("\n")
            expected = [number for number, line in enumerate(lines, 1) if '"id": ' in line]
            assert [question.place.line for question in read_questions(path)] == expected


class TestRoles:
    def test_2005(self, write):
        first, second = read_roles(write("a.txt", ROLES_2005))
        assert first.tokens == ("The", "cat", "came", "and", "sat")
        subject = LabelledSpan(0, 2, "A0")
        assert first.frames == (
            Frame(2, (subject, LabelledSpan(2, 3, "V"))),
            Frame(4, (subject, LabelledSpan(4, 5, "V"))),
        )
        assert (second.tokens, second.frames, second.place.line) == (("Yes",), (), 7)

    def test_2012(self, write):
        first, second = read_roles(write("a.txt", ROLES_2012))
        assert first.tokens == ("Cats", "give", "up")
        assert first.frames == (Frame(1, (LabelledSpan(0, 1, "ARG0"), LabelledSpan(1, 3, "V"))),)
        assert (second.tokens, second.frames) == (("Yes",), ())

    def test_a_folder(self, tmp_path, write):
        write("b.v4_gold_conll", ROLES_2012)
        write("a.conll", ROLES_2005)
        write("notes.txt", "no sentence")
        assert [len(found.tokens) for found in read_roles(tmp_path)] == [5, 1, 3, 1]

    def test_a_folder_without_sentences(self, tmp_path):
        with pytest.raises(DataError, match="no file here ends in conll"):
            list(read_roles(tmp_path))


class TestCoreference:
    def test_mentions_may_be_nested_and_cross(self, write):
        (found,) = read_coreference(write("a.conll", COREFERENCE))
        assert found.name == "a, part 1"
        assert found.sentences == (("w0", "w1", "w2", "w3", "w4"),)
        assert found.clusters == ((Span(0, 3),), (Span(0, 4), Span(4, 5)), (Span(3, 4),))

    def test_clusters_that_share_a_mention_are_one(self, write):
        """As OntoNotes came, which has some mentions twice."""
        (found,) = read_coreference(write("a.conll", document("(1)|(2)", "(3)", "(2)|(4)", "(1)|(1)", "(4)", "(5)")))
        assert found.clusters == (
            (Span(0, 1), Span(2, 3), Span(3, 4), Span(4, 5)),
            (Span(1, 2),),
            (Span(5, 6),),
        )

    def test_a_folder(self, tmp_path, write):
        write("b.v4_gold_conll", document("(0", "0)", name="#begin document (b); part 000"))
        write("a.conll", COREFERENCE + document("(0)", "-", name="#begin document (c); part 002"))
        write("notes.txt", "not a document")
        assert [found.name for found in read_coreference(tmp_path)] == ["a, part 1", "c, part 2", "b"]

    def test_a_folder_without_documents(self, tmp_path):
        with pytest.raises(DataError, match="no file here ends in conll"):
            list(read_coreference(tmp_path))


class TestSenses:
    def test_words_of_several_tokens(self, write):
        keys = write("keys.txt", KEYS)
        first, second = read_senses(write("a.xml", SENSES), keys)
        assert first.tokens == ("The", "river", "bank", "R&D")
        assert first.instances == (
            SenseInstance("d0.s0.t0", "river_bank", "NOUN", 1, 3, ("river_bank%1:17:00::", "bank%1:17:01::")),
            SenseInstance("d0.s0.t1", "r&d", "NOUN", 3, 4, ("r&d%1:04:00::",)),
        )
        assert (second.tokens, second.instances, second.place.line) == (("Yes",), (), 9)

    def test_without_gold(self, write):
        first, _ = read_senses(write("a.xml", SENSES))
        assert [instance.keys for instance in first.instances] == [(), ()]

    def test_the_inventory(self, write):
        path = write("senses.tsv", "bank\tNOUN\tbank%1:17:01:: bank%1:14:00::\n\nbank\tVERB\tbank%2:40:00::\n")
        assert read_inventory(path)["bank", "NOUN"] == ("bank%1:17:01::", "bank%1:14:00::")

    def test_entities_are_not_expanded(self, write):
        lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(9))
        bomb = f"<!DOCTYPE corpus [{lol}]><corpus><text><sentence><wf>&l8;</wf></sentence></text></corpus>"
        with pytest.raises(DataError, match="line 1: the XML defines an entity, 'l0': expected none"):
            list(read_senses(write("a.xml", bomb)))

    def test_no_file_is_fetched(self, write):
        secret = write("secret.txt", "secret")
        content = SENSES.replace("<corpus", f'<!DOCTYPE corpus [<!ENTITY x SYSTEM "{secret}">]>\n<corpus', 1)
        with pytest.raises(DataError, match="line 2: the XML defines an entity, 'x'"):
            list(read_senses(write("a.xml", content.replace(">Yes<", ">&x;<"))))

    def test_a_word_without_end(self, write):
        content = SENSES.replace(">Yes<", f">{'y' * 100_000}<")
        with pytest.raises(DataError, match="more than 65,536 characters in one <wf>"):
            list(read_senses(write("a.xml", content)))


def broken(content: str, old: str, new: str) -> str:
    assert old in content
    return content.replace(old, new, 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.conll", broken(COLUMNS, "rejects VBZ O", "rejects VBZ"), "line 4: .* 2 columns: expected 3"),
        ("a.conll", "a\nb\n", "line 1: found 'a', a single column: expected a word and its tag"),
        ("a.conll", "a\tO\nb\t\n", "line 2: found 'b\\\\t': column -1 is empty"),
        ("a.conllu", broken(CONLLU, "\tMD\t_", "\tMD"), "line 4: found 9 columns: expected the ten"),
        ("a.conllu", broken(CONLLU, "3\tn't", "4\tn't"), "line 5: found the word number '4': expected 3"),
        ("a.conllu", broken(CONLLU, "AUX", "_"), "line 4: the word 'ca' has no UPOS: expected a tag"),
    ],
)
def test_broken_tags(write, name, content, message):
    with pytest.raises(DataError, match=message):
        list(read_tagged(write(name, content)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "(3 (2 It) (4 works)\n", "line 1: unbalanced brackets: 1 not closed"),
        ("a.txt", "(3 (2 It) (4 works)))\n", "line 1: unbalanced brackets: one too many is closed after 'works'"),
        ("a.txt", "(2 It) (4 works)\n", "line 1: unbalanced brackets: the tree ends before '\\(4'"),
        ("a.txt", "(3 (2 It) works)\n", "line 1: found 'works\\)': expected a node"),
        ("a.txt", "(3 (2 It) ())\n", "line 1: found '\\(\\)\\)': expected a bracket and a label"),
        ("a.txt", TREC + "What is it ?\n", "line 3: found 'What is it \\?': expected COARSE:fine"),
        ("a.tsv", "label\ttext\n1\n", "line 2: found 1 columns: expected 2"),
        ("a.tsv", "label\ttext\n1\t \n", "line 2: an empty column"),
        ("a.tsv", "just words\n", "line 1: found 'just words': expected the label and the text.*columns, with tabs"),
        (
            "a.jsonl",
            '{"text": "a", "label": 1}\n{"text": "b"}\n',
            "line 2: found nothing as the label: expected a string",
        ),
        ("a.jsonl", '{"text": 3, "label": 1}\n', "line 1: found 3 as the text: expected a string"),
        ("a.jsonl", '{"text": "a"}\n', "line 1: found 'text': expected the label and the text.*fields"),
        ("a.csv", "label,text\n1,so, so\n", "line 2: found 3 columns: expected 2 as in the first line; .* in quotes"),
        ("a.csv", 'label,text\n1,"so\n', r"line 2: not CSV \(unexpected end of data\)"),
        ("a.csv", "label,text\n,good\n", "line 2: an empty column"),
        ("a.txt", "__label__pos good\n__label__pos\n", "line 2: found '__label__pos': expected one __label__CLASS"),
        ("a.txt", "__label__pos good\n__label__a __label__b x\n", "line 2: found '__label__a .*expected one __label__"),
        ("a.jsonl", "[1]\n", "line 1: found no JSON object"),
        ("a.jsonl", '{"a":' * 9999, "line 1: found no JSON object"),
    ],
)
def test_broken_labels(write, name, content, message):
    with pytest.raises(DataError, match=message):
        list(read_labelled(write(name, content)))


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [
        (read_pairs, "a.jsonl", '{"gold_label": "neutral", "sentence1": "A"}\n', "line 1: .* the second text"),
        (
            read_pairs,
            "a.txt",
            "a\tb\n",
            "line 1: found 'a', 'b': expected the first text and the second text and the la",
        ),
        (read_pairs, "a.txt", broken(SICK, "\tNEUTRAL", ""), "line 2: found 4 columns: expected 5"),
        (read_questions, "a.json", squad(start=3), r"line \d+, question 'q1': answer_start is 3, .*' ': .* 'c'"),
        (read_questions, "a.json", squad(start=-1), "answer_start is -1"),
        (read_questions, "a.json", squad(text=""), "expected the answer ''"),
        (read_questions, "a.json", squad(answers=[]), "question 'q1': it has no answers"),
        (read_questions, "a.json", squad(id=7), "not the JSON of SQuAD 1.1: Expected `str`, got `int`.*id"),
        (read_questions, "a.json", "{", "not the JSON of SQuAD 1.1"),
        (read_roles, "a.txt", broken(ROLES_2012, "* *) -", "* * -"), "line 3: unbalanced bracket: '\\(V\\*' is not"),
        (read_roles, "a.txt", broken(ROLES_2005, "and CC * - - *", "and CC * - - *)"), "line 4: .* closes nothing"),
        (read_roles, "a.txt", broken(ROLES_2005, "cat NN *) - - *)", "cat NN *) - - (A1*)"), "line 2: .* overlap"),
        (read_roles, "a.txt", broken(ROLES_2005, "(V*) *\n", "(V*)\n"), "line 3: found 6 columns: expected 7"),
        (
            read_roles,
            "a.txt",
            ROLES_2005 + "\nGo VB * 01 go\n",
            "line 9: found 5 columns: expected 6, for 1",
        ),
        (read_roles, "a.txt", ROLES_2005 + "\nGo VB\n", "line 9: found 2 columns: expected 6"),
        (read_roles, "a.txt", "Go VB * x\n", "line 1: no column has as many predicates"),
        (read_roles, "a.txt", broken(ROLES_2005, "(V*)", "*"), "line 1: a column of roles .* has no predicate"),
        (read_roles, "a.txt", broken(ROLES_2012, "* *) -", "* *)"), "line 4: found 12 columns: expected 13"),
        (read_roles, "a.txt", WITHOUT_COREFERENCE, r"line 2: found '\(ARG0\*\)' in the last column: expected coref"),
        (read_roles, "a.txt", broken(ROLES_2012, "#end document\n", ""), "line 1: the document does not end"),
        (read_coreference, "a.conll", document("(1", "-"), "line 2: unbalanced bracket: '\\(1' is not closed"),
        (read_coreference, "a.conll", document("-", "1)"), "line 3: unbalanced bracket: '1\\)' closes nothing"),
        (read_coreference, "a.conll", document("x"), "line 2: found 'x': expected '-'"),
        (read_coreference, "a.conll", "a\tb\n", "line 1: found 'a\\\\tb': expected '#begin document"),
        (read_coreference, "a.conll", "#begin document (a); part 0\na b\n", "line 2: found 2 columns: expected 12"),
        (read_senses, "a.xml", broken(SENSES, "</wf>", ""), "line 6: found <instance>: expected no element here"),
        (read_senses, "a.xml", broken(SENSES, "<wf", "<word"), "line 5: found <word>: expected <wf> or <instance>"),
        (read_senses, "a.xml", broken(SENSES, 'pos="NOUN"', 'pos="N"'), "line 6: .* pos 'N': expected NOUN"),
        (read_senses, "a.xml", broken(SENSES, 'lemma="river_bank"', ""), "line 6: the instance has no lemma"),
        (read_senses, "a.xml", broken(SENSES, ">The<", "> <"), "line 5: an empty word"),
        (read_senses, "a.xml", SENSES[:300], r"line \d+: not XML"),
        (read_senses, "a.xml", broken(SENSES, "UTF-8", "UTF-80"), "line 1: its encoding cannot be read.*UTF-80"),
        (read_senses, "a.xml", broken(SENSES, "UTF-8", "big5"), "line 1: its encoding cannot be read"),
        (read_inventory, "a.tsv", "bank\tNOUN\n", "line 1: found .* expected a lemma"),
    ],
)
def test_broken_structures(write, read, name, content, message):
    with pytest.raises(DataError, match=message):
        list(read(write(name, content)))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (KEYS.split("\n")[0], "a.xml, line 7: the instance 'd0.s0.t1' has no line of its own in .*keys.txt"),
        (KEYS + "d9 x%1\n", "keys.txt, line 3: the instance 'd9' does not stand in .*a.xml"),
        (KEYS + "d0.s0.t1 x%1\n", "keys.txt, line 3: the instance 'd0.s0.t1' was in line 2 already"),
        ("d0.s0.t0\n", "keys.txt, line 1: found 'd0.s0.t0': expected an id and at least one sense key"),
    ],
)
def test_broken_keys(write, keys, message):
    with pytest.raises(DataError, match=message):
        list(read_senses(write("a.xml", SENSES), write("keys.txt", keys)))


class TestRealData:
    """The counts that the data's own description gives."""

    @pytest.mark.parametrize(
        ("file", "sentences", "tokens", "begun"),
        [
            ("wnut17/train.conll", 3394, 62730, 1975),
            ("wnut17/dev.conll", 1009, 15733, 836),
            ("litbank-ner/test.conll", 818, 20943, 1153),
            ("weibo-ner/dev.conll", 270, 14509, 389),
            ("ud-ewt/dev.conllu", 2001, 25147, 0),
        ],
    )
    def test_tags(self, shared_data, file, sentences, tokens, begun):
        found = list(read_tagged(shared_data / "tagging" / file))
        tags = list(chain.from_iterable(sentence.tags for sentence in found))
        assert (len(found), len(tags)) == (sentences, tokens)
        assert sum(tag.startswith("B-") for tag in tags) == begun

    @pytest.mark.parametrize(
        ("file", "count", "labels"),
        [
            ("sst5/dev.txt", 1101, 5),
            ("trec/test.txt", 500, 6),
            ("chnsenticorp/dev.tsv", 1200, 2),
        ],
    )
    def test_labels(self, shared_data, file, count, labels):
        found = list(read_labelled(shared_data / "classify" / file))
        assert (len(found), len({example.label for example in found})) == (count, labels)

    def test_a_leaf_with_a_blank_that_is_none(self, shared_data):
        found = read_labelled(shared_data / "classify" / "sst5" / "train.txt")
        assert sum("\u00a0" in token for example in found for token in example.text) == 3

    @pytest.mark.parametrize(("file", "count"), [("snli/dev.jsonl", 1000), ("sick/test.txt", 4927)])
    def test_pairs(self, shared_data, file, count):
        found = list(read_pairs(shared_data / "pairs" / file))
        assert (len(found), len({pair.label for pair in found})) == (count, 3)

    @pytest.mark.parametrize(
        ("file", "count"), [("squadshifts/dev.json", 793), ("xquad/en.json", 1190), ("xquad/zh.json", 1190)]
    )
    def test_questions(self, shared_data, file, count):
        assert sum(1 for _ in read_questions(shared_data / "qa" / file)) == count

    def test_roles(self, shared_data):
        found = list(read_roles(shared_data / "srl" / "ewt" / "dev.conll"))
        frames = [frame for sentence in found for frame in sentence.frames]
        assert (len(found), sum(len(sentence.tokens) for sentence in found), len(frames)) == (1965, 24827, 4946)
        spans = [span for frame in frames for span in frame.spans]
        assert sum(span.label != "V" for span in spans) == 9557

    def test_coreference(self, shared_data):
        found = list(read_coreference(shared_data / "coref" / "litbank" / "dev"))
        assert sum(len(sentence) for document in found for sentence in document.sentences) == 20438
        clusters = [cluster for document in found for cluster in document.clusters]
        assert (len(found), len(clusters), sum(map(len, clusters))) == (10, 776, 3053)

    def test_senses(self, shared_data):
        folder = shared_data / "wsd" / "eval" / "ALL"
        found = list(read_senses(folder / "ALL.data.xml", folder / "ALL.gold.key.txt"))
        assert sum(len(sentence.instances) for sentence in found) == 7253

    def test_the_senses_of_wordnet(self, shared_data):
        inventory = read_inventory(shared_data / "wsd" / "wordnet30.senses.tsv.xz")
        assert (len(inventory), sum(map(len, inventory.values()))) == (155_287, 206_941)


@pytest.mark.parametrize("encoding", sorted({*aliases.values(), "idna", "punycode", "undefined", "utf-7", "x" * 60}))
def test_senses_of_any_encoding_are_read_or_refused(encoding, tmp_path):
    path = tmp_path / "a.xml"
    path.write_text(SENSES.replace("UTF-8", encoding), encoding="utf-8")
    try:
        assert len(list(read_senses(path))) == 2
    except DataError as error:
        assert re.match(r".*a.xml, line 1: (not XML|its encoding cannot be read)", str(error))  # noqa: PT017
