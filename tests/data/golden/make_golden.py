#!/usr/bin/env python3
"""Make the golden activations: tiny random ELMo checkpoints and what simple-elmo, heir of bilm-tf, gives for them.

    python -m venv peer-tf && peer-tf/bin/pip install simple-elmo tensorflow-cpu tf_keras
    peer-tf/bin/python tests/data/golden/make_golden.py

Beside this file it writes sentences.json (a list of token lists) and for each case a folder with options.json,
weights.hdf5 and activations.npz. For sentence i the npz has two float32 arrays (L + 1, T, 2P) without <S> and </S>:
stateless/i, run alone from a zero state, and stateful/i, run in batches of three in order, state carried row by row.
A float64 loop in numpy checks every value; the script stops if the two disagree. A second run gives the same values in
other bytes: HDF5 stamps its groups with the time.
"""

import copy
import json
import os
import pathlib
from collections import Counter

import h5py
import numpy as np

os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3")  # read when TensorFlow is imported, below

HERE = pathlib.Path(__file__).parent
SEED = 9  # at which no clip bites in "base"
BATCH = 3
BOS, EOS, BOW, EOW, PAD = range(256, 261)
REPEATED = ["Rivers", "never", "hurry", "."]
CUT = "T恤衫印花图案设计师职业技能等级证书"  # byte 48 falls inside a character
SENTENCES = [
    REPEATED,
    ["今天", "去", "公园", "划船", "。"],
    ["Hello"],
    ["她", "用", "Python", "3.11", "！"],
    ["🎉", "👩‍💻", "ok"],
    [CUT, "很", "长"],
    ["Donaudampfschifffahrtselektrizitätenhauptbetriebswerk", "!"],
    ["«", "?!", "』", "'s"],
    ["好"],
    ["Café", "Cafe\u0301"],
    REPEATED,
    ["0123456789abcdef" * 3, "中华人民共和国全国人民代表大会常务委员会"],
    REPEATED,
]

BASE = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 8,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 16,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 4], [2, 4], [5, 6]],
        "n_highway": 2,
        "embedding": {"dim": 4},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}
CASES = {  # what differs from BASE; a case that changes no shape has the weights of "base"
    "base": {},
    "no_skip": {"lstm": {"use_skip_connections": False}},
    "one_highway": {"char_cnn": {"n_highway": 1}},
    "tanh": {"char_cnn": {"activation": "tanh"}},
    "ten_characters": {"char_cnn": {"max_characters_per_token": 10}},
    "three_layers": {"lstm": {"n_layers": 3}},
    "clip_bites": {"lstm": {"cell_clip": 1, "proj_clip": 1.5}},  # and larger LSTM weights, so not those of "base"
    "filters_equal_projection": {"char_cnn": {"filters": [[1, 2], [2, 2], [5, 4]]}},
    "n_characters_261": {"char_cnn": {"n_characters": 261}},
    "bare": {"lstm": {"dim": 8, "cell_clip": None, "proj_clip": None}, "char_cnn": {"n_highway": 0}},  # no W_P_0 either
}
LSTM_SCALES = {"clip_bites": 0.6}  # 0.3 elsewhere


def case_options(changes):
    options = copy.deepcopy(BASE)
    for section, values in changes.items():
        options[section].update(values)
    return options


