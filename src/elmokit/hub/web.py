"""Files of the web, each fetched once and kept in elmokit's cache folder.

One is fetched again only if it was deleted there, or if its address carries another checksum, `#sha256=…`.
"""

import hashlib
import logging
import re
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

import msgspec

from elmokit.errors import CheckpointError, ConfigError
from elmokit.files import LONGEST_REASON, cache_folder, replace_file, replacing, writing

Block = tuple[int, bytes, int | None]
"""A part of a file as it arrives: where it begins, its content, the size of the whole if the server told it."""
logger = logging.getLogger(__name__)

ATTEMPTS = 5  # how often a connection may break
SECONDS_OF_SILENCE = 60.0
SLOWEST = 8192  # bytes a second; a server that sends less, after a while of grace, wants to keep us waiting
SECONDS_OF_GRACE = 60.0
SECONDS_BETWEEN_REPORTS = 5.0
BLOCK = 1 << 20
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
NAME = re.compile(r"\w[\w.+@=() -]*")  # a file name on any system, and not a hidden one


class Record(msgspec.Struct):
    """What is known of a file that was fetched."""

    address: str
    sha256: str
    size: int


def from_web(url: str, sha256: str | None, largest: int) -> Path:
    """The file at an address, from the cache if it is there."""
    _check_transport(url, plain=sha256 is not None or _is_here(url))
    path = _place(url)
    record = path.with_name(f".{path.name}.json")
    if not _is_kept(path, record, sha256):
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial, writing(path), partial.open("w+b") as file:
            blocks = _blocks(build_opener(_Redirects(vouched=sha256 is not None)), url)
            for start, content, _ in _watched(url, blocks, largest):
                file.seek(start)
                file.truncate()
                file.write(content)
            found = checked(url, file, sha256)
            record.unlink(missing_ok=True)
        replace_file(record, msgspec.json.encode(Record(url, found, path.stat().st_size)))
    return path


def _is_here(url: str) -> bool:
    return urlsplit(url).hostname in THIS_MACHINE


def _check_transport(url: str, *, plain: bool) -> None:
    """What arrives unencrypted may come from anybody: a checksum must vouch for it."""
    if urlsplit(url).scheme != "https" and not (plain and urlsplit(url).scheme == "http"):
        raise ConfigError(f"{url}: not fetched, for anybody may change it on its way: use https, or add #sha256=…")


def _place(url: str) -> Path:
    """The file's place in the cache, beside other files of the same folder."""
    parts = urlsplit(url)
    folder, _, quoted = parts.path.rpartition("/")
    name, host = unquote(quoted), parts.hostname
    if not host or "@" in parts.netloc or not NAME.fullmatch(name):
        raise ConfigError(f"{url}: not the address of a file: expected https://host/folder/file")
    digest = hashlib.sha256(f"{parts.scheme}://{parts.netloc}{folder}?{parts.query}".encode()).hexdigest()
    return cache_folder() / "web" / f"{host.replace(':', '_')}-{digest[:16]}" / name


def _is_kept(path: Path, record: Path, sha256: str | None) -> bool:
    try:
        known, size = msgspec.json.decode(record.read_bytes(), type=Record), path.stat().st_size
    except (OSError, msgspec.MsgspecError):
        return False
    if known.size != size or sha256 not in (None, known.sha256):
        return False
    if sha256 is None:
        return True
    with path.open("rb") as file:  # whoever asks for a checksum wants it to be that of the file as it is now
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


class _Redirects(HTTPRedirectHandler):
    """Follows a server's directions to an unencrypted address only if a checksum vouches for what is there.

    This machine may direct to itself; to other hosts, and others to it, needs a checksum too.
    """

    def __init__(self, *, vouched: bool) -> None:
        self.vouched = vouched

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        try:
            _check_transport(newurl, plain=self.vouched or (_is_here(req.full_url) and _is_here(newurl)))
        except CheckpointError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _blocks(opener: OpenerDirector, url: str) -> Iterator[Block]:
    """The file piece by piece; a connection that breaks is taken up where it broke, if the server can."""
    done, version = 0, None
    for _ in range(ATTEMPTS):
        headers: dict[str, str] = {"Range": f"bytes={done}-", "If-Range": version} if done and version else {}
        try:
            with opener.open(Request(url, headers=headers), timeout=SECONDS_OF_SILENCE) as response:
                if not str(response.headers["Content-Range"]).startswith(f"bytes {done}-"):
                    done = 0
                length, tag = response.headers["Content-Length"], response.headers["ETag"]
                # What tells that the rest belongs to the same file as the beginning.
                version = tag if tag and not tag.startswith("W/") else response.headers["Last-Modified"]
                total = done + int(length) if length else None
                while content := response.read1(BLOCK):  # what has arrived, be it a single byte
                    yield done, content, total
                    done += len(content)
            if total is None or done == total:
                return
        except HTTPError as error:
            error.close()
            raise CheckpointError(f"{url}: the server answered {error.code} {one_line(error.reason)}") from None
        except (OSError, HTTPException, ValueError) as error:
            if not done:
                reason = one_line(getattr(error, "reason", None) or error)
                raise CheckpointError(f"{url}: cannot be fetched: {reason}. Is there a network?") from None
    raise CheckpointError(f"{url}: the connection broke {ATTEMPTS} times, the last time at byte {done:,}")


def one_line(reason: object) -> str:
    """What a library says, in one line that is not too long."""
    return " ".join(str(reason).split())[:LONGEST_REASON]


def check_size(address: str, size: int, largest: int) -> None:
    """Refuse to fetch more than allowed."""
    if size > largest:
        raise CheckpointError(f"{address}: {size:,} bytes or more, and no more than {largest:,} are fetched")


def _watched(url: str, blocks: Iterator[Block], largest: int) -> Iterator[Block]:
    """The same blocks, reported as they come; no more than allowed."""
    begin = last = time.monotonic()
    logger.info("fetching %s", url)
    for start, content, total in blocks:
        end = start + len(content)
        check_size(url, max(total or 0, end), largest)
        yield start, content, total
        now, done = time.monotonic(), end / 2**20
        if now - begin > SECONDS_OF_GRACE + end / SLOWEST:
            raise CheckpointError(f"{url}: given up: {end:,} bytes in {now - begin:.0f} seconds would never end")
        if now - last >= SECONDS_BETWEEN_REPORTS or end == total:
            last, whole = now, f" of {total / 2**20:,.1f}" if total else ""
            logger.info("%.1f%s MB, %.1f MB/s", done, whole, done / max(now - begin, 1e-6))


def checked(url: str, file: IO[bytes], sha256: str | None) -> str:
    """The checksum of all that was received, if it is the one expected."""
    file.flush()
    file.seek(0)
    found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    if sha256 not in (None, found):
        raise CheckpointError(f"{url}: its sha256 is {found}, not the expected {sha256}. Has it been replaced?")
    return found
