"""`elmokit models`, `info`, `convert` and `push`: which there are, what one is, the same elsewhere."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from msgspec import to_builtins

from elmokit.cli.options import AllowNonfinite, Json
from elmokit.cli.output import print_columns, print_json
from elmokit.translation import translate


def models(language: Annotated[str | None, Parameter(name="LANGUAGE")] = None, /, *, json: Json = False) -> None:
    """List models that can be loaded by name: the bundled ones and those that others have published.

    Example: elmokit models zh

    Parameters
    ----------
    language
        A language's code, such as zh; models for all of them unless given.
    """
    from elmokit.published import known_models

    found = known_models(language)
    if json:
        print_json([to_builtins(model) for model in found])
        return
    rows = [tuple(map(translate, ("name", "language", "size", "licence", "tried", "purpose")))]
    for model in found:
        tried = translate("yes" if model.tried else "no")
        rows.append((model.name, model.language, model.size, model.licence, tried, model.purpose))
    print_columns(rows)


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
    print_columns([(translate(name), translate(value)) for name, value in known.items()])


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
        print(translate(f"{target}: written, with {target.with_suffix('.json').name} beside it"))
        return
    checkpoint = read_checkpoint(local_path(source), allow_nonfinite=allow_nonfinite)
    write_checkpoint(checkpoint, target, to=to, half=half, overwrite=overwrite)
    print(translate(f"{target}: written in {to} format"))


def push(
    model: Annotated[str, Parameter(name="MODEL")],
    repository: Annotated[str, Parameter(name="OWNER/NAME")],
    /,
    *,
    private: Annotated[bool | None, Parameter(negative="--public")] = None,
    half: Annotated[bool, Parameter(negative="")] = False,
    revision: str | None = None,
    message: str = "Push a model by elmokit",
) -> None:
    """Put a model and its card on the Hugging Face Hub, to be loaded as hf://owner/name.

    Example: elmokit push my-model owner/my-model --private --half

    Parameters
    ----------
    model
        A model's name, folder, file or address, in any supported format.
    repository
        The repository, which is made if there is none. Log in by `hf auth login`, or set HF_TOKEN.
    private
        Whether a new repository is for you alone; your account's own setting unless given.
    half
        Store 16-bit numbers: half the size, nearly the same vectors.
    revision
        The branch, which is made if there is none; the main one unless given.
    message
        What the commit says.
    """
    from elmokit.checkpoints import read_checkpoint
    from elmokit.hub import local_path
    from elmokit.hub.huggingface import push as push_checkpoint

    settings: dict[str, Any] = {"private": private, "half": half, "revision": revision, "message": message}
    address = push_checkpoint(read_checkpoint(local_path(model)), repository, **settings)
    print(translate(f"{address}: pushed"))
