#!/usr/bin/env python3
"""Make small models in the formats of bilm-tf and its kin, and what simple-elmo, heir of bilm-tf, gives for them.

    python -m venv peer-tf && peer-tf/bin/pip install simple-elmo tensorflow-cpu tf_keras
    peer-tf/bin/python tests/data/formats/make_tensorflow.py

| folder | what it is | made by |
|---|---|---|
| bilm_tf | a checkpoint of training, with its softmax and what the optimizer keeps | `training.train` |
| bilm_tf_words | the same for a model that reads words, its numbers in two files | `train`, `Saver(sharded=True)` |
| bilm_tf_tied | one layer that reads words, which are the softmax too; no skip connections | `training.train` |
| nlpl | model.zip of model.hdf5, options.json and vocab.txt, as in NLPL's repository | `dump_weights` of bilm_tf |
| words | weights.hdf5 of bilm_tf_words | `dump_weights` |
| token_cache | token_embeddings.hdf5, the vectors of a vocabulary, with weights.hdf5 | `dump_token_embeddings` |
| seqvec | the protein model's proportions | random weights |

Each has sentences.json and activations.npz: for sentence i an array (L + 1, T, 2P) named i, alone from a zero state.
Checkpoints also have scores/i/forward and scores/i/backward, (T + 1, V): what the softmax gives each word after <S> and
each token, and before </S> and each token, last first.
"""

import json
import logging
import os
import pathlib
import random
import shutil
import sys
import tempfile
import zipfile

os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3")  # read when TensorFlow is imported
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "golden"))

import h5py
import numpy as np
import tensorflow as tf
from make_golden import case_options, random_weights, write_weights
from simple_elmo import ElmoModel, training
from simple_elmo.data import Batcher, BidirectionalLMDataset, TokenBatcher
from simple_elmo.model import BidirectionalLanguageModel, dump_token_embeddings

HERE = pathlib.Path(__file__).resolve().parent

TEXT = """The river rose in the night and the old bridge was gone .
She sat on the bank of the river and waited for the boat .
The bank by the bridge was old .
今天 天气 很 好 ， 我们 去 公园 。
我们 在 河 边 等 船 。"""
SENTENCES = [
    "The bank of the river was old .".split(),
    ["今天", "我们", "去", "河", "边", "。"],
    ["Boats", "rose", "!"],
    ["船"],
]
PROTEINS = [list("SEQVECMKTAYIAKQR"), list("MXUBZ"), ["W"]]
TRAINING = {
    "bidirectional": True,
    "dropout": 0.1,
    "all_clip_norm_val": 10.0,
    "n_epochs": 1,
    "batch_size": 4,
    "unroll_steps": 5,
    "n_train_tokens": 30 * 4 * 5,  # 30 batches
    "n_negative_samples_batch": 8,
}


def new_graph(seed=9):
    tf.compat.v1.reset_default_graph()
    tf.compat.v1.set_random_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def write_vocabulary(path):
    words = sorted(set(TEXT.split()), key=lambda word: (-TEXT.split().count(word), word))
    path.write_text("\n".join(["<S>", "</S>", "<UNK>", *words]) + "\n", encoding="utf-8")
    return len(words) + 3


