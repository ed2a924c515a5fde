"""A small model in every format, and ways to damage it."""

import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import torch
from conftest import BYTES, GOLDEN, HERE, random_checkpoint
from safetensors.torch import load_file, save_file

from elmokit.checkpoints import write_checkpoint
from elmokit.checkpoints.bilm_tf import MAGIC, masked_crc32c, read_table
from elmokit.checkpoints.checkpoint import Checkpoint

FIXTURES = HERE / "data" / "formats"
OPTIONS_IN_ARCHIVE = "fta/model.text_field_embedder.token_embedders.elmo.options_file"


@dataclass(frozen=True)
class Specimen:
    """A model on disk: how it is made, and which of its files is what."""

    make: Callable[[Path], object]
    weights: str
    description: str
    start: str = "."
    """What is loaded, in the folder."""
    sizes: tuple[str, str] = ('"dim": 16', '"dim": 12')
    """What the description says, and what it would say of another model."""
    names: str | None = None
    """The file with the names and shapes of the weights, if another one."""
    also: tuple[str, ...] = ()
    """Other things in the folder that can be loaded, and are the same model."""


def written(name: str) -> Callable[[Path], object]:
    return lambda folder: write_checkpoint(random_checkpoint(BYTES), folder, to=name)


def copied(name: str) -> Callable[[Path], object]:
    return lambda folder: shutil.copytree(FIXTURES / name, folder)


def unpacked_allennlp(folder: Path) -> None:
    with tarfile.open(FIXTURES / "allennlp" / "model.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    (folder / "fta").mkdir()
    shutil.copy(GOLDEN / "base" / "options.json", folder / OPTIONS_IN_ARCHIVE)


SPECIMENS = {
    "native": Specimen(
        written("native"),
        "model.safetensors",
        "config.json",
        sizes=("24", "20"),
        also=("config.json", "model.safetensors"),
    ),
    "allenai": Specimen(
        written("allenai"), "weights.hdf5", "options.json", sizes=("24", "20"), also=("options.json", "weights.hdf5")
    ),
    "allenai, words": Specimen(copied("words"), "weights.hdf5", "options.json", also=("options.json", "weights.hdf5")),
    "token cache": Specimen(
        copied("token_cache"), "token_embeddings.hdf5", "options.json", start="token_embeddings.hdf5"
    ),
    "bilm-tf": Specimen(
        copied("bilm_tf"),
        "model.ckpt-30.data-00000-of-00001",
        "options.json",
        names="model.ckpt-30.index",
        also=("checkpoint", "model.ckpt-30", "model.ckpt-30.index"),
    ),
    "bilm-tf, index": Specimen(copied("bilm_tf"), "model.ckpt-30.index", "options.json", start="model.ckpt-30"),
    "bilm-tf, shards": Specimen(
        copied("bilm_tf_words"), "model.ckpt-7.data-00001-of-00002", "options.json", names="model.ckpt-7.index"
    ),
    "manylangs": Specimen(copied("manylangs"), "encoder.pkl", "tiny.json", also=("config.json", "encoder.pkl")),
    "manylangs, tokens": Specimen(copied("manylangs"), "token_embedder.pkl", "tiny.json", also=("char.dic",)),
    "allennlp": Specimen(unpacked_allennlp, "weights.th", OPTIONS_IN_ARCHIVE, also=("weights.th",)),
}
ARCHIVES = {"zip": FIXTURES / "nlpl" / "model.zip", "tar.gz": FIXTURES / "allennlp" / "model.tar.gz"}


def assert_same_weights(one: Checkpoint, other: Checkpoint) -> None:
    assert one.weights.keys() == other.weights.keys()
    for weight_name, weight in one.weights.items():
        assert torch.equal(weight, other.weights[weight_name]), weight_name


def edit_weights(path: Path, *, shape: bool = False) -> str:
    """Give one tensor another shape, or take it away and add another one; its name."""
    if path.suffix == ".hdf5":
        return _edit_hdf5(path, shape=shape)
    if path.suffix == ".index":
        return _edit_index(path, shape=shape)
    weights = load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
    name = next(name for name in sorted(weights) if path.suffix != ".th" or "_token_embedder.char_conv" in name)
    prefix = name.partition("_token_embedder.")[0] if path.suffix == ".th" else ""
    if shape:
        weights[name] = torch.ones(3, 2)
    else:
        del weights[name]
        weights[f"{prefix}surplus"] = torch.ones(1)
    if path.suffix == ".safetensors":
        save_file(weights, path)
    else:
        torch.save(weights, path)
    return name.removeprefix(prefix)


def _edit_hdf5(path: Path, *, shape: bool) -> str:
    with h5py.File(path, "a") as file:
        name = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/B" if "RNN_1" in file else "embedding"
        numbers = file[name][()]
        if shape or name != "embedding":  # without it, the file would be no token cache at all
            del file[name]
        if shape:
            file[name] = numbers[..., :-1]
        else:
            file["surplus"] = [1.0]
        return name if shape or name not in file else ""


def _edit_index(path: Path, *, shape: bool) -> str:
    table = read_table(path.read_bytes())
    cell = b"lm/RNN_0/rnn/multi_rnn_cell/cell_0/lstm_cell"
    table[cell + b"/bias" if shape else b"lm/surplus"] = table[cell + b"/projection/kernel"]
    if not shape:
        del table[cell + b"/bias"]
    path.write_bytes(table_file(table))
    return "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B"


def table_file(table: dict[bytes, bytes], *, pack: Callable[[bytes], bytes] | None = None) -> bytes:
    """A sorted table of one block, compressed if asked for."""
    content = b""
    handles = []
    for number, entries in enumerate(({key: table[key] for key in sorted(table)}, {}, None)):
        plain = _table_block(entries if entries is not None else {b"\xff": handles[0]})
        block = pack(plain) if pack and number == 0 else plain
        kind = bytes([1 if pack and number == 0 else 0])
        handles.append(varint(len(content)) + varint(len(block)))
        content += block + kind + masked_crc32c(block + kind).to_bytes(4, "little")
    return content + (handles[1] + handles[2]).ljust(40, b"\0") + MAGIC.to_bytes(8, "little")


def _table_block(entries: dict[bytes, bytes]) -> bytes:
    parts = [varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in entries.items()]
    return b"".join(parts) + bytes(4) + (1).to_bytes(4, "little")  # one place where a whole key stands: the first


def varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])
