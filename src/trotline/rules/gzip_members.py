"""A gzip member around bytes that are compressed already: they are in it as they are.

To compress them again gives nothing, and takes twice the time; in one code with them, the text before them would take
twice the space.
"""

import struct
from collections.abc import Iterator

from isal import isal_zlib

_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LARGEST = 0xFFFF
"""Bytes of a block that is not compressed."""
_BLOCK = struct.Struct("<BHH")
_TRAILER = struct.Struct("<II")


def around(start: bytes, packed: bytes, end: bytes) -> bytes:
    """One member with all three; only `start` is compressed. `end` is short."""
    engine = isal_zlib.compressobj(0, isal_zlib.DEFLATED, -15)
    # Up to a whole byte: blocks of plain bytes begin at one.
    first = engine.compress(start) + engine.flush(isal_zlib.Z_SYNC_FLUSH)
    checksum = isal_zlib.crc32(end, isal_zlib.crc32(packed, isal_zlib.crc32(start)))
    size = len(start) + len(packed) + len(end)
    trailer = _TRAILER.pack(checksum, size & 0xFFFFFFFF)
    return b"".join((_HEAD, first, *_blocks(packed), _start_of(end, is_last=True), end, trailer))


def _blocks(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _LARGEST):
        part = data[at : at + _LARGEST]
        yield _start_of(part)
        yield part


def _start_of(part: bytes, *, is_last: bool = False) -> bytes:
    return _BLOCK.pack(is_last, len(part), len(part) ^ _LARGEST)
