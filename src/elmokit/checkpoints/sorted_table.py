"""Sorted tables as LevelDB and TensorFlow write them: blocks of keys and values, a block that lists them, a footer."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

FOOTER = 48
MAGIC = 0xDB4775248B80FB57
TRAILER = struct.Struct("<BI")  # how a block is compressed, and its checksum
PLAIN, SNAPPY = 0, 1
LARGEST_BLOCK = 1 << 26  # bytes; a table of some thousand names has far less


class _Handle(NamedTuple):
    offset: int
    size: int


def read_table(content: bytes) -> dict[bytes, bytes]:
    """Everything in a table; a ValueError says what is wrong with it."""
    if len(content) < FOOTER or int.from_bytes(content[-8:], "little") != MAGIC:
        raise ValueError("it does not end as a sorted table does")
    listing = _handle(content[-FOOTER:], _handle(content[-FOOTER:], 0)[1])[0]
    blocks = [_handle(value, 0)[0] for value in _entries(_block(content, listing)).values()]
    return {key: value for block in blocks for key, value in _entries(_block(content, block)).items()}


def read_varint(content: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and the place after it."""
    number = 0
    for shift in range(0, 64, 7):
        byte = content[place : place + 1]
        if not byte:
            raise ValueError("it ends within a number")
        number |= (byte[0] & 0x7F) << shift
        place += 1
        if byte[0] < 0x80:
            return number, place
    raise ValueError("a number in it does not end")


def _handle(content: bytes, place: int) -> tuple[_Handle, int]:
    offset, place = read_varint(content, place)
    size, place = read_varint(content, place)
    return _Handle(offset, size), place


def _block(content: bytes, handle: _Handle) -> bytes:
    end = handle.offset + handle.size
    if end + TRAILER.size > len(content):
        raise ValueError("a block lies beyond its end")
    compression, checksum = TRAILER.unpack_from(content, end)
    if checksum != masked_crc32c(content[handle.offset : end + 1]):
        raise ValueError("the checksum of a block is wrong")
    if compression not in (PLAIN, SNAPPY):
        raise ValueError(f"a block is compressed in a way not known ({compression})")
    block = content[handle.offset : end]
    return unpack_snappy(block) if compression == SNAPPY else block


def _entries(block: bytes) -> dict[bytes, bytes]:
    """The keys and values of a block; a key is stored as what differs from the one before it."""
    if len(block) < 4:
        raise ValueError("a block is too short")
    end = len(block) - 4 * (1 + int.from_bytes(block[-4:], "little"))  # the places where whole keys stand
    entries, key, place = {}, b"", 0
    while place < end:
        shared, place = read_varint(block, place)
        added, place = read_varint(block, place)
        size, place = read_varint(block, place)
        key = key[:shared] + block[place : place + added]
        place += added
        entries[key] = block[place : place + size]
        place += size
    if place != end:
        raise ValueError("a block does not end where it should")
    return entries


def unpack_snappy(packed: bytes) -> bytes:
    """What was compressed by Snappy: literals, and copies of what came before."""
    size, place = read_varint(packed, 0)
    if size > LARGEST_BLOCK:
        raise ValueError("a block claims to unpack to more than a table has")
    out = bytearray()
    while place < len(packed) and len(out) <= size:
        length, offset, place = _snappy_element(packed, place)
        if not offset:
            out += packed[place : place + length]
            place += length
        elif offset > len(out):
            raise ValueError("a compressed block copies from before its start")
        else:
            piece = bytes(out[-offset:][:length])
            out += (piece * (length // len(piece) + 1))[:length]
    if len(out) != size:
        raise ValueError("a compressed block unpacks to another size than it says")
    return bytes(out)


def _snappy_element(packed: bytes, place: int) -> tuple[int, int, int]:
    """The length of the next piece, how far back it stands (0 for a literal), and the place after its head."""
    tag, place = packed[place], place + 1
    kind, upper = tag & 3, tag >> 2
    if kind == 0:
        extra = max(0, upper - 59)
        length = int.from_bytes(packed[place : place + extra], "little") if extra else upper
        return length + 1, 0, place + extra
    extra = (0, 1, 2, 4)[kind]
    offset = int.from_bytes(packed[place : place + extra], "little")
    if kind == 1:
        return (upper & 7) + 4, (upper >> 3) << 8 | offset, place + extra
    return upper + 1, offset, place + extra


def _crc32c_table() -> Iterator[int]:
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        yield crc


_CRC32C = tuple(_crc32c_table())


def masked_crc32c(content: bytes) -> int:
    """The Castagnoli checksum, rotated and shifted as tables store it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
