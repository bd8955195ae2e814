"""Reads objects of an archive piece by piece. Others may have put anything there, of any size: what is no record or no
line is noticed in the first piece of it."""

from collections.abc import AsyncIterator
from typing import NamedTuple

from trotline.errors import ArchiveDamaged
from trotline.model.archive import LARGEST_RECORD
from trotline.model.limits import MIB
from trotline.ports.object_store import ObjectStore
from trotline.rules import warc_reader
from trotline.rules.warc_reader import Bad, Record

PIECE = 16 * MIB
"""Bytes that are read at once. No line of an index is longer."""


class Stored(NamedTuple):
    """A record in its object."""

    offset: int
    packed: bytes
    record: Record

    @property
    def end(self) -> int:
        return self.offset + len(self.packed)


async def records(store: ObjectStore, name: str) -> AsyncIterator[Stored]:
    """`Bad` where it is not a record; `KeyError` if the object is gone, also when a part of it was read."""
    data, start, at, is_whole = b"", 0, 0, False
    while not is_whole:
        rest, start, at = data[at:], start + at, 0
        # A record that is larger than what was read is unpacked again with twice as much.
        wanted = max(PIECE, len(rest))
        more = await get(store, name, start + len(rest), wanted)
        data, is_whole = rest + more, len(more) < wanted
        try:
            for offset, length, record in warc_reader.records(data):
                at = offset + length
                yield Stored(start + offset, data[offset:at], record)
        except warc_reader.Cut:
            if is_whole:
                raise
            if len(data) - at > LARGEST_RECORD:
                raise Bad(f"a record of more than {LARGEST_RECORD} bytes") from None


async def lines(store: ObjectStore, name: str, at: int = 0, wanted: int = PIECE) -> AsyncIterator[bytes]:
    """Whole lines, many at once; `wanted`: bytes that are read first. `Bad` if one is too long to be one."""
    rest, is_whole = b"", False
    while not is_whole:
        more = await get(store, name, at, wanted)
        is_whole, at, wanted = len(more) < wanted, at + len(more), min(2 * wanted, PIECE)
        found, mark, rest = (rest + more).rpartition(b"\n")
        if mark:
            yield found
        if len(rest) >= PIECE:
            raise Bad(f"a line of more than {PIECE} bytes")
    if rest:
        yield rest


async def get(store: ObjectStore, name: str, start: int, length: int) -> bytes:
    """`Bad` if this object alone cannot be read."""
    try:
        return await store.get(name, start, length)
    except ArchiveDamaged as error:
        raise Bad(error.what) from error