def random_weights(options, *, lstm_scale):
    """Draw weights in the AllenAI layout; in steps of 1/16, which gzip packs well."""
    rng = np.random.default_rng(SEED)
    lstm, cnn = options["lstm"], options["char_cnn"]
    dim, projection, width_in = lstm["dim"], lstm["projection_dim"], cnn["embedding"]["dim"]
    n_filters = sum(count for _, count in cnn["filters"])
    shapes = {"char_embed": (261, width_in)}
    for i, (width, count) in enumerate(cnn["filters"]):
        shapes |= {f"CNN/W_cnn_{i}": (1, width, width_in, count), f"CNN/b_cnn_{i}": (count,)}
    if n_filters != projection:
        shapes |= {"CNN_proj/W_proj": (n_filters, projection), "CNN_proj/b_proj": (projection,)}
    for layer in range(lstm["n_layers"]):
        for direction in range(2):
            cell = cell_name(direction, layer)
            shapes |= {f"{cell}/W_0": (2 * projection, 4 * dim), f"{cell}/B": (4 * dim,)}
            if projection < dim:
                shapes[f"{cell}/W_P_0"] = (dim, projection)
    for i in range(cnn["n_highway"]):
        for gate in ("carry", "transform"):
            shapes |= {f"CNN_high_{i}/W_{gate}": (n_filters, n_filters), f"CNN_high_{i}/b_{gate}": (n_filters,)}
    scales = {"char_embed": 1.0} | {name: lstm_scale for name in shapes if name.startswith("RNN")}
    draw = {name: rng.normal(0, scales.get(name, 0.3), shape) for name, shape in shapes.items()}
    return {name: (np.round(values * 16) / 16).astype(np.float32) for name, values in draw.items()}


def cell_name(direction, layer):
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def write_weights(path, weights):
    with h5py.File(path, "w", libver="latest") as file:  # "latest" spends far less on groups
        for name, values in weights.items():
            file.create_dataset(name, data=values, compression="gzip", shuffle=True)


def tensorflow_activations(options, weights_path, *, stateful):
    """Run simple-elmo: one array (L + 1, T, 2P) a sentence, each alone from a zero state unless stateful."""
    import tensorflow as tf
    from simple_elmo.data import Batcher
    from simple_elmo.model import BidirectionalLanguageModel

    options = copy.deepcopy(options)
    options["char_cnn"]["n_characters"] = 262  # simple-elmo refuses 261, the number that training writes
    max_characters = options["char_cnn"]["max_characters_per_token"]
    size = BATCH if stateful else 1
    activations = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        char_ids = tf.compat.v1.placeholder("int32", (None, None, max_characters))
        layers = BidirectionalLanguageModel(options, str(weights_path), max_batch_size=size)(char_ids)["lm_embeddings"]
        initialise = tf.compat.v1.global_variables_initializer()  # loads the weights and zeroes the state
        for start in range(0, len(SENTENCES), size):
            if start == 0 or not stateful:
                session.run(initialise)
            batch = SENTENCES[start : start + size]
            ids = Batcher(None, max_characters).batch_sentences(batch)
            values = session.run(layers, {char_ids: ids})  # (B, L + 1, T, 2P)
            activations += [row[:, : len(tokens)] for row, tokens in zip(values, batch, strict=True)]
    return activations


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Reference:
    """The biLM written out in numpy, one token at a time; `clipped` counts the values each clip changed."""

    def __init__(self, options, weights):
        self.lstm, self.cnn = options["lstm"], options["char_cnn"]
        self.weights = {name: values.astype(np.float64) for name, values in weights.items()}
        self.clipped = Counter()

    def embed(self, tokens, state):
        """Give (L + 1, T, 2P), reading and updating state: (direction, layer) -> (c, h)."""
        words = [[BOS], *(token.encode() for token in tokens), [EOS]]
        x = np.stack([self.token_vector(word) for word in words])  # (T + 2, P)
        forward = self.lstm_layers(x, 0, state)
        backward = [layer[::-1] for layer in self.lstm_layers(x[::-1], 1, state)]
        return np.stack([np.concatenate(pair, axis=1)[1:-1] for pair in zip(forward, backward, strict=True)])

    def token_vector(self, word):
        w, length = self.weights, self.cnn["max_characters_per_token"]
        ids = [BOW, *word[: length - 2], EOW]
        x = w["char_embed"][ids + [PAD] * (length - len(ids))]  # (C, E)
        pooled = []
        for i, (width, _) in enumerate(self.cnn["filters"]):
            windows = np.stack([x[k : k + width] for k in range(length - width + 1)])  # (C - width + 1, width, E)
            pooled.append(np.einsum("kwe,wen->kn", windows, w[f"CNN/W_cnn_{i}"][0]).max(axis=0) + w[f"CNN/b_cnn_{i}"])
        x = np.concatenate(pooled)  # (filters,)
        x = np.tanh(x) if self.cnn["activation"] == "tanh" else np.maximum(x, 0)
        for i in range(self.cnn["n_highway"]):
            gate = sigmoid(x @ w[f"CNN_high_{i}/W_carry"] + w[f"CNN_high_{i}/b_carry"])
            transformed = np.maximum(x @ w[f"CNN_high_{i}/W_transform"] + w[f"CNN_high_{i}/b_transform"], 0)
            x = gate * transformed + (1 - gate) * x
        return x @ w["CNN_proj/W_proj"] + w["CNN_proj/b_proj"] if "CNN_proj/W_proj" in w else x  # (P,)

    def lstm_layers(self, x, direction, state):
        layers = [x]  # each (T + 2, P)
        for layer in range(self.lstm["n_layers"]):
            cell = cell_name(direction, layer)
            kernel, bias = self.weights[f"{cell}/W_0"], self.weights[f"{cell}/B"]
            project = self.weights.get(f"{cell}/W_P_0", np.eye(self.lstm["dim"]))
            c, h = state.get((direction, layer), (np.zeros(self.lstm["dim"]), np.zeros(self.lstm["projection_dim"])))
            outputs = []
            for step in layers[-1]:
                i, j, f, o = np.split(np.concatenate([step, h]) @ kernel + bias, 4)
                c = self.clip("cell_clip", sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j))
                h = self.clip("proj_clip", (sigmoid(o) * np.tanh(c)) @ project)
                outputs.append(h + step if layer > 0 and self.lstm["use_skip_connections"] else h)
            state[direction, layer] = c, h
            layers.append(np.stack(outputs))
        return layers

    def clip(self, name, x):
        limit = self.lstm[name] or np.inf
        self.clipped[name] += int((np.abs(x) > limit).sum())
        return np.clip(x, -limit, limit)