def train(name, changes, *, words=False):
    """Train a little; the folder then holds checkpoint, index, data, options and vocabulary."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    model = case_options({})
    options = {"lstm": model["lstm"], "char_cnn": model["char_cnn"] | {"n_characters": 261}} | TRAINING
    options["n_tokens_vocab"] = write_vocabulary(folder / "vocab.txt")
    if words:
        del options["char_cnn"]
    for key, value in changes.items():
        options[key] = options[key] | value if isinstance(value, dict) else value
    most = None if words else options["char_cnn"]["max_characters_per_token"]
    vocabulary = training.load_vocab(str(folder / "vocab.txt"), most)
    with tempfile.TemporaryDirectory() as elsewhere:
        text = pathlib.Path(elsewhere, "text.txt")
        text.write_text(TEXT, encoding="utf-8")
        new_graph()
        dataset = BidirectionalLMDataset(str(text), vocabulary, test=False, shuffle_on_load=True)
        training.train(options, dataset, 1, str(folder), elsewhere)
    for file in folder.glob("*.meta"):
        file.unlink()  # the graph
    return folder, options


def save_in_two_files(folder):
    """Replace a checkpoint by one whose variables lie on two devices, and so in two files."""
    reader = tf.train.load_checkpoint(str(folder))
    values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    for file in folder.glob("model.ckpt*"):
        file.unlink()
    new_graph()
    for number, (name, value) in enumerate(sorted(values.items())):
        with tf.device(f"/cpu:{number % 2}"):
            tf.compat.v1.get_variable(name, initializer=value)
    with tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(sharded=True).save(session, str(folder / "model.ckpt"), 7, write_meta_graph=False)


def dump(folder, options, outfile):
    """The checkpoint's weights as HDF5; a single layer is named as the reading side expects it."""
    new_graph()
    training.dump_weights(str(folder), str(outfile))
    with h5py.File(outfile, "a") as file:
        for direction in ("RNN_0", "RNN_1"):
            if "LSTMCell" in file[direction]["RNN"]:
                file.move(f"{direction}/RNN/LSTMCell", f"{direction}/RNN/MultiRNNCell/Cell0/LSTMCell")
    return options | {"char_cnn": options["char_cnn"] | {"n_characters": 262}} if "char_cnn" in options else options


def activations(options, weights, sentences, *, vocabulary=None, tokens=None):
    """Every layer of every sentence; `tokens` is the file with the words' vectors, for a model that reads words."""
    new_graph()
    if tokens is None:
        batcher = Batcher(None, options["char_cnn"]["max_characters_per_token"])
        ids = tf.compat.v1.placeholder("int32", (None, None, options["char_cnn"]["max_characters_per_token"]))
    else:
        batcher = TokenBatcher(str(vocabulary))
        ids = tf.compat.v1.placeholder("int32", (None, None))
    model = BidirectionalLanguageModel(
        options, str(weights), use_character_inputs=tokens is None, embedding_weight_file=tokens and str(tokens)
    )
    layers, found = model(ids)["lm_embeddings"], {}
    with tf.compat.v1.Session() as session:
        for number, sentence in enumerate(sentences):
            session.run(tf.compat.v1.global_variables_initializer())  # loads the weights and zeroes the state
            found[str(number)] = session.run(layers, {ids: batcher.batch_sentences([sentence])})[0]
    return found


def scores(folder, options):
    """What the checkpoint's own softmax gives."""
    found = {}
    most = options["char_cnn"]["max_characters_per_token"] if "char_cnn" in options else None
    vocabulary = training.load_vocab(str(folder / "vocab.txt"), most)
    for number, sentence in enumerate(SENTENCES):
        new_graph()
        test_options = options | {"batch_size": 1, "unroll_steps": len(sentence) + 1}
        with tf.compat.v1.Session() as session:
            with tf.compat.v1.variable_scope("lm"):
                model = training.LanguageModel(test_options, False)
                tf.compat.v1.train.Saver().restore(session, tf.train.latest_checkpoint(str(folder)))
            if most is None:
                feeds = (model.token_ids, model.token_ids_reverse)
                encode = vocabulary.encode
            else:
                feeds = (model.tokens_characters, model.tokens_characters_reverse)
                encode = vocabulary.encode_chars
            values = (
                encode(sentence, split=False)[None, :-1],
                encode(sentence[::-1], reverse=True, split=False)[None, :-1],
            )
            results = session.run(model.output_scores, dict(zip(feeds, values, strict=True)))
            found |= {f"scores/{number}/{way}": r for way, r in zip(("forward", "backward"), results, strict=True)}
    return found


