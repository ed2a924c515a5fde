"""Every token once an epoch in both directions, the right targets and resets, exact resumption and sharding."""

import json
import time
from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.errors import ConfigError, DataError
from elmokit.pretrain.streams import Chunk, Streams

BOS, EOS, UNK = 0, 1, 2
VOCABULARY = 40


def corpus(sentences: int, *, seed: int = 0, longest: int = 30, types: int = 100) -> np.ndarray:
    random = np.random.default_rng(seed)
    words = (random.integers(2, types, size=random.integers(1, longest + 1)) for _ in range(sentences))
    return np.concatenate([[BOS, *sentence, EOS] for sentence in words]).astype(np.int32)


IDS = corpus(3000)


def streams(ids: np.ndarray = IDS, *, batch: int = 8, unroll: int = 7, **options) -> Streams:
    return Streams(ids, vocab_size=VOCABULARY, batch=batch, unroll=unroll, **options)


def epoch_of(streams: Streams) -> list[Chunk]:
    return list(islice(streams, streams.steps_per_epoch))


def stacked(chunks: list[Chunk], way: str) -> list[np.ndarray]:
    """Inputs, targets and keep of one direction, each (all T, B)."""
    return [np.concatenate([getattr(chunk, way)[field] for chunk in chunks]) for field in range(3)]


