"""A small share of every campaign of `make torture`, always the same."""

import os
from random import Random

import pytest
from torture.callers import threads
from torture.commands import fill, kill, two_writers
from torture.mutants import MUTANTS, MUTANTS_A_PROCESS
from torture.outcomes import CLEAR, RIGHT, Outcomes
from torture.strangers import server_tricks, wild_text

FORMATS = ("native", "allenai", "bilm-tf", "manylangs", "allennlp")
SHARE = {"wild text": (wild_text, 10), "servers with tricks": (server_tricks, 10), "threads": (threads, 6)}


def all_good(outcomes: Outcomes) -> bool:
    assert not outcomes.keys() - {RIGHT, CLEAR}
    return True


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants(name, tmp_path):
    """A thousand of each format of models; fewer of the others."""
    found = Outcomes()
    for number in range((1000 if name in FORMATS else 100) // MUTANTS_A_PROCESS):
        found += MUTANTS[name](Random(number), tmp_path / str(number))
    assert all_good(found)
    assert found[CLEAR]


@pytest.mark.parametrize("name", SHARE)
def test_strangers(name, tmp_path):
    attempt, count = SHARE[name]
    for number in range(count):
        (tmp_path / str(number)).mkdir()
        assert all_good(attempt(Random(number), tmp_path / str(number)))


@pytest.mark.parametrize("name", ["embed .npz", "convert"])
def test_kills(name, tmp_path):
    """Those of training and of the index stand with their other tests."""
    assert all_good(kill(name, Random(1), tmp_path))


def test_two_writers(tmp_path):
    assert all_good(two_writers(Random(0), tmp_path))


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root may mount a disk")
def test_full_disks(tmp_path):
    """One on which embed wrote HDF5, said that the disk was full, and crashed as it ended."""
    assert all_good(fill("embed .h5", Random(1), tmp_path))
