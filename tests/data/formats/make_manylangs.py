#!/usr/bin/env python3
"""Make a small ELMoForManyLangs model and what its own code, as it is on PyPI, gives for it.

    python -m venv peer-ml && peer-ml/bin/pip install torch numpy h5py
    peer-ml/bin/pip install --no-deps elmoformanylangs==0.0.4.post2 overrides==3.1.0
    peer-ml/bin/python tests/data/formats/make_manylangs.py

The code runs as published; only its dependencies are newer. Beside this file it writes manylangs/: the model's files,
sentences.json, and activations.npz with sentence i's output_layer k named i/k, each run alone from a zero state.
The .pkl files are written as torch wrote them before 1.6, when the published models were made.
"""

import json
import pathlib
import shutil

import numpy as np
import torch
from elmoformanylangs import Embedder
from elmoformanylangs.frontend import Model
from elmoformanylangs.modules.embedding_layer import EmbeddingLayer

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "manylangs"
LONG = "=" * 60  # in word.dic as the code cut it when it was trained: to 48
SENTENCES = [
    ["今天", "天氣", "真", "好", "。"],
    ["Café", "in", "Łódź", "\u3000", "!"],
    [LONG, "=" * 49, "=" * 47],
    ["未知詞", "🎉"],
    ["好"],
]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "今天", "天氣", "好", "in", "=" * 48, "。", "Café"]
CHARACTERS = [*"今天氣真好未詞Caféinł=。!ŁL", "\u3000", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
ARCHITECTURE = {
    "encoder": {"name": "elmo", "projection_dim": 8, "cell_clip": 3, "proj_clip": 3, "dim": 16, "n_layers": 2},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 4], [2, 4], [5, 6]],
        "n_highway": 2,
        "word_dim": 5,
        "char_dim": 4,
        "max_characters_per_token": 50,
    },
    "classifier": {"name": "sampled_softmax", "n_samples": 8192},
    "dropout": 0.1,
}


def write_list(path, entries):
    """As the training code does it: the entry, a tab, its number."""
    path.write_text("".join(f"{entry}\t{number}\n" for number, entry in enumerate(entries)), encoding="utf-8")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    (FOLDER / "config.json").write_text(
        json.dumps({"config_path": "/users4/conll18st/elmo/configs/tiny.json", "max_sent_len": 20}), encoding="utf-8"
    )
    (FOLDER / "tiny.json").write_text(json.dumps(ARCHITECTURE, indent=2) + "\n", encoding="utf-8")
    write_list(FOLDER / "word.dic", WORDS)
    write_list(FOLDER / "char.dic", CHARACTERS)
    torch.manual_seed(9)
    layers = [
        EmbeddingLayer(size, {entry: number for number, entry in enumerate(entries)}, fix_emb=False)
        for size, entries in ((5, WORDS), (4, CHARACTERS))
    ]
    model = Model(ARCHITECTURE, *layers)
    for weight in model.parameters():  # as drawn they are so small that little would show
        weight.data += 0.3 * torch.randn_like(weight)
    for part in ("token_embedder", "encoder"):
        state = getattr(model, part).state_dict()
        torch.save(state, FOLDER / f"{part}.pkl", _use_new_zipfile_serialization=False)
    arrays = {}
    for number, sentence in enumerate(SENTENCES):
        for layer in (0, 1, 2, -1, -2):
            embedder = Embedder(str(FOLDER))  # a new one, for it keeps its state
            arrays[f"{number}/{layer}"] = embedder.sents2elmo([sentence], output_layer=layer)[0].astype(np.float32)
    np.savez_compressed(FOLDER / "activations.npz", **arrays)
    lines = ",\n".join("  " + json.dumps(tokens, ensure_ascii=False) for tokens in SENTENCES)
    (FOLDER / "sentences.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
