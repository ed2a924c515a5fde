"""DISK ↔ (config, weights, vocabulary): one file a format, none knows another."""

from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError

from elmokit.bundled import bundled_names
from elmokit.checkpoints import allenai, allennlp, bilm_tf, manylangs, native
from elmokit.checkpoints.archives import is_archive, unpacked
from elmokit.checkpoints.checkpoint import Checkpoint, Format, WritableFormat, check_finite
from elmokit.errors import CheckpointError, ConfigError, ElmoError
from elmokit.files import parsing, replacing_folder, writing

FORMATS: tuple[Format, ...] = (native, manylangs, allennlp, bilm_tf, allenai)
LOOK = "--allow-nonfinite (allow_nonfinite=True) reads it still"
WRITABLE: tuple[WritableFormat, ...] = (native, allenai)


def read_checkpoint(path: Path, *, options: Path | None = None, allow_nonfinite: bool = False) -> Checkpoint:
    """The model in a folder, file or archive, whatever its format; weights that are not numbers only if allowed.

    The options of AllenAI's weights may be in a file elsewhere.
    """
    if options is not None:
        return _checked(allenai.read_files(options, path), allow_nonfinite=allow_nonfinite)
    if is_archive(path):
        return _read_archive(path, allow_nonfinite=allow_nonfinite)
    if not path.exists() and not bilm_tf.recognises(path):
        names = ", ".join(bundled_names())
        known = f"comes with elmokit ({names}) or is in the list of `elmokit models`"
        raise CheckpointError(f"{path}: no such file or folder, and no model of that name {known}")
    for candidate in FORMATS:
        if candidate.recognises(path):
            with parsing(path, candidate.LAYOUT):
                checkpoint = candidate.read(path)
            return _checked(checkpoint, allow_nonfinite=allow_nonfinite)
    known = "; ".join(candidate.LAYOUT for candidate in FORMATS)
    raise CheckpointError(f"{path}: no model was recognised here. What can be read, packed or not: {known}")


def write_checkpoint(
    checkpoint: Checkpoint, folder: Path, *, to: str = native.NAME, half: bool = False, overwrite: bool = False
) -> None:
    """Write the model as a folder in the named format, `native` or `allenai`; all of it or nothing."""
    formats = {candidate.NAME: candidate for candidate in WRITABLE}
    if to not in formats:
        raise ConfigError(f"unknown format {to!r}: known are {', '.join(formats)}")
    formats[to].check_writable(checkpoint, half=half)
    files = {file for candidate in WRITABLE for file in candidate.FILES}
    with (
        replacing_folder(folder, files=files, overwrite=overwrite) as partial,
        writing(folder, (OSError, SafetensorError)),
    ):
        formats[to].write(checkpoint, partial, half=half)


def _checked(checkpoint: Checkpoint, *, allow_nonfinite: bool) -> Checkpoint:
    if not allow_nonfinite:
        prior = {} if checkpoint.prior is None else {native.PRIOR: checkpoint.prior}
        check_finite(checkpoint.source, checkpoint.weights | prior, remedy=LOOK)
    return checkpoint


def _read_archive(path: Path, *, allow_nonfinite: bool) -> Checkpoint:
    """The only model in an archive, in a folder of any depth."""
    with unpacked(path) as folder:
        inside = [folder, *sorted(part for part in folder.rglob("*") if part.is_dir())]
        found = [part for part in inside if any(candidate.recognises(part) for candidate in FORMATS)]
        if len(found) != 1:
            names = ", ".join(str(part.relative_to(folder)) for part in found)
            which = f"more than one model is in it ({names}): unpack it and name one" if found else "no model is in it"
            raise CheckpointError(f"{path}: {which}")
        try:
            checkpoint = read_checkpoint(found[0], allow_nonfinite=allow_nonfinite)
        except ElmoError as error:
            raise type(error)(str(error).replace(str(folder), str(path))) from None
        return replace(checkpoint, source=checkpoint.source.replace(str(folder), str(path)))
