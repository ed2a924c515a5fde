"""A model as an ONNX graph, for programs without Python; what such a graph cannot hold stands beside it as JSON."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmokit.config import ModelConfig
from elmokit.elmo import Elmo
from elmokit.errors import ConfigError, MissingExtraError, OutputError
from elmokit.files import as_json, replacing_files
from elmokit.model.bilm import BiLM, run_stack
from elmokit.model.recurrent import RecurrentLayer
from elmokit.model.softmax import Softmax
from elmokit.text.vocabulary import BOS, EOS, UNK

LEAST_HALF = 1024  # numbers; smaller tensors are left as they are
INPUTS = ("char_ids", "word_ids")
NO_WORD = -1  # among word ids, for the places after a sentence's end


class Characters(msgspec.Struct, frozen=True, kw_only=True):
    """How a word becomes ids: [bow, its characters, eow, pad…]; <S> and </S> have bos or eos for a character."""

    alphabet: str
    """bytes: UTF-8 bytes are their own ids. unicode: characters are numbered from `first` on."""
    characters: str
    max_characters: int
    """Ids of a word, bow and eow among them; longer words are cut."""
    widest: int
    """Characters that the widest filter sees: more pads than so many change nothing."""
    bos: int
    eos: int
    bow: int
    eow: int
    pad: int
    """Also every id of the places after a sentence's end."""
    unknown: int | None = None
    first: int | None = None


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """How a word becomes its number in the vocabulary."""

    vocabulary: tuple[str, ...]
    unknown: int | None
    """The number of words that are not in it."""
    longest: int | None
    """Characters by which a longer word is looked up; none for all."""
    pad: int = NO_WORD


class Beside(msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag="elmokit onnx"):
    """What the graph does not hold."""

    version: int = 1
    layers: int
    width: int
    tokenizer: str
    """How elmokit splits text for this model; the graph takes words."""
    bounds: tuple[str, str] = (BOS, EOS)
    """What stands before and after each sentence."""
    characters: Characters | None
    words: Words | None


class Layers(nn.Module):
    """Context-free vectors of padded sentences with their bounds, (T, B, P), and their lengths → (L + 1, T, B, 2P)."""

    def __init__(self, bilm: BiLM) -> None:
        super().__init__()
        self.bilm = bilm

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        step = torch.arange(x.shape[0])[:, None]
        turned = torch.where(step < lengths, lengths - 1 - step, step)[:, :, None].expand_as(x)
        forward, backward = self.bilm.stacks
        ahead = self._outputs(forward, x)
        back = [output.gather(0, turned) for output in self._outputs(backward, x.gather(0, turned))]
        return torch.stack([torch.cat(pair, dim=-1) for pair in zip([x, *ahead], [x, *back], strict=True)])

    def _outputs(self, stack: list[RecurrentLayer], x: Tensor) -> list[Tensor]:
        def run(_level: int, layer: RecurrentLayer, x: Tensor) -> Tensor:
            return _scanned(layer, x)

        return list(run_stack(stack, x, run, residual=self.bilm.config.residual))


class WordVectors(nn.Module):
    """Ids of words, char_ids (N, C) and word_ids (N,) → their context-free vectors, (N, P)."""

    def __init__(self, bilm: BiLM) -> None:
        super().__init__()
        self.tokens = bilm.tokens

    def forward(self, char_ids: Tensor | None, word_ids: Tensor | None) -> Tensor:
        vectors: Tensor = self.tokens(char_ids, word_ids, plain=True)
        return vectors


