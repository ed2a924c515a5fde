"""Models by name: the table of published ones, and what is fetched when one is asked for."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import SENTENCES, random_elmo
from test_hub import Server

import elmokit
from elmokit import published
from elmokit.bundled import bundled_names
from elmokit.checkpoints.archives import TAR, ZIP
from elmokit.cli import main
from elmokit.errors import CheckpointError, ConfigError
from elmokit.hub.web import _check_transport, _place
from elmokit.published import known_models, published_models

MODELS = published_models()


@pytest.mark.parametrize("name", MODELS)
class TestEach:
    def test_its_addresses_can_be_fetched(self, name):
        """By the rules of what is fetched at all, and into one folder."""
        for address in MODELS[name].files:
            _check_transport(address, plain=False)
        assert len({_place(address).parent for address in MODELS[name].files}) == 1

    def test_its_files_are_a_model(self, name):
        first, *others = MODELS[name].files
        assert first.endswith((ZIP, *TAR)) if not others else first.endswith(".hdf5")
        assert [other for other in others if not other.endswith("options.json")] == []

    def test_what_is_said_of_it(self, name):
        model = MODELS[name]
        assert re.fullmatch("[a-z]{2,3}|protein", model.language)
        assert model.purpose
        assert model.page.startswith("https://")
        assert not model.tried


def test_the_table():
    assert {"allenai/small", "allenai/medium", "allenai/original", "allenai/original-5.5b", "seqvec"} < set(MODELS)
    assert sum(name.startswith("manylangs/") for name in MODELS) == 44
    addresses = [file for model in MODELS.values() for file in model.files]
    assert len(addresses) == len(set(addresses))


def test_bundled_ones_come_first():
    first = known_models()[: len(bundled_names())]
    assert [model.name for model in first] == bundled_names()
    assert all(model.tried and not model.files and model.size.endswith(" MB") for model in first)


class TestTheCommand:
    def test_all(self, capsys):
        main(["models"])
        head, *lines = capsys.readouterr().out.splitlines()
        assert head.split() == ["name", "language", "size", "licence", "tried", "purpose"]
        assert [line.split()[0] for line in lines] == [*bundled_names(), *MODELS]
        tried = [line[head.index("tried") :].split()[0] for line in lines]
        assert tried == ["yes"] * len(bundled_names()) + ["no"] * len(MODELS)

    def test_of_a_language(self, capsys):
        main(["models", "zh", "--json"])
        found = json.loads(capsys.readouterr().out)
        assert [model["name"] for model in found] == ["zh", "manylangs/zh"]
        assert found[1]["files"] == ["https://vectors.nlpl.eu/repository/11/179.zip"]

    def test_no_such_language(self, capsys):
        with pytest.raises(SystemExit, match="2"):
            main(["models", "tlh"])
        assert "no model is known for 'tlh': there are some for ar, bg, " in capsys.readouterr().err


class TestLoading:
    """From a table whose addresses are on this machine."""

    @pytest.fixture
    def server(self, tmp_path, monkeypatch, model_folder):
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.chdir(tmp_path)
        with Server().running() as server:
            files = {"weights_PubMed_only.hdf5": "weights.hdf5", "options.json": "options.json"}
            for name, ours in files.items():
                server.files[f"/elmo/my_{name}"] = (model_folder / ours).read_bytes()
            archive = Path(shutil.make_archive(str(tmp_path / "20"), "zip", model_folder))
            server.files["/20.zip"] = archive.read_bytes()
            pair = [f"{server.url}/elmo/my_{name}" for name in files]
            table = tmp_path / "published.toml"
            table.write_text(
                f'[[collection]]\nlanguage = "en"\nlicence = "MIT"\nmodels = [\n'
                f'  {{ name = "our/pair", purpose = "tests", files = {json.dumps(pair)} }},\n'
                f'  {{ name = "our/archive", purpose = "tests", files = ["{server.url}/20.zip"] }},\n]\n'
            )
            monkeypatch.setattr(published, "TABLE", table)
            published_models.cache_clear()
            yield server
        published_models.cache_clear()

    @pytest.mark.parametrize("name", ["our/pair", "our/archive"])
    def test_by_name(self, server, name, model_folder):
        for _ in range(2):
            found = elmokit.load(name).embed(SENTENCES)
            for one, other in zip(found, elmokit.load(model_folder).embed(SENTENCES), strict=True):
                np.testing.assert_array_equal(one, other)
        assert len(server.requests) == len(published_models()[name].files)

    def test_a_folder_of_the_same_name_goes_first(self, server, tmp_path):
        other = random_elmo(seed=1)
        other.save(tmp_path / "our" / "pair")
        np.testing.assert_array_equal(elmokit.load("our/pair").embed(SENTENCES)[0], other.embed(SENTENCES)[0])
        assert server.requests == []

    def test_gone(self, server):
        server.files.clear()
        with pytest.raises(CheckpointError, match=r"/20\.zip: the server answered 404"):
            elmokit.load("our/archive")

    def test_options_elsewhere(self, server, model_folder):
        server.files["/other/described.json"] = server.files.pop("/elmo/my_options.json")
        weights, options = f"{server.url}/elmo/my_weights_PubMed_only.hdf5", f"{server.url}/other/described.json"
        with pytest.raises(CheckpointError, match="its options are missing"):
            elmokit.load(weights)
        expected = elmokit.load(model_folder).embed(SENTENCES)
        np.testing.assert_array_equal(elmokit.load(weights, options=options).embed(SENTENCES)[0], expected[0])


def test_an_unknown_name():
    with pytest.raises(CheckpointError, match="allenai/huge: no such file .* or is in the list of `elmokit models`"):
        elmokit.load("allenai/huge")


def test_no_language():
    with pytest.raises(ConfigError, match="no model is known for 'xx'"):
        known_models("xx")