def check(name, reference, activations):
    """Stop unless the numpy loop agrees with TensorFlow in both modes."""
    rows = [{} for _ in range(BATCH)]
    for i, tokens in enumerate(SENTENCES):
        for mode, state in (("stateless", {}), ("stateful", rows[i % BATCH])):
            expected = reference.embed(tokens, state)
            found = activations[f"{mode}/{i}"]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=f"{name} {mode}/{i}")


def check_clips_bite(options, weights, activations):
    """Stop unless a model without the one clip or the other gives other values, from a zero state already."""
    for clip in ("cell_clip", "proj_clip"):
        unclipped = Reference(options | {"lstm": options["lstm"] | {clip: None}}, weights)
        changes = [
            np.abs(unclipped.embed(s, {}) - activations[f"stateless/{i}"]).max() for i, s in enumerate(SENTENCES)
        ]
        assert max(changes) > 0.1, (clip, changes)


def write_case(name):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    options = case_options(CASES[name])
    weights = random_weights(options, lstm_scale=LSTM_SCALES.get(name, 0.3))
    folder.joinpath("options.json").write_text(json.dumps(options, indent=2) + "\n")
    write_weights(folder / "weights.hdf5", weights)
    activations = {}
    for mode in ("stateless", "stateful"):
        values = tensorflow_activations(options, folder / "weights.hdf5", stateful=mode == "stateful")
        activations |= {f"{mode}/{i}": value for i, value in enumerate(values)}
    reference = Reference(options, weights)
    check(name, reference, activations)
    if name == "base":
        assert not reference.clipped.total(), reference.clipped
    if name == "clip_bites":
        check_clips_bite(options, weights, activations)
    np.savez_compressed(folder / "activations.npz", **activations)
    print(f"{name}: agrees; values clipped: {dict(reference.clipped)}")


def main():
    assert "\ufffd" in CUT.encode()[:48].decode(errors="replace")
    lines = ",\n".join("  " + json.dumps(tokens, ensure_ascii=False) for tokens in SENTENCES)
    HERE.joinpath("sentences.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    for name in CASES:
        write_case(name)


if __name__ == "__main__":
    main()