class Graph(nn.Module):
    """Ids of padded sentences with their bounds → (L + 1, B, T - 2, 2P), the tokens without the bounds.

    char_ids is (B, T, C), word_ids (B, T). After a sentence's end char_ids hold pad, word_ids -1, and vectors mean
    nothing.
    """

    def __init__(self, bilm: BiLM) -> None:
        super().__init__()
        self.words, self.layers = WordVectors(bilm), Layers(bilm)

    def forward(self, char_ids: Tensor | None, word_ids: Tensor | None) -> Tensor:
        real = word_ids >= 0 if word_ids is not None else self._starts(char_ids)  # (B, T)
        chars = None if char_ids is None else char_ids.flatten(0, 1)
        words = None if word_ids is None else word_ids.clamp(min=0).flatten()
        x = self.words(chars, words).unflatten(0, (real.shape[0], real.shape[1])).transpose(0, 1)  # (T, B, P)
        layers: Tensor = self.layers(x, real.sum(dim=1))  # (L + 1, T, B, 2P)
        return layers[:, 1:-1].transpose(1, 2)

    def _starts(self, char_ids: Tensor | None) -> Tensor:
        assert char_ids is not None
        assert self.words.tokens.characters is not None
        return char_ids[:, :, 0] != self.words.tokens.characters.pad


class LogProbabilities(nn.Module):
    """Top layers of one direction, (N, P) → the log probability of every word, (N, V)."""

    def __init__(self, softmax: Softmax) -> None:
        super().__init__()
        self.softmax = softmax

    def forward(self, h: Tensor) -> Tensor:
        return self.softmax.log_probabilities(h)


