"""bilm-tf's own checkpoints, as TensorFlow saved them in training: with the softmax, so that training can go on."""

import re
from pathlib import Path

from elmokit.checkpoints.checkpoint import Checkpoint, vocabulary_in
from elmokit.checkpoints.options import OPTIONS, Options, read_options, to_config
from elmokit.checkpoints.tables import WORDS, Row, same, tensorflow_rows, to_ours
from elmokit.checkpoints.tensor_bundle import INDEX_ENDING, TensorBundle
from elmokit.config import ModelConfig
from elmokit.errors import CheckpointError

NAME = "bilm-tf"
LAYOUT = "a bilm-tf checkpoint (options.json, checkpoint, model.ckpt-….index, model.ckpt-….data-…)"
LATEST = "checkpoint"
HDF5 = "*.hdf5"
SCOPE = "lm/"
SOFTMAX_WEIGHT, SOFTMAX_BIAS = "softmax/W", "softmax/b"
OPTIMIZER = re.compile("/(Adagrad|Adam|Adam_1|Momentum|RMSProp|RMSProp_1)$")
RENAMED = (  # how TensorFlow's names became those of the HDF5 file; older versions said weights and biases
    ("/rnn/", "/RNN/"),
    ("/multi_rnn_cell/cell_", "/MultiRNNCell/Cell"),
    ("/RNN/lstm_cell/", "/RNN/MultiRNNCell/Cell0/lstm_cell/"),
    ("/lstm_cell/projection/(kernel|weights)$", "/LSTMCell/W_P_0"),
    ("/lstm_cell/(kernel|weights)$", "/LSTMCell/W_0"),
    ("/lstm_cell/(bias|biases)$", "/LSTMCell/B"),
)


def recognises(path: Path) -> bool:
    """A checkpoint's index, with or without its ending, the file that names the latest, or a folder with any."""
    if path.is_dir():  # weights dumped to HDF5 are the same model without the softmax, and quicker to read
        return any(path.glob(f"*{INDEX_ENDING}")) and not any(path.glob(HDF5))
    named = path.name == LATEST or path.suffix == INDEX_ENDING
    return (named and path.is_file()) or _index_of(path).is_file()


def read(path: Path) -> Checkpoint:
    """Find the checkpoint, and read it with its options and vocabulary."""
    index = _find(path)
    options_path = index.with_name(OPTIONS)
    if not options_path.exists():
        raise CheckpointError(f"{index}: its options are missing: {OPTIONS} should lie beside it")
    bundle, options = TensorBundle(index), read_options(options_path)
    found = {
        _canonical(name): entry
        for name, entry in bundle.entries.items()
        if name.startswith(SCOPE) and not OPTIMIZER.search(name)
    }
    bias = found[SOFTMAX_BIAS].shape if SOFTMAX_BIAS in found else ()
    options.n_tokens_vocab = options.n_tokens_vocab or next(iter(bias), 0)
    config = to_config(options_path, options, softmax=SOFTMAX_BIAS in found)
    weights = to_ours(_rows(config, options), config, found, bundle.read, path=index, described_by=options_path)
    return Checkpoint(config, weights, vocabulary_in(index.parent, config), f"{NAME} ({index})")


def _index_of(path: Path) -> Path:
    return path.with_name(path.name + INDEX_ENDING)


def _find(path: Path) -> Path:
    """The index of the checkpoint meant; in a folder that of the latest."""
    if path.name == LATEST and path.is_file():
        path = path.parent
    if not path.is_dir():
        return path if path.suffix == INDEX_ENDING else _index_of(path)
    found = sorted(path.glob(f"*{INDEX_ENDING}"))
    if (path / LATEST).exists():
        index = _index_of(path / _latest(path / LATEST))
        if not index.exists():
            raise CheckpointError(f"{path / LATEST}: names {index.name}, which is not beside it")
        return index
    if len(found) == 1:
        return found[0]
    names = ", ".join(file.name for file in found)
    raise CheckpointError(f"{path}: {LATEST}, which names the latest of {names}, is missing. Name one of them")


def _latest(path: Path) -> str:
    """The name of the latest checkpoint, without the folder that it had where it was made."""
    text = path.read_text(encoding="utf-8", errors="replace")
    match = re.search(r'^model_checkpoint_path: "(?:.*[/\\])?([^/\\"]+)"', text, re.MULTILINE)
    if match is None:
        raise CheckpointError(f"{path}: no model_checkpoint_path is named in it")
    return match[1]


def _canonical(name: str) -> str:
    name = name.removeprefix(SCOPE)
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def _rows(config: ModelConfig, options: Options) -> list[Row]:
    rows = tensorflow_rows(config)
    if config.softmax is None:
        return rows
    rows.append(same(SOFTMAX_BIAS, "softmax.bias"))
    if not options.share_embedding_softmax:
        return [*rows, same(SOFTMAX_WEIGHT, "softmax.weight")]
    rows = [row for row in rows if row.ours != (WORDS,)]
    shared = Row(("embedding",), (WORDS, "softmax.weight"), lambda w: (w, w.clone()), lambda w, _: (w,))
    return [shared, *rows]
