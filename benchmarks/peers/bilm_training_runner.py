"""bilm-tf's own training code, as simple-elmo carries it, as a contestant: `python bilm_training_runner.py FOLDER`.

FOLDER holds options.json (in bilm-tf's training format), vocab.txt, train.txt and heldout.txt (a sentence a line,
tokens apart by a blank). Commands: `train SECONDS` trains for about so long, and answers with seconds and steps;
`perplexity` answers with the held-out one and ends it. That is by bilm-tf's own test code: exact, mean of both
directions' losses, the state carried on from sentence to sentence as it was trained.
"""

import contextlib
import json
import logging
import os
import pathlib
import sys
import time

os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3")

import tensorflow as tf
from simple_elmo import training
from simple_elmo.data import BidirectionalLMDataset

TEST_STREAMS = 128


class DoneError(Exception):
    """No more training."""


class CommandedDataset:
    """Hands out batches for as long as it is told to."""

    def __init__(self, dataset, checkpoint):
        self.dataset, self.checkpoint = dataset, checkpoint

    def iter_batches(self, batch_size, num_steps):
        """Batches; between them, commands are read and answered."""
        batches = self.dataset.iter_batches(batch_size, num_steps)
        yield next(batches)  # the first step is slow: it belongs to getting ready
        answer({"ready": True})
        for line in sys.stdin:
            command, *arguments = line.split()
            if command == "perplexity":
                session = tf.compat.v1.get_default_session()
                tf.compat.v1.train.Saver().save(session, self.checkpoint)
                raise DoneError
            start, steps = time.perf_counter(), 0
            while time.perf_counter() - start < float(arguments[0]):
                yield next(batches)
                steps += 1
            answer({"seconds": time.perf_counter() - start, "steps": steps})


class HeldOutDataset:
    """Hands out batches to the end of the text, where bilm-tf's own generator fails in Python 3.7 and later."""

    def __init__(self, dataset):
        self.dataset = dataset

    def iter_batches(self, batch_size, num_steps):
        """Batches."""
        with contextlib.suppress(RuntimeError):
            yield from self.dataset.iter_batches(batch_size, num_steps)


def answer(values):
    """One line of JSON."""
    print(json.dumps(values), flush=True)


def main():
    """Train as told, then measure."""
    folder = pathlib.Path(sys.argv[1]).resolve()
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    logging.disable(logging.CRITICAL)
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.disable_resource_variables()
    threads = int(os.environ["OMP_NUM_THREADS"])
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    vocabulary = training.load_vocab(str(folder / "vocab.txt"), options["char_cnn"]["max_characters_per_token"])
    text = BidirectionalLMDataset(str(folder / "train.txt"), vocabulary, test=False, shuffle_on_load=True)
    checkpoint = str(folder / "model.ckpt")
    try:
        training.train(options, CommandedDataset(text, checkpoint), 1, str(folder), str(folder))
    except DoneError:
        with tf.Graph().as_default():
            held_out = HeldOutDataset(BidirectionalLMDataset(str(folder / "heldout.txt"), vocabulary, test=True))
            answer({"perplexity": float(training.test(options, checkpoint, held_out, batch_size=TEST_STREAMS))})


if __name__ == "__main__":
    main()
