"""From text files to a prepared corpus: the ids of direct tokenisation, reuse, damage, kills and bounded memory."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import hear_interrupts

from elmokit.errors import ConfigError, DataError, ElmoError, OutputError
from elmokit.files import locked
from elmokit.pretrain.corpus import prepare, read_corpus
from elmokit.text.characters import most_frequent_characters
from elmokit.text.corpus import LONGEST_SENTENCE
from elmokit.text.numbering import LONGEST_WORD
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenizers import get_tokenizer
from elmokit.text.vocabulary import Vocabulary

ENGLISH = (
    "the a old bank river Mr. Smith she didn't see rose green and steep of money house went said 1,000 letters".split()
)
CHINESE = "宝玉 黛玉 笑道 听了 便 说 今天 天气 很好 我们 去 园子里 看花 这是 怎么 一回事 贾母 凤姐 袭人 来了".split()


def paragraphs(number: int, *, seed: int = 0, chinese: bool = False) -> list[str]:
    """Paragraphs of made-up sentences, a few of them blank."""
    choose = random.Random(seed)
    words, gap, stops = (CHINESE, "", "。！？") if chinese else (ENGLISH, " ", ".!?")
    lines = []
    for index in range(number):
        sentences = (gap.join(choose.choices(words, k=choose.randint(2, 15))) for _ in range(choose.randint(1, 4)))
        line = gap.join(f"{sentence}{gap}{choose.choice(stops)}" for sentence in sentences)
        lines.append(f"{line}{gap}w{index}" if index % 10 else "")
    return lines


def text_file(path: Path, number: int = 300, **options) -> Path:
    path.write_text("".join(f"{line}\n" for line in paragraphs(number, **options)), encoding="utf-8")
    return path


def sentences_of(text: str, tokenizer: str = "words") -> list[list[str]]:
    tokenize = get_tokenizer(tokenizer)
    spans = ((line, start, end) for line in text.split("\n") for start, end in split_sentences(line))
    return [[token.text for token in tokenize(line[start:end])] for line, start, end in spans]


def sentences_in(corpus, part: str) -> list[list[str]]:
    sentences: list[list[str]] = []
    for index in getattr(corpus, part).ids.tolist():
        if index == 0:
            sentences.append([])
        elif index != 1:
            sentences[-1].append(corpus.words[index])
    return sentences


class Seen:
    """Keeps what it is told."""

    def __init__(self):
        self.messages, self.updates = [], []

    def message(self, text, /):
        self.messages.append(text)

    def update(self, *progress, unit="", note=""):
        assert unit == "bytes"
        self.updates.append(progress)


@pytest.fixture
def english(tmp_path) -> Path:
    return text_file(tmp_path / "english.txt")


@pytest.mark.parametrize(
    ("tokenizer", "chinese"), [("words", False), ("whitespace", False), ("jieba", True), ("characters", True)]
)
def test_ids_are_those_of_direct_tokenisation(tmp_path, tokenizer, chinese):
    path = text_file(tmp_path / "a.txt", chinese=chinese)
    corpus = prepare([path], tmp_path / "out", tokenizer=tokenizer, valid_share=0)
    expected = sentences_of(path.read_text(encoding="utf-8"), tokenizer)
    assert sentences_in(corpus, "train") == expected
    assert corpus.train.sentences == len(expected)
    assert corpus.train.tokens == sum(map(len, expected))
    assert len(corpus.valid.ids) == corpus.valid.tokens == corpus.valid.oov_rate == 0


def test_the_lexicon_is_in_the_order_training_needs(tmp_path, english):
    corpus = prepare([english], tmp_path / "out", vocab_size=30, min_count=2)
    counts = Counter(word for sentence in sentences_in(corpus, "train") for word in sentence)
    held_out = Counter(word for sentence in sentences_in(corpus, "valid") for word in sentence)
    assert corpus.vocabulary.words == Vocabulary.from_counts(counts, size=30, min_count=2).words
    assert corpus.words[: len(counts) + 3] == Vocabulary.from_counts(counts).words
    assert set(corpus.words[len(counts) + 3 :]) == set(held_out) - set(counts)
    assert corpus.types == len(set(counts) | set(held_out))
    for part, found in ((0, counts), (1, held_out)):
        assert corpus.counts[part].tolist()[3:] == [found[word] for word in corpus.words[3:]]
    assert corpus.train.unknown == sum(counts[word] for word in corpus.words[len(corpus.vocabulary) :])
    assert corpus.valid.unknown == sum(held_out[word] for word in corpus.words[len(corpus.vocabulary) :])
    assert corpus.train.oov_rate == corpus.train.unknown / corpus.train.tokens
    assert corpus.characters(limit=9) == most_frequent_characters(counts, limit=9)


def test_min_count_alone_bounds_the_vocabulary(tmp_path, english):
    frequent = prepare([english], tmp_path / "out", min_count=5).vocabulary
    everything = prepare([english], tmp_path / "out").vocabulary
    assert frequent.words == everything.words[: len(frequent)]
    assert 3 < len(frequent) < len(everything)


def test_a_given_vocabulary_comes_first_as_it_is(tmp_path, english):
    given = Vocabulary(["<S>", "</S>", "<UNK>", "bank", "nowhere", "the"])
    corpus = prepare([english], tmp_path / "out", vocabulary=given, vocab_size=4)
    assert corpus.vocabulary.words == corpus.words[:6] == given.words
    assert corpus.counts[0, 4] == 0
    known = sum(word in given for sentence in sentences_in(corpus, "train") for word in sentence)
    assert corpus.train.tokens - corpus.train.unknown == known
    assert list(corpus.counts[0, 6:]) == sorted(corpus.counts[0, 6:], reverse=True)


def test_a_line_is_a_sentence_if_it_is_not_to_be_split(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Mr . Smith sat . He rose .\n\nOne\r\nTwo", encoding="utf-8")
    corpus = prepare([path], tmp_path / "out", tokenizer="whitespace", lines="sentences", valid_share=0)
    assert sentences_in(corpus, "train") == ["Mr . Smith sat . He rose .".split(), ["One"], ["Two"]]


def test_names_of_bounds_in_the_text_are_unknown_words(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("<S> a </S> b <UNK> a\n", encoding="utf-8")
    corpus = prepare([path], tmp_path / "out", tokenizer="whitespace", valid_share=0)
    assert corpus.words == ("<S>", "</S>", "<UNK>", "a", "b")
    assert corpus.train.ids.tolist() == [0, 2, 3, 2, 4, 2, 3, 1]
    assert (corpus.train.tokens, corpus.train.unknown) == (6, 3)


def test_endless_words_and_sentences_are_cut(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x" * 5000 + " " + "x" * 6000 + " y" * (LONGEST_SENTENCE - 1), encoding="utf-8")
    corpus = prepare([path], tmp_path / "out", tokenizer="whitespace", valid_share=0)
    assert corpus.words[3:] == ("y", "x" * LONGEST_WORD)
    assert corpus.counts[0].tolist() == [2, 2, 0, LONGEST_SENTENCE - 1, 2]


def test_the_held_out_part_is_spread_over_the_corpus(tmp_path):
    path = text_file(tmp_path / "a.txt", 3000)
    corpus = prepare([path], tmp_path / "out", valid_share=0.05)
    everything = sentences_of(path.read_text(encoding="utf-8"))
    train, valid = sentences_in(corpus, "train"), sentences_in(corpus, "valid")
    assert Counter(map(tuple, train + valid)) == Counter(map(tuple, everything))
    assert corpus.valid.tokens / (corpus.valid.tokens + corpus.train.tokens) == pytest.approx(0.05, abs=0.01)
    numbers = [int(word[1:]) for sentence in valid for word in sentence if word[1:].isdigit() and word[0] == "w"]
    assert numbers == sorted(numbers)
    assert all(any(start <= number < start + 1000 for number in numbers) for start in (0, 1000, 2000))


def test_documents_are_held_out_whole(tmp_path):
    documents = ["\n".join(paragraphs(20, seed=seed)) for seed in range(50)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
    corpus = prepare([path], tmp_path / "out", valid_share=0.1)
    valid = sentences_in(corpus, "valid")
    held_out = [text for text in documents if sentences_of(text)[0] in valid]
    assert 3 <= len(held_out) <= 7
    assert valid == [sentence for text in held_out for sentence in sentences_of(text)]


def test_of_two_lines_the_last_is_held_out(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One line.\nAnother line.\n\n", encoding="utf-8")
    corpus = prepare([path], tmp_path / "out")
    assert sentences_in(corpus, "train") == [["One", "line", "."]]
    assert sentences_in(corpus, "valid") == [["Another", "line", "."]]


def test_a_held_out_file_is_not_trained_on(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    train, valid = text_file(folder / "a.txt"), text_file(folder / "b.txt", seed=1)
    corpus = prepare([folder], tmp_path / "out", valid_paths=[valid])
    assert sentences_in(corpus, "train") == sentences_of(train.read_text(encoding="utf-8"))
    assert sentences_in(corpus, "valid") == sentences_of(valid.read_text(encoding="utf-8"))


def test_processes_change_nothing(tmp_path):
    path = text_file(tmp_path / "a.txt", 11_000)
    seen = Seen()
    one = prepare([path], tmp_path / "one", tokenizer="whitespace", workers=1)
    two = prepare([path], tmp_path / "two", tokenizer="whitespace", workers=2, progress=seen)
    size = path.stat().st_size
    assert size > 1_000_000
    assert seen.updates == sorted(seen.updates)
    assert seen.updates[-1] == ("reading", size, size)
    assert seen.messages == [f"read {size / 1e6:.1f} MB of text"]
    assert one.words == two.words
    np.testing.assert_array_equal(one.train.ids, two.train.ids)
    np.testing.assert_array_equal(one.valid.ids, two.valid.ids)
    np.testing.assert_array_equal(one.counts, two.counts)


def test_beyond_the_limit_the_rarest_words_are_forgotten(tmp_path):
    path = text_file(tmp_path / "a.txt", 8000)
    options = {"tokenizer": "whitespace", "valid_share": 0.0}
    whole = prepare([path], tmp_path / "whole", **options)
    few = prepare([path], tmp_path / "few", max_types=500, **options)
    assert whole.types > 7000
    assert few.types <= 500
    assert set(ENGLISH) <= set(few.words)
    assert len(few.train.ids) == len(whole.train.ids)
    assert whole.forgotten == 0
    assert few.forgotten == few.counts[0, 2] == (few.train.ids == 2).sum() > 5000
    kept = [few.words[index] for index in few.train.ids if index > 2]
    assert Counter(kept) == {word: count for word, count in zip(few.words[3:], few.counts[0, 3:], strict=True) if count}


def stamp(folder: Path) -> tuple[int, int]:
    status = (folder / "manifest.json").stat()
    return status.st_ino, status.st_mtime_ns


def test_a_corpus_is_reused_until_something_changes(tmp_path, english):
    out = tmp_path / "out"
    first = prepare([english], out)
    made = stamp(out)
    english.touch()
    moved = english.rename(tmp_path / "moved.txt")
    again = prepare([moved], out, vocab_size=10, workers=2)
    assert stamp(out) == made
    assert first.words == again.words
    assert len(again.vocabulary) == 10
    extra = text_file(tmp_path / "extra.txt", 20, seed=1)
    given = Vocabulary(["<S>", "</S>", "<UNK>", "bank"])
    content = moved.read_text(encoding="utf-8")
    for change in (
        {"tokenizer": "characters"},
        {"lines": "sentences"},
        {"valid_share": 0.1},
        {"valid_paths": [extra]},
        {"vocabulary": given},
        {"vocabulary": Vocabulary([*given.words, "river"])},
        {"max_types": 1000},
        {"field": "body"},
    ):
        prepare([moved], out, **change)
        assert stamp(out) != made
        made = stamp(out)
    moved.write_text(content.replace("w1\n", "w2\n", 1), encoding="utf-8")
    prepare([moved], out, field="body")
    assert stamp(out) != made
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["train.ids", "valid.ids", "words.txt", "counts.npy", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "short"])
def test_a_damaged_corpus_is_not_trusted(tmp_path, english, name, damage):
    out = tmp_path / "out"
    expected = prepare([english], out).train.ids.tolist()
    if damage == "missing":
        (out / name).unlink()
    else:
        os.truncate(out / name, (out / name).stat().st_size // 2)
    with pytest.raises(DataError, match="no prepared corpus, or a damaged one: prepare it again"):
        read_corpus(out)
    assert prepare([english], out).train.ids.tolist() == expected


def test_a_corpus_of_an_older_version_is_built_again(tmp_path, english):
    """Format 1 took every line for a paragraph."""
    out, seen = tmp_path / "out", Seen()
    prepare([english], out)
    manifest = json.loads((out / "manifest.json").read_text())
    older = manifest | {"format": 1, "fingerprint": "of then", "settings": {"tokenizer": "words", "split": True}}
    (out / "manifest.json").write_text(json.dumps(older))
    with pytest.raises(DataError, match="prepared by an older version of elmokit: prepare it again"):
        read_corpus(out)
    prepare([english], out, progress=seen)
    assert seen.messages[0] == f"{out}: prepared by an older version of elmokit, so it is prepared again"
    assert json.loads((out / "manifest.json").read_text()) == manifest
    (out / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(DataError, match="prepared by a newer version of elmokit"):
        read_corpus(out)


def test_a_wrapped_text_is_the_text_itself(tmp_path):
    lines = [line for line in paragraphs(200) if line]
    (tmp_path / "plain.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    wrapped = "".join(f"{textwrap.fill(line, 70, break_on_hyphens=False)}\n\n" for line in lines)
    (tmp_path / "wrapped.txt").write_text(wrapped, encoding="utf-8")
    plain, again = (
        prepare([tmp_path / f"{name}.txt"], tmp_path / name, valid_share=0) for name in ("plain", "wrapped")
    )
    assert plain.words == again.words
    np.testing.assert_array_equal(plain.train.ids, again.train.ids)


def test_two_processes_do_not_write_the_same_corpus(tmp_path, english):
    with locked(tmp_path / "out"), pytest.raises(OutputError, match=r"out is in use by process \d+"):
        prepare([english], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    prepare([english], tmp_path / "out")
    with locked(tmp_path / "out"):
        prepare([english], tmp_path / "out")  # to read it is no harm


@pytest.mark.parametrize("content", ["", "\n\n \n", "\ufeff"])
def test_an_empty_corpus_is_refused(tmp_path, content):
    path = tmp_path / "a.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt: no words in the whole corpus"):
        prepare([path], tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_wrong_settings_are_refused(tmp_path, english):
    blank = tmp_path / "blank.txt"
    blank.write_text("\n")
    line = tmp_path / "line.txt"
    line.write_text("Just this.")
    for error, message, paths, options in (
        (ConfigError, "no tokenizer 'nltk'", [english], {"tokenizer": "nltk"}),
        (ConfigError, "valid_share is 1", [english], {"valid_share": 1.0}),
        (ConfigError, "vocabulary of size 2 is too small", [english], {"vocab_size": 2}),
        (DataError, "the vocabulary begins with", [english], {"vocabulary": Vocabulary(["a", "b"])}),
        (DataError, "no files to train on: name some more", [], {}),
        (DataError, "all of them are held out", [english], {"valid_paths": [english]}),
        (DataError, r"line\.txt: one paragraph only", [line], {}),
        (DataError, r"blank\.txt: no words to train on", [blank], {"valid_paths": [english]}),
        (DataError, r"blank\.txt: no words in the held-out text", [english], {"valid_paths": [blank]}),
    ):
        with pytest.raises(error, match=message):
            prepare(paths, tmp_path / "out", **options)


def test_nothing_of_the_user_is_overwritten(tmp_path, english):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("Years of work.")
    for folder, message in ((tmp_path / "notes", "holds other files too .'thesis.txt'"), (english, "is a file")):
        with pytest.raises(OutputError, match=message):
            prepare([english], folder)
    assert [file.name for file in (tmp_path / "notes").iterdir()] == ["thesis.txt"]
    assert (tmp_path / "notes" / "thesis.txt").read_text() == "Years of work."


SCRIPT = """
import os, signal, sys, time
from multiprocessing import active_children
from pathlib import Path
from elmokit.pretrain.corpus import prepare

