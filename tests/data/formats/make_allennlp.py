#!/usr/bin/env python3
"""Make an AllenNLP archive with a small ELMo in it, and what AllenNLP's own modules give for it.

    python benchmarks/inference.py --peers AllenNLP --sizes small --sentences 1    # makes .benchmarks/allennlp
    .benchmarks/allennlp/bin/python tests/data/formats/make_allennlp.py

Beside this file it writes allennlp/: model.tar.gz, packed as `archive_model` does, sentences.json, and activations.npz
with an array (L + 1, T, 2P) named i for sentence i, run alone from a zero state. The weights are written as torch wrote
them before 1.6.
"""

import io
import json
import pathlib
import shutil
import sys
import tarfile
import tempfile

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "golden"))
sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "benchmarks" / "peers"))

from allennlp_runner import import_elmo
from make_golden import case_options, random_weights, write_weights

FOLDER = pathlib.Path(__file__).parent / "allennlp"
SENTENCES = [["The", "bank", "was", "old", "."], ["今天", "天气", "很", "好", "。"], ["x" * 60], ["🎉", "ok"]]


class Tagger(nn.Module):
    """A model around an ELMo, with the names that AllenNLP's own have."""

    def __init__(self, elmo):
        super().__init__()
        self.text_field_embedder = nn.Module()
        self.text_field_embedder.token_embedder_elmo = nn.Module()
        self.text_field_embedder.token_embedder_elmo._elmo = elmo
        self.tag_projection_layer = nn.Linear(16, 3)


def activations(bilm, mapper):
    found = {}
    for number, sentence in enumerate(SENTENCES):
        bilm._elmo_lstm._states = None
        char_ids = torch.tensor([[mapper.convert_word_to_char_ids(word) for word in sentence]])
        with torch.no_grad():
            found[str(number)] = torch.cat(bilm(char_ids)["activations"])[:, 1:-1].numpy()
    return found


def add(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    _, mapper = import_elmo()
    from allennlp.modules.elmo import Elmo

    options = case_options({})
    torch.manual_seed(9)
    with tempfile.TemporaryDirectory() as place:
        files = pathlib.Path(place, "options.json"), pathlib.Path(place, "weights.hdf5")
        files[0].write_text(json.dumps(options))
        write_weights(files[1], random_weights(options, lstm_scale=0.3))
        elmo = Elmo(*map(str, files), num_output_representations=1)
    model = Tagger(elmo).eval()
    weights = io.BytesIO()
    torch.save(model.state_dict(), weights, _use_new_zipfile_serialization=False)
    embedder = {"type": "elmo_token_embedder", "options_file": "https://example.org/options.json"}
    config = {"model": {"text_field_embedder": {"token_embedders": {"elmo": embedder}}}}
    with tarfile.open(FOLDER / "model.tar.gz", "w:gz") as archive:
        add(archive, "config.json", json.dumps(config).encode())
        add(archive, "weights.th", weights.getvalue())
        add(archive, "vocabulary/labels.txt", b"O\nB-PER\nI-PER\n")
    np.savez_compressed(FOLDER / "activations.npz", **activations(elmo._elmo_lstm, mapper))
    lines = ",\n".join("  " + json.dumps(tokens, ensure_ascii=False) for tokens in SENTENCES)
    (FOLDER / "sentences.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
