"""Repositories of the Hugging Face Hub, kept in its own cache folder.

Whatever has changed is fetched; without a network the last state is taken.
"""

import logging
import os
import re
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from elmokit.errors import CheckpointError, ConfigError, MissingExtraError
from elmokit.hub.web import check_size, checked, one_line

logger = logging.getLogger(__name__)

REPOSITORY = re.compile(r"hf://(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>[^/@]+))?(/(?P<inside>.+))?")


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


def _library(needed: str) -> tuple[Any, Any, Any]:
    """huggingface_hub, its errors and its utilities."""
    try:
        names = ("huggingface_hub", "huggingface_hub.errors", "huggingface_hub.utils")
        hub, errors, utils = map(import_module, names)
    except ImportError:
        raise MissingExtraError(needed, "hub") from None
    return hub, errors, utils