def columns_end_to_end(array: np.ndarray, n_ids: int) -> np.ndarray:
    """The columns one after another, each without what fills it up."""
    batch = array.shape[1]
    lengths = [(column + 1) * n_ids // batch - column * n_ids // batch for column in range(batch)]
    return np.concatenate([array[:length, column] for column, length in enumerate(lengths)])


def sentences_of(line: np.ndarray) -> Counter[tuple[int, ...]]:
    bounds = [*np.flatnonzero(line == line[0]), len(line)]
    return Counter(tuple(line[start:end]) for start, end in pairwise(bounds))


def same(first: Chunk, second: Chunk) -> bool:
    pairs = zip([*first.forward, *first.backward], [*second.forward, *second.backward], strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def check_epoch(ids: np.ndarray, chunks: list[Chunk]) -> None:
    for way, begin, end, original in (("forward", BOS, EOS, ids), ("backward", EOS, BOS, ids[::-1])):
        inputs, targets, keep = stacked(chunks, way)
        line = columns_end_to_end(inputs, len(ids))
        assert sentences_of(line) == sentences_of(original)
        following = np.where(line < VOCABULARY, line, UNK)[1:]
        expected = np.where(line == end, -1, np.append(following, -1))
        np.testing.assert_array_equal(columns_end_to_end(targets, len(ids)), expected)
        np.testing.assert_array_equal(keep[1:], (inputs != begin)[1:])
        assert not keep[0].any()
        padding = inputs.size - len(ids)
        assert (inputs == begin).sum() == (ids == BOS).sum() + padding
        assert (targets == -1).sum() == (ids == BOS).sum() + padding


def test_an_epoch_holds_every_sentence_once_in_each_direction():
    reader = streams()
    for _ in range(3):
        check_epoch(IDS, epoch_of(reader))


@settings(deadline=None, max_examples=30)
@given(
    sentences=st.integers(1, 400),
    longest=st.sampled_from([1, 5, 60, 3000]),
    batch=st.integers(1, 40),
    unroll=st.integers(1, 50),
    seed=st.integers(0, 2**31),
)
def test_any_corpus_in_any_arrangement(sentences, longest, batch, unroll, seed):
    ids = corpus(sentences, seed=seed, longest=longest)
    if len(ids) < batch * unroll:
        with pytest.raises(DataError, match="one batch takes"):
            streams(ids, batch=batch, unroll=unroll)
        return
    check_epoch(ids, epoch_of(streams(ids, batch=batch, unroll=unroll, seed=seed)))


def test_chunks_are_time_major_and_contiguous():
    for direction in next(streams()):
        assert [array.shape for array in direction] == [(7, 8)] * 3
        assert [array.dtype for array in direction] == [np.int64, np.int64, bool]
        assert all(array.flags.c_contiguous for array in direction)


def test_a_small_example_by_hand():
    ids = np.array([BOS, 5, 50, EOS], dtype=np.int32)
    forward, backward = next(streams(ids, batch=1, unroll=4))
    assert forward.inputs[:, 0].tolist() == [BOS, 5, 50, EOS]
    assert forward.targets[:, 0].tolist() == [5, UNK, EOS, -1]
    assert forward.keep[:, 0].tolist() == [False, True, True, True]
    assert backward.inputs[:, 0].tolist() == [EOS, 50, 5, BOS]
    assert backward.targets[:, 0].tolist() == [UNK, 5, BOS, -1]
    assert backward.keep[:, 0].tolist() == [False, True, True, True]


def test_the_same_seed_gives_the_same_chunks():
    assert all(map(same, epoch_of(streams(seed=3)), epoch_of(streams(seed=3))))


def test_epochs_seeds_and_directions_are_shuffled_each_on_its_own():
    reader = streams()
    lines = [
        stacked(epoch_of(reader), "forward")[0],
        stacked(epoch_of(reader), "forward")[0],
        stacked(epoch_of(streams(seed=1)), "forward")[0],
        stacked(epoch_of(streams()), "backward")[0][::-1, ::-1],
    ]
    for index, line in enumerate(lines):
        for other in lines[:index]:
            assert (line == other).mean() < 0.2


@pytest.mark.parametrize("steps", [0, 1, 150, "an epoch", "an epoch and a half"])
def test_resuming_is_exact(steps):
    first, second = streams(seed=5), streams(seed=5)
    whole = first.steps_per_epoch
    steps = {"an epoch": whole, "an epoch and a half": whole * 3 // 2}.get(steps, steps)
    for _ in islice(first, steps):
        pass
    second.restore(json.loads(json.dumps(first.state())))
    assert (second.epoch, second.step) == divmod(steps, whole)
    assert all(map(same, islice(first, whole + 3), islice(second, whole + 3)))


@pytest.mark.parametrize("world", [2, 4])
def test_processes_together_read_what_one_reads(world):
    whole = epoch_of(streams(batch=8))
    parts = [epoch_of(streams(batch=8, rank=rank, world=world)) for rank in range(world)]
    for chunk, *pieces in zip(whole, *parts, strict=True):
        for way in ("forward", "backward"):
            for field in range(3):
                together = np.concatenate([getattr(piece, way)[field] for piece in pieces], axis=1)
                np.testing.assert_array_equal(together, getattr(chunk, way)[field])


def test_another_number_of_processes_can_go_on():
    one = streams(batch=8)
    next(one)
    two = [streams(batch=8, rank=rank, world=2) for rank in range(2)]
    for reader in two:
        reader.restore(one.state())
    together = np.concatenate([next(reader).forward.inputs for reader in two], axis=1)
    np.testing.assert_array_equal(together, next(one).forward.inputs)


@pytest.mark.parametrize("other", [{"batch": 4}, {"unroll": 9}, {"seed": 1}, {"ids": IDS[: len(IDS) // 2]}])
def test_a_state_of_other_settings_is_refused_by_name(other):
    with pytest.raises(ConfigError, match=f"saved with {next(iter(other))} .* set it back"):
        streams(**other).restore(streams().state())


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"unroll": 0}, {"world": 3}, {"rank": 2, "world": 2}])
def test_impossible_arrangements_are_refused(wrong):
    with pytest.raises(ConfigError):
        streams(**wrong)


def test_an_empty_corpus_is_refused():
    with pytest.raises(DataError, match="the corpus has 0 tokens"):
        streams(np.empty(0, dtype=np.int32))


def test_reading_takes_little_of_a_step():
    ids = np.tile(corpus(20_000), 5)
    reader = streams(ids, batch=128, unroll=20)
    rates = []
    for _ in range(3):
        start = time.process_time()
        for _ in range(reader.steps_per_epoch):
            next(reader)
        rates.append(2 * len(ids) / (time.process_time() - start))
    assert max(rates) > 5_000_000  # tokens a second, both directions; 20 million where this was written
