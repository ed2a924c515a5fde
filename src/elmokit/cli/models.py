"""`elmokit info` and `convert`: what a model is, and the same in another format."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from elmokit.cli.options import AllowNonfinite


def info(model: str, /, *, allow_nonfinite: AllowNonfinite = False) -> None:
    """Describe a model: architecture, parameters, vocabulary, format.

    Example: elmokit info MODEL

    Parameters
    ----------
    model
        A model's folder, file or address.
    """
    from elmokit.checkpoints import read_checkpoint
    from elmokit.checkpoints.cards import facts
    from elmokit.hub import local_path

    checkpoint = read_checkpoint(local_path(model), allow_nonfinite=allow_nonfinite)
    known = {"format": checkpoint.source} | facts(checkpoint)
    for name, value in known.items():
        print(f"{name:<{max(map(len, known))}}  {value}")


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
