"""ELMoForManyLangs: config.json, the architecture it names, char.dic, word.dic, token_embedder.pkl, encoder.pkl."""

import re
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from torch import Tensor

import elmokit.checkpoints.tables as tables
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.options import CNN_NAMES, SHARED
from elmokit.checkpoints.torch_files import as_float, read_state
from elmokit.config import CharacterConfig, Filters, ModelConfig, WordConfig
from elmokit.errors import CheckpointError, ConfigError
from elmokit.files import read_description
from elmokit.text.vocabulary import BOS, EOS, UNK, Vocabulary

NAME = "manylangs"
LAYOUT = "an ELMoForManyLangs folder (config.json, encoder.pkl, token_embedder.pkl, word.dic, char.dic)"
FILES = ("config.json", "encoder.pkl", "token_embedder.pkl", "word.dic", "char.dic")
CONFIG, ENCODER, TOKENS, WORD_LIST, CHARACTER_LIST = FILES
WORD_ROWS, CHARACTER_ROWS = "word_emb_layer.embedding.weight", "char_emb_layer.embedding.weight"
WORD_SPECIALS = ("<bos>", "<eos>", "<oov>")  # <S>, </S> and <UNK> here
# PAD, UNKNOWN, BOW, EOW, BOS and EOS here. A word begins with <eow> and ends with <bow>: so the models were trained.
CHARACTER_SPECIALS = ("<pad>", "<oov>", "<eow>", "<bow>", "<bos>", "<eos>")
BLANK = "\u3000"


class EncoderOptions(msgspec.Struct):
    """`encoder`."""

    name: Literal["elmo"] = "elmo"
    projection_dim: int = 512
    cell_clip: float | None = 3
    proj_clip: float | None = 3
    dim: int = 4096
    n_layers: int = 2


class TokenOptions(msgspec.Struct, rename=CNN_NAMES):
    """`token_embedder`."""

    name: Literal["cnn"] = "cnn"
    activation: Literal["relu", "tanh"] = "relu"
    filters: Filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    highways: int = 2
    word_dim: int = 100
    char_dim: int = 50
    max_characters: int = 50


class Architecture(msgspec.Struct):
    """What the architecture's JSON says; everything else in it is ignored."""

    encoder: EncoderOptions
    token_embedder: TokenOptions


class Config(msgspec.Struct):
    """What config.json says: a path on the author's machine, of which the last part counts."""

    config_path: str


class Entries(NamedTuple):
    """What a .dic file names."""

    others: list[str]  # all but the specials
    rows: list[int]  # the numbers of the specials, then those of the others
    size: int  # all entries of the file


# These came with the package instead of the models, and say the same.
PACKAGED = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")


def recognises(path: Path) -> bool:
    """The folder, or one of its files."""
    folder = path if path.is_dir() else path.parent
    return (path.is_dir() or path.name in FILES) and any((folder / file).exists() for file in (ENCODER, TOKENS))


def read(path: Path) -> Checkpoint:
    """Read the folder, or the folder that the given file is in."""
    folder = path if path.is_dir() else path.parent
    described_by, architecture = _architecture(folder)
    tokens = architecture.token_embedder
    words = _read_list(folder / WORD_LIST, WORD_SPECIALS) if tokens.word_dim else None
    characters = _read_list(folder / CHARACTER_LIST, CHARACTER_SPECIALS, single=True) if tokens.char_dim else None
    try:
        config = _config(architecture, words, characters)
    except ConfigError as error:
        raise CheckpointError(f"{described_by}: {error}") from None
    rows = [tables.same(WORD_ROWS, tables.WORDS)] if words else []
    rows += [tables.same(CHARACTER_ROWS, tables.CHARACTERS)] if characters else []
    rows += tables.torch_token_rows(config, "convolutions.", "highways._layers.", "projection")
    weights: dict[str, Tensor] = {}
    for file, its_rows in ((folder / TOKENS, rows), (folder / ENCODER, tables.torch_cell_rows(config))):
        state = read_state(file)
        for name, entries in ((WORD_ROWS, words), (CHARACTER_ROWS, characters)):
            if entries is not None and name in state:
                state[name] = _in_our_order(file, name, state[name], entries)
        read_one = partial(as_float, file)
        weights |= tables.to_ours(its_rows, config, state, read_one, path=file, described_by=described_by)
    vocabulary = None if words is None else Vocabulary((BOS, EOS, UNK, *words.others))
    return Checkpoint(config, weights, vocabulary, f"{NAME} ({folder})")


def _architecture(folder: Path) -> tuple[Path, Architecture]:
    """The architecture and the file that describes it."""
    what = "what ELMoForManyLangs writes"
    named = read_description(folder / CONFIG, Config, what=what).config_path
    path = folder / re.split(r"[/\\]", named)[-1]
    if path.name in PACKAGED and not path.exists():
        return path, Architecture(EncoderOptions(), TokenOptions())
    return path, read_description(path, Architecture, what=what)


def _read_list(path: Path, specials: tuple[str, ...], *, single: bool = False) -> Entries:
    """The entries of a .dic file, single characters alone if asked for; one that is nothing but a blank is U+3000."""
    try:
        lines = [line.strip() for line in path.read_bytes().decode().split("\n")]
        fields = [line.rpartition("\t") for line in lines if line]
        numbers = {entry or BLANK: int(number) for entry, _, number in fields}
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read as entries with numbers: {error}") from None
    if wrong := [entry for entry, number in numbers.items() if not 0 <= number < len(fields)]:
        raise CheckpointError(f"{path}: {wrong[0]!r} is number {numbers[wrong[0]]} of {len(fields)} entries")
    if missing := [special for special in specials if special not in numbers]:
        raise CheckpointError(f"{path}: {missing[0]} is not among its entries")
    others = [entry for entry in numbers if entry not in specials and not (single and len(entry) > 1)]
    others.sort(key=numbers.__getitem__)
    return Entries(others, [numbers[entry] for entry in (*specials, *others)], len(fields))


def _config(architecture: Architecture, words: Entries | None, characters: Entries | None) -> ModelConfig:
    encoder, tokens = architecture.encoder, architecture.token_embedder
    shared: dict[str, Any] = {name: getattr(tokens, name) for name in SHARED}
    return ModelConfig(
        characters=characters
        and CharacterConfig(alphabet="unicode", characters="".join(characters.others), dim=tokens.char_dim, **shared),
        words=words and WordConfig(size=len(words.rows), dim=tokens.word_dim, max_characters=tokens.max_characters - 2),
        layers=encoder.n_layers,
        hidden=encoder.dim,
        projection=encoder.projection_dim,
        cell_clip=encoder.cell_clip or None,
        projection_clip=encoder.proj_clip or None,
        forget_bias=0.0,  # it is in the biases
    )


def _in_our_order(file: Path, name: str, vectors: Tensor, entries: Entries) -> Tensor:
    if vectors.ndim != 2 or len(vectors) != entries.size:
        found = "×".join(map(str, vectors.shape))
        raise CheckpointError(f"{file}: '{name}' is {found}, expected a row for each of the {entries.size} entries")
    return vectors[entries.rows]
