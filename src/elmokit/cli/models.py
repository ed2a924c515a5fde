"""`elmokit info` and `convert`: what a model is, and the same in another format."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from elmokit.cli.options import AllowNonfinite

if TYPE_CHECKING:
    from elmokit.config import CharacterConfig, WordConfig


def info(model: str, /, *, allow_nonfinite: AllowNonfinite = False) -> None:
    """Describe a model: architecture, parameters, vocabulary, format.

    Example: elmokit info MODEL

    Parameters
    ----------
    model
        A model's folder, file or address.
    """
    from elmokit.checkpoints import read_checkpoint
    from elmokit.hub import local_path
    from elmokit.text.tokenizers import get_tokenizer

    checkpoint = read_checkpoint(local_path(model), allow_nonfinite=allow_nonfinite)
    config, vocabulary = checkpoint.config, checkpoint.vocabulary
    projection = f" → {config.projection}" if config.projected else ""
    facts = {
        "format": checkpoint.source,
        "parameters": f"{sum(weight.numel() for weight in checkpoint.weights.values()):,}",
        "vectors": f"{config.layers + 1} layers of width {config.width}",
        "recurrent": f"{config.layers} × {config.cell.upper()} {config.hidden}{projection}, each direction",
        "residual": "yes" if config.residual else "no",
        "clips": f"cell {config.cell_clip or 'none'}, projection {config.projection_clip or 'none'}",
        "characters": _characters(config.characters) if config.characters else "not read",
        "words": _words(config.words) if config.words else "not read",
        "vocabulary": "none" if vocabulary is None else f"{len(vocabulary):,} words",
        "tokenizer": str(get_tokenizer(config.tokenizer)),
    }
    facts |= checkpoint.about
    for name, value in facts.items():
        print(f"{name:<{max(map(len, facts))}}  {value}")


def _words(config: "WordConfig") -> str:
    some = "" if config.rows == config.size else f" for the {config.rows:,} most frequent"
    return f"vectors of width {config.dim}{some}"


def _characters(config: "CharacterConfig") -> str:
    alphabet = "UTF-8 bytes" if config.alphabet == "bytes" else f"{len(config.characters):,} Unicode characters"
    filters = " ".join(f"{width}×{count}" for width, count in config.filters)
    read = f"{alphabet}, up to {config.max_characters} a word, width {config.dim}"
    return f"{read}; filters {filters} ({config.activation}); highways {config.highways}"


def convert(
    source: Annotated[str, Parameter(name="SRC")],
    target: Annotated[Path, Parameter(name="DST")],
    /,
    *,
    to: Literal["native", "allenai"] = "native",
    half: Annotated[bool, Parameter(negative="")] = False,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    allow_nonfinite: AllowNonfinite = False,
) -> None:
    """Write a model in another format.

    Example: elmokit convert weights.hdf5 my-elmo --half

    Example: elmokit convert en en.onnx

    Parameters
    ----------
    source
        A model's folder, file or address, in any supported format.
    target
        The folder to make; or a file that ends in .onnx, which gets a .json beside it.
    to
        native (config.json, model.safetensors) or allenai (options.json, weights.hdf5).
    half
        Store 16-bit numbers: half the size, nearly the same vectors; native and .onnx alone.
    overwrite
        Replace a model that is there already.
    """
    from elmokit.checkpoints import read_checkpoint, write_checkpoint
    from elmokit.hub import local_path

    if target.suffix == ".onnx":
        from elmokit.elmo import load
        from elmokit.onnx_export import write_onnx

        elmo = load(source, allow_nonfinite=allow_nonfinite)
        write_onnx(elmo, target, half=half, overwrite=overwrite)
        print(f"{target}: written, with {target.with_suffix('.json').name} beside it")
        return
    checkpoint = read_checkpoint(local_path(source), allow_nonfinite=allow_nonfinite)
    write_checkpoint(checkpoint, target, to=to, half=half, overwrite=overwrite)
    print(f"{target}: written in {to} format")
