"""Small real models and where the data is."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import torch

from elmokit.checkpoints import write_checkpoint
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.config import CharacterConfig, ModelConfig, WordConfig
from elmokit.elmo import Elmo
from elmokit.files import cache_folder
from elmokit.model.bilm import BiLM
from elmokit.text.vocabulary import Vocabulary

os.environ["LANGUAGE"] = "en"  # wherever the tests run, and for the commands that they start
torch.set_num_threads(1)  # the models here are so small that handing work to a second thread is the larger part of it

HERE = Path(__file__).parent
GOLDEN = HERE / "data" / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
GOLDEN_SENTENCES = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))

SENTENCES = [
    "The bank of the river was steep and green .".split(),
    ["今天", "天气", "很", "好", "，", "我们", "去", "公园", "。"],
    ["🎉", "emoji", "🤷‍♀️", "too"],
    ["She", "deposited", "her", "wages", "at", "the", "bank", "."],
    ["One"],
    ["x" * 5000, "is", "long"],
]

CHARACTERS = CharacterConfig(dim=6, filters=((1, 8), (2, 8), (5, 12)), highways=1)
BYTES = ModelConfig(characters=CHARACTERS, hidden=24, projection=10, forget_bias=1.0)
VOCABULARY = Vocabulary.from_counts({word: 1 for sentence in SENTENCES[:5] for word in sentence})
ALPHABET = "".join(sorted({character for word in VOCABULARY.words for character in word}))
WORDS = WordConfig(size=len(VOCABULARY), dim=7)

CONFIGS = {
    "bytes": BYTES,
    "unicode": replace(BYTES, characters=replace(CHARACTERS, alphabet="unicode", characters=ALPHABET)),
    "words": replace(BYTES, characters=None, words=WORDS),
    "words_and_characters": replace(BYTES, words=WORDS),
    "frequent_words_and_characters": replace(BYTES, words=replace(WORDS, frequent=12)),
    "gru": replace(BYTES, cell="gru"),
    "one_layer": replace(BYTES, layers=1),
    "three_layers_no_residual": replace(BYTES, layers=3, residual=False),
    "no_projection_no_clip": replace(BYTES, hidden=10, cell_clip=None, projection_clip=None),
    "few_characters": replace(BYTES, characters=replace(CHARACTERS, max_characters=10, activation="tanh", highways=0)),
}


def random_checkpoint(config: ModelConfig, *, seed: int = 0, scale: float = 0.3) -> Checkpoint:
    generator = torch.Generator().manual_seed(seed)
    shapes = {name: weight.shape for name, weight in BiLM(config).state_dict().items()}
    weights = {name: torch.randn(shape, generator=generator) * scale for name, shape in shapes.items()}
    return Checkpoint(config, weights, VOCABULARY if config.words else None, "made in a test")


def random_elmo(config: ModelConfig = BYTES, *, seed: int = 0, **settings) -> Elmo:
    return Elmo(random_checkpoint(config, seed=seed), **settings)


def hear_interrupts() -> None:
    """For a process to be started: Ctrl-C counts, even where the tests themselves run in the background without it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def new_cache(tmp_path_factory) -> str:
    """A folder for what is kept between commands, with the compiled code that is there already, which takes seconds."""
    code, folder = cache_folder() / "machine-code", tmp_path_factory.getbasetemp() / f"cache-{uuid4().hex}"
    code.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    (folder / "machine-code").symlink_to(code)
    return str(folder)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory, monkeypatch) -> None:
    """What is kept between commands is kept for one test alone."""
    monkeypatch.setenv("ELMOKIT_CACHE", new_cache(tmp_path_factory))


@pytest.fixture(params=CONFIGS)
def config(request) -> ModelConfig:
    return CONFIGS[request.param]


@pytest.fixture(scope="session")
def elmo() -> Elmo:
    return random_elmo()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "allenai"
    write_checkpoint(random_checkpoint(BYTES), folder, to="allenai")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The larger data that is not part of the project."""
    folder = Path(os.environ.get("ELMOKIT_DATA", HERE.parents[1] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"needs the shared data: {folder} is missing (set ELMOKIT_DATA)")
    return folder
