"""A process that parses shares of an archive. Its parent gives it one after the other on standard input, and reads what
it found from a file."""

import asyncio
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import msgspec

from trotline.config import backends
from trotline.config.spider_loader import load
from trotline.errors import TrotlineError
from trotline.model.archive import ArchiveDamage, ArchiveEntry, ArchiveQuery
from trotline.model.record import Record
from trotline.model.time import Moment
from trotline.processes import process_memory
from trotline.rules import redaction, row_differences
from trotline.spider.handler_failed import HandlerFailed
from trotline.worker.reparse import NotRead, Reparse
from trotline.worker.reparse_files import ReparseFiles

_LENGTH = struct.Struct("<I")
_PAGE = struct.Struct("<Qd")
EXAMPLES = 3
"""URLs that are named for each reason."""


class ReparseShare(msgspec.Struct, frozen=True, kw_only=True):
    """One line of JSON on standard input."""

    ref: str
    archive: str
    query: ArchiveQuery
    part: int = 0
    parts: int = 1
    units: tuple[str, ...]
    """Of the archive."""
    memory: int
    out: str
    """The file for its records."""
    dry_run: bool


class ReparseCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a process did, as one line of JSON on standard output."""

    pages: int = 0
    read: int = 0
    records: int = 0
    rejects: int = 0
    rejected: dict[str, int] = {}
    """Why records are not valid; `examples` has pages of each reason, as for `failed`."""
    not_read: dict[str, int] = {}
    failed: dict[str, int] = {}
    damaged: dict[str, int] = {}
    """Captures, or the rest of a file, that cannot be read."""
    examples: dict[str, list[str]] = {}
    trouble: str = ""
    """Why it could not go on."""


class _Tally:
    def __init__(self) -> None:
        self.pages = self.read = self.records = self.rejects = 0
        self.not_read, self.failed, self.rejected = Counter[str](), Counter[str](), Counter[str]()
        self.damaged = Counter[str]()
        self.unread = array("Q")
        """Pages that failed or are damaged, as hashes of their URLs."""
        self.pages_read = bytearray()
        """The others, with their times: `_PAGE`."""
        self.examples: dict[str, list[str]] = {}

    def add(self, page: ArchiveEntry, records: int) -> None:
        self.read += 1
        self.records += records
        self.pages_read += _PAGE.pack(row_differences.hash_of_url(page.url), page.at)

    def fail(self, why: str, url: str) -> None:
        self.failed[why] += 1
        self._name(why, url)

    def damage(self, one: ArchiveDamage) -> None:
        self.damaged[one.reason] += 1
        if one.url:
            self._name(one.reason, one.url)

    def reject(self, why: str, url: str) -> None:
        self.rejects += 1
        self.rejected[why] += 1
        self._name(why, url)

    def _name(self, why: str, url: str) -> None:
        self.unread.append(row_differences.hash_of_url(url))
        named = self.examples.setdefault(why, [])
        if len(named) < EXAMPLES:
            named.append(redaction.url(url))

    def counts(self, trouble: str = "") -> ReparseCounts:
        return ReparseCounts(
            pages=self.pages,
            read=self.read,
            records=self.records,
            rejects=self.rejects,
            rejected=dict(self.rejected),
            not_read=dict(self.not_read),
            failed=dict(self.failed),
            damaged=dict(self.damaged),
            examples=self.examples,
            trouble=redaction.text(trouble),
        )


def main() -> int:
    process_memory.tune()
    for line in sys.stdin.buffer:
        share = msgspec.json.decode(line, type=ReparseShare)
        process_memory.cap(share.memory)
        tally, trouble = _Tally(), ""
        try:
            with Path(share.out).open("wb") as out:
                asyncio.run(_parse(share, tally, out))
            unread_of(Path(share.out)).write_bytes(tally.unread.tobytes())
            _pages_of(Path(share.out)).write_bytes(tally.pages_read)
        except TrotlineError as error:
            trouble = f"{error.what}. {error.hint}"
        sys.stdout.buffer.write(msgspec.json.encode(tally.counts(trouble)) + b"\n")
        sys.stdout.buffer.flush()
    return 0


async def _parse(share: ReparseShare, tally: _Tally, out: BinaryIO) -> None:
    reparse = _reparse(share.ref, any_spider=bool(share.query.job))
    archive, files = backends.open_archive(share.archive, f"reparse-{share.part}"), _files(share.archive)
    with reparse.interruptible():
        async for page in archive.pages(share.query, share.part, share.parts, share.units, tally.damage):
            tally.pages += 1
            try:
                got, kept = await reparse.read(page)
            except NotRead as error:
                tally.not_read[str(error)] += 1
            except HandlerFailed as failed:
                tally.fail(failed.group, page.entry.url)
            except MemoryError:
                # Outside the handler, whose own is a HandlerFailed.
                tally.fail("the page needs more memory than this process may use", page.entry.url)
            except TimeoutError:
                tally.fail("an async handler took too long", page.entry.url)
            else:
                tally.add(page.entry, len(got.records))
                for one in got.rejects:
                    tally.reject(f"{one.kind}: {one.why}", page.entry.url)
                write(out, got.records)
                if not share.dry_run:
                    await files.write(archive, page, kept)
    await archive.close()


@lru_cache(maxsize=1)
def _reparse(ref: str, *, any_spider: bool) -> Reparse:
    return Reparse(load(ref), any_spider=any_spider)


@lru_cache(maxsize=1)
def _files(archive: str) -> ReparseFiles:
    return ReparseFiles()


def unread_of(out: Path) -> Path:
    """The file beside that of the records: pages that gave none, as numbers of 8 bytes."""
    return out.with_suffix(".unread")


def _pages_of(out: Path) -> Path:
    return out.with_suffix(".pages")


def pages_read(out: Path) -> Iterator[tuple[int, Moment]]:
    """The pages that were read for this file of records: hash of the URL, and time."""
    yield from _PAGE.iter_unpack(_pages_of(out).read_bytes())


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def write(out: BinaryIO, records: list[Record]) -> None:
    for record in records:
        data = _encode(record)
        out.write(_LENGTH.pack(len(data)))
        out.write(data)


def read(file: BinaryIO) -> Iterator[tuple[int, Record]]:
    """Each record with its place in the file."""
    while True:
        at = file.tell()
        head = file.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return
        data = file.read(_LENGTH.unpack(head)[0])
        yield at, _decode(data)


def read_at(file: BinaryIO, at: int) -> Record:
    file.seek(at)
    return next(read(file))[1]


if __name__ == "__main__":
    sys.exit(main())
