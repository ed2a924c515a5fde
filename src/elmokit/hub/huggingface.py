"""Repositories of the Hugging Face Hub: what is fetched is kept in its own cache folder, and models are pushed there.

Whatever has changed is fetched; without a network the last state is taken.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, unquote

from elmokit.checkpoints import write_checkpoint
from elmokit.checkpoints.cards import ADDRESS, CARD
from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.checkpoints.native import FILES
from elmokit.errors import CheckpointError, ConfigError, MissingExtraError, OutputError
from elmokit.hub.web import check_size, checked, one_line

logger = logging.getLogger(__name__)

NAME = r"[\w.-]+/[\w.-]+"
REPOSITORY = re.compile(rf"hf://(?P<name>{NAME})(@(?P<revision>[^/@]+))?(/(?P<inside>.+))?")
LOG_IN = "log in by `hf auth login`, or set HF_TOKEN to a token that may write there (huggingface.co/settings/tokens)"


def from_hub(address: str, sha256: str | None, largest: int) -> Path:
    """The repository, or the folder or file in it, at an address."""
    found = REPOSITORY.fullmatch(address)
    inside = Path(found["inside"] or "") if found else Path()
    if not found or ".." in inside.parts:
        raise ConfigError(f"{address}: not a repository's address: expected hf://owner/name[@revision][/folder]")
    revision = unquote(found["revision"]) if found["revision"] else None
    path = _snapshot(address, found["name"], revision, found["inside"], largest) / inside
    if not path.exists():
        raise CheckpointError(f"{address}: the repository holds no such file or folder")
    if sha256 and path.is_dir():
        raise ConfigError(f"{address}: a checksum is for a file; a folder is pinned by a commit, hf://owner/name@…")
    if sha256:
        with path.open("rb") as file:
            checked(address, file, sha256)
    return path


def _snapshot(address: str, name: str, revision: str | None, inside: str | None, largest: int) -> Path:
    """The repository's folder in the cache, brought up to date if there is a network."""
    hub, errors, utils = _library("hf:// addresses need huggingface_hub")
    wanted = {
        "revision": revision,
        "allow_patterns": [inside, f"{inside.rstrip('/')}/*"] if inside else None,
        "endpoint": os.environ.get("HF_ENDPOINT"),
        "tqdm_class": partial(utils.tqdm, disable=True),
    }
    try:
        offline = not _answers(hub, address, name, wanted, largest)
        return Path(hub.snapshot_download(name, **wanted, local_files_only=offline))
    except errors.RevisionNotFoundError:
        raise CheckpointError(f"{address}: the repository has no revision {revision!r}") from None
    except errors.RepositoryNotFoundError:
        raise CheckpointError(f"{address}: there is no such repository, or it is not open to you") from None
    except errors.LocalEntryNotFoundError:
        raise CheckpointError(f"{address}: cannot be fetched, and nothing of it is kept. Is there a network?") from None
    except (OSError, ValueError, errors.HTTPError) as error:
        raise CheckpointError(f"{address}: cannot be fetched: {one_line(error)}") from None


def _answers(hub: Any, address: str, name: str, wanted: dict[str, Any], largest: int) -> bool:
    """Whether the server is there; what it would send must not be too much."""
    try:
        size = sum(file.file_size or 0 for file in hub.snapshot_download(name, **wanted, dry_run=True))
    except hub.errors.DryRunError:
        return True  # the call that follows says what is wrong, or takes what is kept
    except hub.errors.HfHubHTTPError:
        raise
    except hub.errors.HTTPError:
        return False
    check_size(address, size, largest)
    logger.info("fetching %s, %.1f MB less what is kept already", address, size / 2**20)
    return True


def push(
    checkpoint: Checkpoint,
    name: str,
    *,
    private: bool | None = None,
    half: bool = False,
    revision: str | None = None,
    message: str = "Push a model by elmokit",
    token: str | None = None,
) -> str:
    """Put a model and its card into a repository, which is made if there is none; the address to load it by."""
    name = name.removeprefix("hf://")
    if not re.fullmatch(NAME, name):
        raise ConfigError(f"{name!r}: not a repository's name: expected owner/name")
    hub, errors, utils = _library("pushing a model needs huggingface_hub")
    address = f"hf://{name}" + (f"@{quote(revision, safe='')}" if revision else "")
    with TemporaryDirectory(prefix="elmokit-") as temporary:
        folder = Path(temporary) / "model"
        write_checkpoint(checkpoint, folder, half=half)
        card = (folder / CARD).read_text(encoding="utf-8")
        (folder / CARD).write_text(card.replace(ADDRESS, address), encoding="utf-8")
        api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=token)
        logger.info("pushing %s, %.1f MB", address, sum(file.stat().st_size for file in folder.iterdir()) / 2**20)
        with _pushing(address, errors), _silent(utils):
            api.create_repo(name, private=private, exist_ok=True)
            if revision:
                api.create_branch(name, branch=revision, exist_ok=True)
            settings = {"commit_message": message, "revision": revision}
            # Of what was there before, a list of words that this model lacks must not stay.
            api.upload_folder(repo_id=name, folder_path=folder, delete_patterns=list(FILES), **settings)
    return address


@contextmanager
def _pushing(address: str, errors: Any) -> Iterator[None]:
    """Say of the errors within what keeps a model from being pushed, and what to do."""
    try:
        yield
    except errors.HfHubHTTPError as error:
        refused = error.response.status_code in (401, 403)
        reason = f"not allowed: {LOG_IN}" if refused else f"the server answered {one_line(error)}"
        raise OutputError(f"{address}: not pushed: {reason}") from None
    except errors.LocalTokenNotFoundError:
        raise OutputError(f"{address}: not pushed: {LOG_IN}") from None
    except errors.HTTPError as error:
        raise OutputError(f"{address}: not pushed: {one_line(error)}. Is there a network?") from None
    except (OSError, ValueError, RuntimeError) as error:
        why = f" {one_line(error.__cause__)}" if error.__cause__ else ""
        raise OutputError(f"{address}: not pushed: {one_line(error)}{why}") from None


@contextmanager
def _silent(utils: Any) -> Iterator[None]:
    """Without the library's bars."""
    if utils.are_progress_bars_disabled():
        yield
        return
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.enable_progress_bars()


def _library(needed: str) -> tuple[Any, Any, Any]:
    """huggingface_hub, its errors and its utilities."""
    try:
        names = ("huggingface_hub", "huggingface_hub.errors", "huggingface_hub.utils")
        hub, errors, utils = map(import_module, names)
    except ImportError:
        raise MissingExtraError(needed, "hub") from None
    return hub, errors, utils