def _scanned(layer: RecurrentLayer, x: Tensor) -> Tensor:
    """The outputs, (T, B, P), of a layer from a zero state: one Scan node whose body is the cell's own formula."""
    from torch._higher_order_ops.scan import scan

    recurrent = layer.weight[:, layer.input_size :]

    def step(carry: tuple[Tensor, Tensor], gates: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
        h, c = layer.step(gates, recurrent, *carry)
        return (h, c.clone()), h.clone()  # no output may be another's memory

    zeros = x.new_zeros(x.shape[1], layer.output_size), x.new_zeros(x.shape[1], layer.hidden)
    outputs: Tensor = scan(step, zeros, layer.input_gates(x))[1]
    return outputs


def write_onnx(elmo: Elmo, path: Path, *, half: bool = False, overwrite: bool = False) -> None:
    """Write the graph to a file *.onnx, and what it does not hold to *.json beside it.

    `half` stores 16-bit weights, which are widened when the graph is loaded.
    """
    if path.suffix != ".onnx":
        raise ConfigError(f"{path}: the name of a graph ends in .onnx")
    if not path.parent.is_dir():
        raise OutputError(f"{path.parent} is no folder: make it first")
    beside = path.with_suffix(".json")
    if (there := [str(file) for file in (path, beside) if file.exists()]) and not overwrite:
        raise OutputError(f"{there[0]} is there already: choose another name, or ask for it to be overwritten")
    ids = padded_ids(elmo, [["a", "b"], ["a"]])  # of sentences that stand for any
    content = _exported(Graph(elmo.bilm), _inputs(ids), "layers", half=half)
    with replacing_files(path.parent) as partial:
        (partial / path.name).write_bytes(content)
        (partial / beside.name).write_bytes(as_json(describe(elmo)))


def graphs(elmo: Elmo, *, half: bool = False) -> dict[str, bytes]:
    """The model as graphs that can be asked one by one: words, layers and, where it predicts words, softmax and cloze.

    They give a word's context-free vector, (N, P), the layers of sentences whose words have these, bounds among them,
    (L + 1, T, B, 2P), the log probabilities of all words after a direction's top layer, (N, V), and what takes that
    layer's place, (N, P), where both sides of a gap are read at once.
    """
    ids = {name: part.reshape(-1, *part.shape[2:]) for name, part in padded_ids(elmo, [["a", "b"]]).items()}
    x = torch.zeros(4, 2, elmo.width // 2)  # sizes that stand for any
    found = {"words": _exported(WordVectors(elmo.bilm), _inputs(ids), "x", half=half)}
    given = {"x": x, "lengths": torch.tensor([4, 3])}
    found["layers"] = _exported(Layers(elmo.bilm), given, "layers", half=half)
    if elmo.language_model.softmax is not None:
        softmax = LogProbabilities(elmo.language_model.softmax)
        found["softmax"] = _exported(softmax, {"h": x[:, 0]}, "log_probabilities", half=half)
    if elmo.language_model.cloze is not None:
        sides = {"before": x[:, 0], "after": x[:, 1]}
        found["cloze"] = _exported(elmo.language_model.cloze, sides, "h", half=half)
    return found


def describe(elmo: Elmo) -> Beside:
    """What a program needs to know to make the ids of words."""
    config, encoder = elmo.config, elmo.encoder.characters
    characters = words = None
    if encoder is not None and config.characters is not None:
        numbers = {name: getattr(encoder, name) for name in ("max_characters", "bos", "eos", "bow", "eow", "pad")}
        numbers |= {name: getattr(encoder, name, None) for name in ("unknown", "first")}
        numbers |= {"widest": max(width for width, _ in config.characters.filters)}
        alphabet = config.characters
        characters = Characters(alphabet=alphabet.alphabet, characters=alphabet.characters, **numbers)
    if config.words is not None and elmo.vocabulary is not None and elmo.bilm.tokens.words is not None:
        known = elmo.vocabulary.words[: len(elmo.bilm.tokens.words.weight)]
        unknown = known.index(UNK) if UNK in known else None
        words = Words(vocabulary=known, unknown=unknown, longest=config.words.max_characters)
    return Beside(
        layers=elmo.layer_count, width=elmo.width, tokenizer=_name(config), characters=characters, words=words
    )


def padded_ids(elmo: Elmo, sentences: list[list[str]]) -> dict[str, NDArray[np.int64]]:
    """What the graph reads of sentences, by the name of its input."""
    lengths = [len(words) + len((BOS, EOS)) for words in sentences]
    ids = elmo.encoder.encode([word for words in sentences for word in (BOS, *words, EOS)])
    pads = elmo.encoder.characters.pad if elmo.encoder.characters else 0, NO_WORD
    padded = {}
    for name, part, pad in zip(INPUTS, ids, pads, strict=True):
        if part is not None:
            padded[name] = np.full((len(sentences), max(lengths), *part.shape[1:]), pad)
            padded[name][np.arange(max(lengths)) < np.array(lengths)[:, None]] = part
    return padded


def _name(config: ModelConfig) -> str:
    return config.tokenizer if isinstance(config.tokenizer, str) else config.tokenizer.name


def _inputs(ids: dict[str, NDArray[np.int64]]) -> dict[str, Tensor | None]:
    return {name: torch.from_numpy(ids[name]) if name in ids else None for name in INPUTS}


def _exported(module: nn.Module, given: Mapping[str, Tensor | None], output: str, *, half: bool) -> bytes:
    """A module as a graph, by torch's exporter; the inputs given stand for those of any size."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingExtraError("ONNX needs onnx and onnxscript", "onnx") from None
    any_size = torch.export.Dim.AUTO  # but for the width of vectors
    names = [name for name, part in given.items() if part is not None]
    sizes = tuple(None if part is None else dict.fromkeys(range(part.ndim), any_size) for part in given.values())
    options: dict[str, Any] = {"input_names": names, "output_names": [output], "dynamic_shapes": sizes}
    with _quietly():
        program = torch.onnx.export(module.eval(), tuple(given.values()), dynamo=True, verbose=False, **options)
    assert program is not None
    proto: Any = program.model_proto
    if half:
        _halve(proto)
    content: bytes = proto.SerializeToString()
    return content


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's remarks, which are not about the model."""
    logger = logging.getLogger("torch.onnx")
    level, silence = logger.level, io.StringIO()
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(silence):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _halve(proto: Any) -> None:
    """Keep large tensors of 32 bits in 16, each with a Cast that gives its name what it held."""
    from onnx import TensorProto, helper, numpy_helper

    casts = []
    for tensor in proto.graph.initializer:
        numbers = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or numbers.size < LEAST_HALF:
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numbers.astype(np.float16), f"{name}_half"))
        casts.append(helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