def save(folder, arrays, sentences=SENTENCES):
    lines = ",\n".join("  " + json.dumps(tokens, ensure_ascii=False) for tokens in sentences)
    (folder / "sentences.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    np.savez_compressed(
        folder / "activations.npz", **{name: array.astype(np.float32) for name, array in arrays.items()}
    )


def fresh(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def write_options(folder, options):
    (folder / "options.json").write_text(json.dumps(options, indent=2) + "\n")


def make_bilm_tf():
    folder, options = train("bilm_tf", {})
    with tempfile.TemporaryDirectory() as name:
        weights = pathlib.Path(name, "model.hdf5")
        inference = dump(folder, options, weights)
        found = activations(inference, weights, SENTENCES)
        save(folder, found | scores(folder, options))
        make_nlpl(folder, inference, weights, found)
        make_token_cache(folder, inference, weights)


def make_nlpl(source, options, weights, expected):
    folder = fresh("nlpl")
    with zipfile.ZipFile(folder / "model.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(weights, "model.hdf5")
        archive.writestr("options.json", json.dumps(options))
        archive.write(source / "vocab.txt", "vocab.txt")
    new_graph()
    model = ElmoModel()
    model.load(str(folder / "model.zip"), max_batch_size=1)
    found = {}
    for number, sentence in enumerate(SENTENCES):
        found[str(number)] = model.get_elmo_vectors([sentence], warmup=False, layers="all")[0]
        np.testing.assert_allclose(found[str(number)], expected[str(number)], atol=1e-6)
    save(folder, found)


def make_token_cache(source, options, weights):
    folder = fresh("token_cache")
    write_options(folder, options)
    shutil.copy(source / "vocab.txt", folder)
    new_graph()
    files = [str(folder / "vocab.txt"), str(folder / "options.json"), str(weights)]
    dump_token_embeddings(*files, str(folder / "token_embeddings.hdf5"))
    shutil.copy(weights, folder / "weights.hdf5")
    cache = folder / "token_embeddings.hdf5"
    save(folder, activations(options, weights, SENTENCES, vocabulary=folder / "vocab.txt", tokens=cache))


def make_words(name, changes, *, sharded):
    folder, options = train(name, changes, words=True)
    if sharded:
        save_in_two_files(folder)
    with tempfile.TemporaryDirectory() as place:
        weights = pathlib.Path(place, "weights.hdf5")
        dump(folder, options, weights)
        found = activations(options, weights, SENTENCES, vocabulary=folder / "vocab.txt", tokens=weights)
        save(folder, found | scores(folder, options))
        if sharded:
            dumped = fresh("words")
            write_options(dumped, options)
            shutil.copy(weights, dumped)
            shutil.copy(folder / "vocab.txt", dumped)
            save(dumped, found)


def make_seqvec():
    folder = fresh("seqvec")
    filters = [[1, 2], [2, 2], [3, 4], [4, 8], [5, 4], [6, 4], [7, 4]]
    options = case_options({"char_cnn": {"filters": filters}})
    write_options(folder, options)
    write_weights(folder / "weights.hdf5", random_weights(options, lstm_scale=0.3))
    save(folder, activations(options, folder / "weights.hdf5", PROTEINS), PROTEINS)


def main():
    logging.disable(logging.CRITICAL)
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.disable_resource_variables()
    make_bilm_tf()
    make_words("bilm_tf_words", {}, sharded=True)
    tied = {"lstm": {"n_layers": 1, "use_skip_connections": False}, "share_embedding_softmax": True}
    make_words("bilm_tf_tied", tied, sharded=False)
    make_seqvec()
    for latest in HERE.glob("bilm_tf*/checkpoint"):  # TensorFlow writes down where it was: others' folders stand there
        text = latest.read_text(encoding="utf-8")
        latest.write_text(text.replace(str(latest.parent), "/home/author"), encoding="utf-8")


if __name__ == "__main__":
    main()