class Progress:
    def message(self, text):
        pass

    def update(self, *progress, **notes):
        print(*(child.pid for child in active_children()), flush=True)
        {action}

if __name__ == "__main__":
    prepare([Path(sys.argv[1])], Path(sys.argv[2]), tokenizer="whitespace", workers=2, progress=Progress())
"""


def run_script(folder: Path, action: str) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(action=action))
    path = text_file(folder / "a.txt", 11_000)
    command = [sys.executable, str(script), str(path), str(folder / "out")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, preexec_fn=hear_interrupts, **pipes)


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_run_leaves_nothing_that_is_trusted(tmp_path):
    process = run_script(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    children = list(map(int, process.communicate()[0].split()))
    assert process.returncode == -signal.SIGKILL
    assert len(children) == 2
    wait_until_gone(children)
    with pytest.raises(DataError, match="no prepared corpus"):
        read_corpus(tmp_path / "out")
    left = [file.name for file in tmp_path.iterdir() if file.name.startswith(".")]
    assert left == [f".out.{process.pid}.partial"]
    corpus = prepare([tmp_path / "a.txt"], tmp_path / "out", tokenizer="whitespace", workers=1)
    everything = sentences_of((tmp_path / "a.txt").read_text(encoding="utf-8"), "whitespace")
    assert corpus.train.sentences + corpus.valid.sentences == len(everything)
    assert not (tmp_path / left[0]).exists()
    assert not (tmp_path / "out" / ".lock").exists()


def test_an_interrupt_ends_all_processes_in_good_order(tmp_path):
    process = run_script(tmp_path, "time.sleep(0.2)")
    children = list(map(int, process.stdout.readline().split()))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the processes too
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == errors.count("KeyboardInterrupt") == 1
    wait_until_gone(children)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt", "script.py"]


def test_the_death_of_a_process_is_told(tmp_path):
    process = run_script(tmp_path, "[os.kill(child.pid, signal.SIGKILL) for child in active_children()[:1]]")
    _, errors = process.communicate(timeout=30)
    assert f"{ElmoError.__name__}: a process that tokenizes text has died" in errors
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt", "script.py"]


MEASURE = """
import re, resource, sys
from pathlib import Path
from elmokit.pretrain.corpus import prepare

if __name__ == "__main__":
    corpus = prepare([Path(sys.argv[1])], Path(sys.argv[2]), tokenizer="whitespace", lines="sentences", workers=2)
    # Not ru_maxrss, which begins with what the process that started this one had in use.
    own = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
    print(corpus.train.tokens, own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    (tmp_path / "script.py").write_text(MEASURE)
    lines = [f"{line}\n" for line in paragraphs(11_000)]
    peaks = []
    for times in (1, 17):
        path = tmp_path / f"{times}.txt"
        path.write_text("".join(lines) * times, encoding="utf-8")
        command = [sys.executable, tmp_path / "script.py", path, tmp_path / f"out{times}"]
        peaks.append([int(number) for number in subprocess.check_output(command, text=True).split()])
    (few, *small), (many, *large) = peaks
    assert many > 16 * few
    for before, after in zip(small, large, strict=True):
        assert after - before < 8_000  # kB: the text grows by 19 MB, its ids by 16 MB
