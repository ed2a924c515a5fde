"""Models by name, `en` or `allenai/small`, or by address, `hf://owner/name[@revision][/folder]` and `https://…`.

Names are those of the bundled models and of the published ones in published.toml; a file or folder of the same name
goes first. What is fetched is kept: files of the web in elmokit's cache folder, repositories of the Hugging Face Hub in
its own. Downloads are reported to the logger `elmokit.hub`.
"""

import re
from pathlib import Path
from urllib.parse import urlsplit

from elmokit.bundled import bundled_path
from elmokit.errors import ConfigError
from elmokit.hub.huggingface import from_hub
from elmokit.hub.web import from_web
from elmokit.published import published_models

LARGEST = 16 * 2**30  # bytes; more than any model has
COMPANIONS = {"weights.hdf5": "options.json", "model.safetensors": "config.json"}


def local_path(source: str | Path) -> Path:
    """Where a model is on this disk: an address is fetched, and with a file of weights the file that describes it."""
    path = fetch(source)
    if not path.exists() and (bundled := bundled_path(str(source))):
        return bundled
    if not path.exists() and (published := published_models().get(str(source))):
        path, *_ = [fetch(file) for file in published.files]
    if is_address(source):
        url, _, _ = str(source).partition("#")
        for ending, companion in COMPANIONS.items():
            if url.endswith(ending):
                fetch(url.removesuffix(ending) + companion)
    return path


def is_address(source: str | Path) -> bool:
    """Whether this is an address rather than a path."""
    return str(source).startswith(("hf://", "https://", "http://"))


def fetch(source: str | Path, *, largest: int = LARGEST) -> Path:
    """The folder or file at an address, from the cache if it is there; a path is handed back as it is."""
    if not is_address(source):
        return Path(source).expanduser()
    try:
        urlsplit(str(source).encode())
    except ValueError as error:
        raise ConfigError(f"{str(source)!r}: not an address: {error}") from None
    address, mark, fragment = str(source).partition("#")
    checksum = re.fullmatch("sha256=([0-9a-f]{64})", fragment.lower())
    if mark and not checksum:
        raise ConfigError(f"{address}: '#{fragment}' is not a checksum: expected #sha256= and 64 hexadecimal digits")
    get = from_hub if address.startswith("hf:") else from_web
    return get(address, checksum[1] if checksum else None, largest)
