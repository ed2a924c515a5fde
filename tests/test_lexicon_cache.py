"""What is kept of a corpus: the same answers as without, for the same model and text alone, in bounded room."""

import io
import os
import stat
from functools import partial

import pytest
from conftest import random_elmo
from test_lexicon import MONEY, RIVER, around

import elmokit
from elmokit.errors import ConfigError, DataError
from elmokit.lexicon import CachedCorpus, context_neighbors, open_corpus, type_vectors, word_neighbors
from elmokit.lexicon import cache as module
from elmokit.lexicon.cache import shrink
from elmokit.text.tokenizers import get_tokenizer

QUERY = "the steep [bank] of the stream"


class Counting:
    """Remembers the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.stages: set[str] = set()

    def message(self, text, /):
        self.messages.append(text)

    def update(self, stage, done, total=None, /, *, unit="", note=""):
        self.stages.add(stage)


@pytest.fixture
def text(tmp_path):
    lines = [" ".join(words) + " ." for words in around("bank", RIVER, 30) + around("bank", MONEY, 20, seed=1)]
    path = tmp_path / "text" / "river.txt"
    path.parent.mkdir()
    path.write_text("\n".join([*lines, "宝玉 笑 道 。"]), encoding="utf-8")
    return path


@pytest.fixture
def asked(text, elmo, tmp_path):
    return CachedCorpus(open_corpus(text, elmo.tokenizer), elmo, folder=tmp_path / "kept")


def is_quick(question) -> bool:
    """Whether the corpus was not read."""
    progress = Counting()
    question(progress)
    assert bool(progress.stages) == bool(progress.messages)
    return not progress.stages


def few_type_vectors(most: int, *arguments, **settings):
    return type_vectors(*arguments, **{"max_words": most} | settings)


class TestAnswers:
    @pytest.mark.parametrize("word", ["bank", "gold", ".", "宝玉"])
    def test_words_are_those_of_the_corpus_itself(self, asked, elmo, word):
        plain = type_vectors(asked.corpus, elmo, min_count=5, also=[word])
        for _ in range(2):
            found = asked.word_neighbors(word, k=7)
            assert found == [
                (near, pytest.approx(cosine, abs=1e-6)) for near, cosine in word_neighbors(word, plain, k=7)
            ]

    @pytest.mark.parametrize("any_word", [False, True])
    def test_occurrences_are_those_of_the_corpus_itself(self, asked, elmo, any_word):
        plain = context_neighbors(QUERY, asked.corpus, elmo, k=9, any_word=any_word)
        for _ in range(2):
            found = asked.context_neighbors(QUERY, k=9, any_word=any_word)
            assert [near.cosine for near in found] == pytest.approx([near.cosine for near in plain], abs=1e-6)
            assert [near.occurrence[:2] for near in found] == [near.occurrence[:2] for near in plain]

    def test_a_word_too_rare_to_be_kept(self, asked, elmo, monkeypatch):
        plain = type_vectors(asked.corpus, elmo, min_count=1, max_words=8, also=["宝玉"])
        monkeypatch.setattr(module, "type_vectors", partial(few_type_vectors, 8))
        assert "宝玉" not in asked.type_vectors("bank").words
        expected = [(near, pytest.approx(cosine, abs=1e-6)) for near, cosine in word_neighbors("宝玉", plain, k=5)]
        assert asked.word_neighbors("宝玉", k=5, min_count=1) == expected

    def test_a_missing_word_is_refused_before_anything_is_embedded(self, asked):
        for ask in (asked.word_neighbors, lambda word, **more: asked.context_neighbors(f"a [{word}]", **more)):
            progress = Counting()
            with pytest.raises(DataError, match="no word 'bnak'; near spellings that it has: bank"):
                ask("bnak", progress=progress)
            assert progress.stages == {"counting words"}
        asked.word_neighbors("bank")
        with pytest.raises(DataError, match="no word 'bnak'; near spellings"):
            asked.word_neighbors("bnak")

    def test_all_layers_are_refused(self, asked, elmo):
        every = CachedCorpus(asked.corpus, elmo, "all", folder=asked.folder)
        for ask in (lambda: every.word_neighbors("bank"), lambda: every.context_neighbors(QUERY)):
            with pytest.raises(ConfigError, match="'all'"):
                ask()


class TestKeys:
    def test_the_same_question_is_quick(self, asked, elmo):
        assert not is_quick(lambda progress: asked.word_neighbors("bank", progress=progress))
        again = CachedCorpus(asked.corpus, random_elmo(), folder=asked.folder)
        assert is_quick(lambda progress: again.word_neighbors("gold", min_count=1, progress=progress))
        assert not is_quick(lambda progress: again.context_neighbors(QUERY, progress=progress))
        assert is_quick(lambda progress: again.context_neighbors("a [bank]", k=2, progress=progress))
        assert not is_quick(lambda progress: again.context_neighbors("the [shore]", progress=progress))

    def test_words_of_a_text_that_moved_are_known(self, asked, elmo, text):
        asked.word_neighbors("bank")
        moved = text.rename(text.with_name("moved.txt"))
        other = CachedCorpus(open_corpus(moved, elmo.tokenizer), elmo, folder=asked.folder)
        assert is_quick(lambda progress: other.word_neighbors("bank", progress=progress))
        found = other.context_neighbors(QUERY)  # which are told by their documents
        assert {near.occurrence.context.document for near in found} == {str(moved)}

    @pytest.mark.parametrize("change", ["model", "text", "layer", "tokenizer", "lines", "precision"])
    def test_whatever_changes_is_computed_anew(self, change, asked, elmo, text, model_folder):
        asked.word_neighbors("bank")
        asked.context_neighbors(QUERY)
        model, layers, tokenizer, lines = elmo, "average", elmo.tokenizer, "auto"
        if change == "model":
            model = random_elmo(seed=1)
        elif change == "precision":
            model = random_elmo(precision="int8")
        elif change == "text":
            text.write_text(text.read_text(encoding="utf-8").replace("gold", "coal", 1), encoding="utf-8")
        elif change == "layer":
            layers = 1
        elif change == "tokenizer":
            tokenizer = get_tokenizer("whitespace")
        else:
            lines = "sentences"
        other = CachedCorpus(open_corpus(text, tokenizer, lines=lines), model, layers, folder=asked.folder)
        assert not is_quick(lambda progress: other.word_neighbors("bank", progress=progress))
        assert not is_quick(lambda progress: other.context_neighbors(QUERY, progress=progress))
        plain = type_vectors(other.corpus, model, layers=layers, min_count=5)
        expected = [(near, pytest.approx(cosine, abs=1e-6)) for near, cosine in word_neighbors("bank", plain, k=5)]
        assert other.word_neighbors("bank", k=5) == expected

    def test_standard_input_is_known_by_what_it_says(self, asked, elmo, text, monkeypatch):
        quick = []
        for _ in range(2):
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
            piped = CachedCorpus(open_corpus("-", elmo.tokenizer), elmo, folder=asked.folder)
            quick.append(is_quick(lambda progress, piped=piped: piped.word_neighbors("bank", progress=progress)))
        assert quick == [False, True]


class TestRoom:
    def test_what_was_not_used_for_longest_goes(self, tmp_path):
        for age, name in enumerate(("new", "used", "old", "older")):
            (tmp_path / name).write_bytes(b"x" * 100)
            os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
        shrink(tmp_path, 250)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "used"]
        shrink(tmp_path / "missing", 0)

    def test_a_question_makes_a_file_new_again(self, asked, elmo):
        asked.word_neighbors("bank")
        [means] = asked.folder.iterdir()
        os.utime(means, (1e9, 1e9))
        asked.context_neighbors(QUERY)
        asked.word_neighbors("gold")
        least = max(file.stat().st_size for file in asked.folder.iterdir())
        bounded = CachedCorpus(asked.corpus, elmo, folder=asked.folder, most_bytes=least + 1)
        bounded.context_neighbors("the [shore] there")
        assert sum(file.stat().st_size for file in asked.folder.iterdir()) <= least + 1

    def test_too_many_occurrences_are_not_kept(self, asked, monkeypatch):
        expected = asked.context_neighbors("the [bank]", k=5)
        monkeypatch.setattr(module, "LARGEST", 100)
        fresh = CachedCorpus(asked.corpus, asked.elmo, folder=asked.folder.with_name("fresh"))
        progress = Counting()
        found = fresh.context_neighbors("the [bank]", k=5, progress=progress)
        assert [near.cosine for near in found] == [near.cosine for near in expected]
        assert "all 50 occurrences of 'bank' are embedded for this question alone" in progress.messages[0]
        assert not fresh.folder.exists()

    @pytest.mark.parametrize("content", [b"", b"damaged", None])
    def test_a_damaged_file_is_made_anew(self, asked, content):
        words, occurrences = asked.word_neighbors("bank"), asked.context_neighbors(QUERY)
        for file in asked.folder.iterdir():
            file.write_bytes(file.read_bytes()[:-50] if content is None else content)
        assert asked.word_neighbors("bank") == words
        assert [near.cosine for near in asked.context_neighbors(QUERY)] == [near.cosine for near in occurrences]
        assert is_quick(lambda progress: asked.word_neighbors("bank", progress=progress))

    def test_a_folder_that_cannot_be_written_is_no_error(self, asked, elmo, tmp_path):
        (tmp_path / "file").touch()
        blocked = CachedCorpus(asked.corpus, elmo, folder=tmp_path / "file" / "words")
        progress = Counting()
        assert blocked.word_neighbors("bank", progress=progress) == asked.word_neighbors("bank")
        assert any(message.startswith("not kept: ") for message in progress.messages)

    def test_the_cache_is_the_users_own(self, asked, text, model_folder, tmp_path, monkeypatch):
        monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "mine"))
        own = elmokit.load(model_folder)
        CachedCorpus(open_corpus(text, own.tokenizer), own).context_neighbors(QUERY)
        [file] = (tmp_path / "mine" / "words").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 or os.name != "posix"


def test_a_real_model_and_a_real_novel(shared_data, tmp_path):
    """Of the bundled model: the second question takes a small part of the processor's time of the first."""
    from time import process_time

    novel = tmp_path / "novel.txt"
    sample = (shared_data / "corpora" / "en-sample.txt").read_text(encoding="utf-8")
    novel.write_text(sample[: sample.rindex("\n", 0, 150_000)], encoding="utf-8")
    elmo = elmokit.load("en")
    asked, seconds, answers = CachedCorpus(open_corpus(novel, elmo.tokenizer), elmo, folder=tmp_path / "kept"), [], []
    for _ in range(2):
        start = process_time()
        answers.append([near.word for near in asked.word_neighbors("house", k=5)])
        seconds.append(process_time() - start)
    assert answers[0] == answers[1]
    assert seconds[1] < seconds[0] / 10, seconds
