"""Packed files: .gz, .xz and .zst, unpacked as they are read."""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)  # what reading a packed file may raise


class _Zstd(io.RawIOBase):
    """One frame after another; zstandard's own reader takes a file that was broken off for a whole one."""

    def __init__(self, raw: BinaryIO) -> None:
        self.raw, self.waiting = raw, b""
        self.frame: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self.waiting:
            packed = (self.frame.unused_data if self.frame and self.frame.eof else b"") or self.raw.read(1 << 16)
            if not packed:
                if self.frame and not self.frame.eof:
                    raise EOFError("it ends before the end of its last frame")
                return 0
            if self.frame is None or self.frame.eof:
                self.frame = zstandard.ZstdDecompressor().decompressobj()
            self.waiting = self.frame.decompress(packed)
        count = min(len(buffer), len(self.waiting))
        buffer[:count], self.waiting = self.waiting[:count], self.waiting[count:]
        return count


UNPACKERS: dict[str, Callable[[BinaryIO], Any]] = {
    "": lambda raw: raw,
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".xz": lzma.LZMAFile,
    ".zst": lambda raw: io.BufferedReader(_Zstd(raw)),
}


def ending(path: Path) -> tuple[str, str]:
    """How a file is read and how it is unpacked: (".txt", ".gz")."""
    last = path.suffix.lower()
    return (path.with_suffix("").suffix.lower(), last) if last in UNPACKERS else (last, "")
