"""`elmokit convert`: a model from one format to another."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def convert(
    source: Annotated[str, Parameter(name="SRC")],
    target: Annotated[Path, Parameter(name="DST")],
    /,
    *,
    to: Literal["native", "allenai"] = "native",
    half: Annotated[bool, Parameter(negative="")] = False,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write a model in another format.

    Example: elmokit convert weights.hdf5 my-elmo --half

    Parameters
    ----------
    source
        A model's folder, file or address, in any supported format.
    target
        The folder to make.
    to
        native (config.json, model.safetensors) or allenai (options.json, weights.hdf5).
    half
        Store 16-bit numbers: half the size, nearly the same vectors; native alone.
    overwrite
        Replace a model that is there already.
    """
    from elmokit.checkpoints import read_checkpoint, write_checkpoint
    from elmokit.hub import local_path

    write_checkpoint(read_checkpoint(local_path(source)), target, to=to, half=half, overwrite=overwrite)
    print(f"{target}: written in {to} format")
