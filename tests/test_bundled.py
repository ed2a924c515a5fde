"""The bundled models: by name from anywhere, small, described, and good."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.bundled import FOLDER, bundled_names
from elmokit.checkpoints import read_checkpoint
from elmokit.checkpoints.cards import CARD, front_matter
from elmokit.errors import CheckpointError
from elmokit.lexicon.occurrences import unit_vectors
from elmokit.lexicon.predictions import surprisal
from elmokit.text.brackets import read_brackets

NAMES = ("en", "zh")
REPOSITORY = Path(__file__).parents[1]
PARTS = {  # of the cards
    "en": ("Corpus", "Licence", "Command", "Perplexity", "Layers", "Intended use", "Limits"),
    "zh": ("语料", "许可", "命令", "困惑度", "各层", "用途", "局限"),
}
SENTENCES = {
    "en": "The old man sat down by the fire and told us a story of the sea.",
    "zh": "老人坐在火边，给我们讲了一个故事。",
}
PAIRS = tomllib.loads((REPOSITORY / "benchmarks" / "sense_pairs.toml").read_text(encoding="utf-8"))


def test_names():
    assert bundled_names() == [*NAMES]


@pytest.mark.parametrize("name", NAMES)
class TestEach:
    def test_size(self, name):
        assert sum(path.stat().st_size for path in (FOLDER / name).iterdir()) <= 35e6

    def test_card(self, name):
        card = (FOLDER / name / CARD).read_text(encoding="utf-8")
        for part in PARTS[name]:
            assert f"\n## {part}\n" in card or f"| {part} |" in card, part

    def test_front_matter(self, name):
        """The model's own, and what huggingface_hub reads; make it anew by `cards.front_matter` if the model is new."""
        hub = pytest.importorskip("huggingface_hub")
        path, checkpoint = FOLDER / name / CARD, read_checkpoint(FOLDER / name)
        assert path.read_text(encoding="utf-8").startswith(front_matter(checkpoint))
        found = hub.ModelCard.load(path).data
        assert (found.library_name, found.license, found.language) == ("elmokit", "apache-2.0", [name])
        assert found.eval_results[0].metric_type == "perplexity"

    def test_from_another_folder(self, name, tmp_path):
        code = f"import elmokit; print(elmokit.load({name!r}).embed([{SENTENCES[name]!r}])[0].shape)"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
        assert re.fullmatch(r"\(\d+, 384\)\n", done.stdout)

    def test_a_folder_of_the_same_name_goes_first(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / name).mkdir()
        with pytest.raises(CheckpointError, match=f"{name}: no model was recognised here"):
            elmokit.load(name)
        (tmp_path / name).rmdir()
        assert elmokit.load(name).vocabulary is not None

    def test_expects_the_words_of_a_sentence(self, name):
        """More than the same words in another order."""
        elmo = elmokit.load(name)
        [tokens] = elmo.tokenize([SENTENCES[name]])
        shuffled = [tokens[index] for index in np.random.default_rng(0).permutation(len(tokens))]
        bits = [
            sum(word.forward + word.backward for word in surprisal(elmo, words).words) for words in (tokens, shuffled)
        ]
        assert bits[0] < 0.8 * bits[1]

    def test_senses(self, name):
        """Two uses of a sense are nearer to each other than to another sense, for most; a static vector gets none."""
        elmo = elmokit.load(name)
        right = []
        for senses in PAIRS[name].values():
            uses = [read_brackets(sentence, elmo.tokenizer) for sense in senses for sentence in sense]
            layers = elmo.embed([one.context.words for one in uses], layers="top")
            vectors = unit_vectors(np.stack([found[one.position] for found, one in zip(layers, uses, strict=True)]))
            across = vectors[0] @ vectors[2]
            right += [vectors[0] @ vectors[1] > across, vectors[2] @ vectors[3] > across]
        assert np.mean(right) >= 0.7


def test_an_unknown_name():
    with pytest.raises(CheckpointError, match=r"fr: no such file or folder, and no model of that name .*\(en, zh\)"):
        elmokit.load("fr")


def build(source, target, kind):
    """A wheel or a source archive, as `make dist` makes them."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=source, env=environment, capture_output=True, check=True, timeout=300)
    [built] = target.glob("elmokit-*")
    return built


def test_a_wheel_of_the_source_archive_has_them(tmp_path):
    """With their cards, the recipes, the samples and the pages."""
    with tarfile.open(build(REPOSITORY, tmp_path / "sdist", "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = tmp_path.glob("elmokit-*")
    wheel = build(source, tmp_path / "wheel", "wheel")
    inside = set(zipfile.ZipFile(wheel).namelist())
    files = ("config.json", "model.safetensors", "vocab.txt", "README.md")
    assert {f"elmokit/bundled/{name}/{file}" for name in NAMES for file in files} <= inside
    assert {"elmokit/pretrain/recipes/en.toml", "elmokit/cli/samples/demo.toml", "elmokit/cli/demo.html"} <= inside
    assert "elmokit/published.toml" in inside
    assert wheel.stat().st_size < 90e6


def test_one_version():
    citation, changes = (
        Path(REPOSITORY, name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md")
    )
    assert f"\nversion: {elmokit.__version__}\n" in citation
    assert changes.startswith(f"# Changelog\n\n## {elmokit.__version__}")
