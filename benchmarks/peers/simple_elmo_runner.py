"""simple-elmo as a contestant: `python simple_elmo_runner.py MODEL WORKLOAD`, in the environment of inference.py."""

import json
import logging
import os
import pathlib
import sys
import tempfile

os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3")

import numpy as np
from protocol import serve
from simple_elmo import ElmoModel

BATCH = 64


def main():
    """Load, then serve."""
    logging.disable(logging.CRITICAL)
    source = pathlib.Path(sys.argv[1]).resolve()
    workload = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    words = {word for sentences in workload for sentence in sentences for word in sentence}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "options.json").symlink_to(source / "options.json")
        (folder / "model.hdf5").symlink_to(source / "weights.hdf5")
        vocabulary = "\n".join(["<S>", "</S>", "<UNK>", *sorted(words)])
        (folder / "vocab.txt").write_text(vocabulary, encoding="utf-8")
        model = ElmoModel()
        model.load(str(folder), max_batch_size=BATCH)

        def save_vectors(sentences, path):
            """Each sentence in a session of its own, which begins with a state of zeros."""
            layers = [model.get_elmo_vectors([sentence], warmup=False, layers="all")[0] for sentence in sentences]
            np.save(path, np.concatenate(layers, axis=1).astype(np.float32))

        # every call opens a session and loads the weights anew
        serve(lambda sentences: model.get_elmo_vectors(sentences, layers="average"), save_vectors, single=3)


if __name__ == "__main__":
    main()
