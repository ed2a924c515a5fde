"""Many callers, one batch."""

import asyncio
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest
from conftest import SENTENCES, random_elmo

from elmokit.batching import Batcher
from elmokit.errors import ConfigError, DataError, DeadlineError, OverloadError

ROUNDING = {"atol": 2e-6}  # a batch adds in another order than a sentence alone


class Gate:
    """An embedder that waits to be let through, and counts."""

    def __init__(self, elmo):
        self.elmo, self.open, self.batches, self.begun = elmo, threading.Event(), [], threading.Event()
        self.tokenize = elmo.tokenize

    def embed(self, sentences, *, layers="average"):
        if sentences:
            self.begun.set()
            self.open.wait(30)
            self.batches.append(len(sentences))
        return self.elmo.embed(sentences, layers=layers)


@pytest.fixture
def gate(elmo):
    return Gate(elmo)


@pytest.fixture
def held(gate):
    """A batcher whose first batch is on its way and waits at the gate."""
    with Batcher(gate, window=0) as batcher:
        first = batcher.submit([["first"]])
        assert gate.begun.wait(30)
        yield batcher
        gate.open.set()
        assert len(first.result(30)) == 1


def test_threads_get_their_own(elmo):
    expected = elmo.embed(SENTENCES)
    with Batcher(elmo) as batcher, ThreadPoolExecutor(32) as callers:
        found = list(callers.map(lambda number: batcher.embed([SENTENCES[number % len(SENTENCES)]]), range(200)))
    for number, [vectors] in enumerate(found):
        np.testing.assert_allclose(vectors, expected[number % len(SENTENCES)], **ROUNDING)


def test_coroutines_get_their_own(elmo):
    async def run():
        with Batcher(elmo) as batcher:
            return await asyncio.gather(*(batcher.embed_async([sentence], layers="top") for sentence in SENTENCES))

    for [vectors], expected in zip(asyncio.run(run()), elmo.embed(SENTENCES, layers="top"), strict=True):
        np.testing.assert_allclose(vectors, expected, **ROUNDING)


def test_what_comes_meanwhile_is_one_batch(held, gate):
    answers = [held.submit([sentence]) for sentence in SENTENCES]
    gate.open.set()
    for answer in answers:
        answer.result(30)
    assert gate.batches == [1, len(SENTENCES)]


def test_within_the_token_budget(elmo):
    gate = Gate(elmo)
    with Batcher(gate, window=0, batch_tokens=10) as batcher:
        batcher.submit([["first"]])
        assert gate.begun.wait(30)
        answers = [batcher.submit([["a", "b"]]) for _ in range(5)] + [batcher.submit([["long"] * 50])]
        gate.open.set()
        assert [len(answer.result(30)[0]) for answer in answers] == [2] * 5 + [50]
    assert gate.batches == [1, 2, 2, 1, 1]


def test_a_lone_call_waits_for_the_window_alone(elmo):
    with Batcher(elmo, window=0.2) as batcher:
        batcher.embed([["ready"]])
        start = time.monotonic()
        batcher.embed([["bank"]])
        assert 0.2 <= time.monotonic() - start < 2


def test_several_sentences_and_layers(elmo):
    with Batcher(elmo, window=0.1) as batcher:
        answers = [batcher.submit(SENTENCES, layers=layers) for layers in ("all", "average", 0)]
        for answer, layers in zip(answers, ("all", "average", 0), strict=True):
            for vectors, expected in zip(answer.result(30), elmo.embed(SENTENCES, layers=layers), strict=True):
                np.testing.assert_allclose(vectors, expected, **ROUNDING)
        assert batcher.embed([]) == []
        assert batcher.embed(["Raw text, too."])[0].shape == (5, elmo.width)


def test_cancelled(held, gate):
    kept, cancelled = held.submit([["kept"]]), held.submit([["cancelled"]])
    assert cancelled.cancel()
    gate.open.set()
    kept.result(30)
    with pytest.raises(CancelledError):
        cancelled.result(30)
    assert gate.batches == [1, 1]


def test_a_cancelled_coroutine_takes_its_call_back(held, gate):
    async def run():
        task = asyncio.create_task(held.embed_async([["late"]]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    gate.open.set()
    held.embed([["after"]])
    assert gate.batches == [1, 1]


def test_deadline(held, gate):
    late, patient = held.submit([["late"]], timeout=0.01), held.submit([["patient"]], timeout=60)
    time.sleep(0.05)
    gate.open.set()
    with pytest.raises(DeadlineError, match=r"deadline passed: waited for \d+ ms"):
        late.result(30)
    assert len(patient.result(30)) == 1
    assert gate.batches == [1, 1]


def test_a_full_queue_refuses(elmo):
    gate = Gate(elmo)
    with Batcher(gate, window=0, queue_tokens=10) as batcher:
        batcher.submit([["first"]])
        assert gate.begun.wait(30)
        batcher.submit([["a", "b", "c"]])
        with pytest.raises(OverloadError, match="5 tokens wait already, of 10"):
            batcher.submit([["too", "many", "tokens", "!"]])
        batcher.submit([["fits"]])
        gate.open.set()
    assert gate.batches == [1, 2]


def test_one_callers_mistake_is_his_own(held):
    with pytest.raises(DataError, match="token 0 of sentence 0 is 3"):
        held.submit([[3]])
    with pytest.raises(ConfigError, match="unknown layers"):
        held.submit([["bank"]], layers=9)


def test_what_fails_is_told_to_every_caller(elmo):
    class Broken(Gate):
        def embed(self, sentences, *, layers="average"):
            if sentences:
                raise MemoryError("full")
            return []

    with Batcher(Broken(elmo)) as batcher:
        for answer in [batcher.submit([["a"]]), batcher.submit([["b"]])]:
            with pytest.raises(MemoryError):
                answer.result(30)


def test_closed_answers_what_waits_and_takes_no_more(elmo):
    batcher = Batcher(elmo, window=5)
    answer = batcher.submit([["bank"]])
    start = time.monotonic()
    batcher.close()
    assert time.monotonic() - start < 4
    assert len(answer.result(0)) == 1
    with pytest.raises(OverloadError, match="closed"):
        batcher.submit([["bank"]])


@pytest.mark.parametrize("settings", [{"window": -1}, {"batch_tokens": 0}, {"queue_tokens": 0}])
def test_settings(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Batcher(random_elmo(), **settings)
