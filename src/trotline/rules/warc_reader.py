"""WARC records, read: what `rules.warc_writer` wrote, or something else, which is `Bad`."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from isal import isal_zlib

from trotline.model.answer import Answer
from trotline.model.archive import LARGEST_RECORD, LONGEST_TYPE, ArchivedPage, ArchiveEntry, CaptureKind
from trotline.model.time import Moment
from trotline.rules.archived_codings import is_gzip
from trotline.rules.warc_writer import END, ORIGINAL, First, digest_of

_STEP = 16 * 1024
_GZIP = b"\x1f\x8b"
_MEMBERS = 64
"""Of gzip in one body, as when it was fetched."""
_NO_MEMORY = "to unpack it takes more memory than this process may use"
_STATUS = re.compile(rb"[0-9]{3}")


class Bad(ValueError):
    """Not a record that was written here."""


class Cut(Bad):
    """The data ends before the record does."""


class Record(NamedTuple):
    """One record as it was read."""

    fields: dict[str, str]
    """Names in lower case."""
    block: bytes


def records(data: bytes) -> Iterator[tuple[int, int, Record]]:
    """Offset, length and content of each record of a file; `Bad` where it is not one, `Cut` if its end is missing."""
    at = 0
    while at < len(data):
        found, length = _read(data, at)
        yield at, length, found
        at += length


def record(data: bytes) -> Record:
    """The one record of these bytes; `Bad` if they are not one."""
    found, length = _read(data, 0)
    if length != len(data):
        raise Bad("it is shorter than its index says")
    return found


def _read(data: bytes, at: int) -> tuple[Record, int]:
    try:
        plain, length = _member(data, at)
        return _parsed(plain), length
    except MemoryError:
        # Others wrote it, perhaps: the pages after it can be read.
        raise Bad(_NO_MEMORY) from None


def _member(data: bytes, at: int) -> tuple[bytes, int]:
    """The first gzip member from there on, and its length."""
    engine = isal_zlib.decompressobj(31)
    found, fed, size = [], at, 0
    while not engine.eof:
        part = data[fed : fed + _STEP] if not engine.unconsumed_tail else engine.unconsumed_tail
        if not part:
            raise Cut("it ends in the middle of a record")
        if not engine.unconsumed_tail:
            fed += len(part)
        try:
            got = engine.decompress(part, LARGEST_RECORD - size)
        except MemoryError:
            raise
        except Exception as error:
            # IsalError, which has no type for checkers, or ValueError.
            raise Bad(f"it is not gzip: {error}") from error
        found.append(got)
        size += len(got)
        if size >= LARGEST_RECORD:
            raise Bad(f"a record of more than {LARGEST_RECORD} bytes")
    return b"".join(found), fed - len(engine.unused_data) - at


def _parsed(plain: bytes) -> Record:
    start = plain.find(END)
    lines = plain[: max(start, 0)].split(b"\r\n")
    if lines[0] not in (b"WARC/1.1", b"WARC/1.0"):
        raise Bad("it is not a WARC record")
    fields = dict(_pairs(lines[1:]))
    try:
        length = int(fields.get("content-length", ""))
    except ValueError:
        raise Bad("its Content-Length is not a number") from None
    start += len(END)
    if length < 0 or len(plain) != start + length + len(END) or not plain.endswith(END):
        raise Bad("its length is not what it says")
    return Record(fields, plain[start : start + length])


def _pairs(lines: list[bytes]) -> list[tuple[str, str]]:
    pairs = []
    for line in lines:
        name, mark, value = line.decode("utf-8", "replace").partition(":")
        if mark:
            pairs.append((name.strip().lower(), value.strip()))
    return pairs


def capture_of(record: Record) -> ArchiveEntry | None:
    """The line of the index; None: it has none of its own (a request)."""
    kind = record.fields.get("warc-type", "")
    if kind not in ("response", "revisit", "resource"):
        return None
    about = about_of(record)
    status, headers, _ = _head(record.block) if kind != "resource" else (0, (), 0)
    mime = record.fields.get("content-type", "")
    if kind != "resource":
        mime = next((value for name, value in headers if name == "content-type"), "").partition(";")[0].strip()
    entry = ArchiveEntry(
        id=id_of(record),
        url=record.fields.get("warc-target-uri", ""),
        at=_moment(about.get("seen_at"), record.fields.get("warc-date", "")),
        kind=CaptureKind.ARTIFACT if kind == "resource" else CaptureKind.RESPONSE,
        status=status,
        mime=mime[:LONGEST_TYPE].lower(),
        digest=record.fields.get("warc-payload-digest", ""),
        job=_text(about.get("job")),
        route=_text(about.get("route")),
        is_revisit=kind == "revisit",
    )
    if why := entry.odd:
        raise Bad(why)
    return entry


def about_of(record: Record) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(record.fields.get("warc-json-metadata", "{}"))
    except (msgspec.DecodeError, RecursionError):
        raise Bad("its metadata is not JSON") from None
    return found if isinstance(found, dict) else {}


def page_of(entry: ArchiveEntry, record: Record, original: Record | None = None) -> ArchivedPage:
    """`original`: of a revisit, the record with its body."""
    try:
        return _page(entry, record, original)
    except MemoryError:
        raise Bad(_NO_MEMORY) from None


def _page(entry: ArchiveEntry, record: Record, original: Record | None) -> ArchivedPage:
    if record.fields.get("warc-type") == "resource":
        answer = Answer(url=entry.url, status=0, headers=(("content-type", entry.mime),), body=record.block)
    else:
        status, headers, start = _head(record.block)
        body = record.block[start:] if original is None else original.block[_head(original.block)[2] :]
        # Others store bodies without their coding and leave the header as it was.
        wire = body if is_gzip(headers) and body.startswith(_GZIP) else b""
        answer = Answer(
            url=entry.url,
            status=status,
            headers=_received(headers),
            body=_undone(wire) if wire else body,
            wire=wire,
            address=record.fields.get("warc-ip-address", ""),
        )
    about = about_of(record)
    return ArchivedPage(entry=entry, answer=answer, method=_text(about.get("method")) or "GET", about=about)


def _received(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """As they came: the last one was written with the body."""
    if headers and headers[-1][0] == "content-length":
        headers = headers[:-1]
    return tuple((name.removeprefix(ORIGINAL), value) for name, value in headers)


def _undone(coded: bytes) -> bytes:
    """A gzip-coded body, decoded."""
    found, room = [], LARGEST_RECORD
    for _ in range(_MEMBERS):
        engine = isal_zlib.decompressobj(31)
        try:
            got = engine.decompress(coded, room)
        except MemoryError:
            raise
        except Exception as error:
            # IsalError, which has no type for checkers, or ValueError.
            raise Bad(f"its body is not gzip: {error}") from error
        found.append(got)
        room -= len(got)
        if room <= 0:
            raise Bad(f"a body of more than {LARGEST_RECORD} bytes")
        if not engine.eof:
            raise Bad("its body ends in the middle of its gzip coding")
        coded = engine.unused_data
        if not coded:
            return b"".join(found)
        if not coded.startswith(_GZIP):
            break
    raise Bad("its body goes on after its gzip coding")


def check_digest(page: ArchivedPage, record: Record) -> None:
    """`Bad` if the body is not what its digest says. A changed byte is noticed without it, by the checksum of gzip."""
    written = record.fields.get("warc-payload-digest", "")
    if not written.startswith("sha256:"):
        raise Bad("it has no digest that is checked here (sha256): another program wrote it")
    if digest_of(page.answer.wire or page.answer.body) != written:
        raise Bad("its body does not have the digest that was written with it")


def refers_to(record: Record) -> First:
    return First(record.fields.get("warc-refers-to-target-uri", ""), record.fields.get("warc-refers-to-date", ""))


def _head(block: bytes) -> tuple[int, tuple[tuple[str, str], ...], int]:
    """Status and headers, and where the body begins."""
    end = block.find(END)
    lines = block[: max(end, 0)].split(b"\r\n")
    words = lines[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not _STATUS.fullmatch(words[1]):
        raise Bad("it has no HTTP response")
    return int(words[1]), tuple(_pairs(lines[1:])), end + len(END)


def id_of(record: Record) -> str:
    urn = record.fields.get("warc-record-id", "")
    return urn.removeprefix("<urn:uuid:").removesuffix(">").replace("-", "")


def _moment(seen_at: Any, date: str) -> Moment:
    """`seen_at`: the exact time, which records of others do not have."""
    try:
        if isinstance(seen_at, int | float):
            return float(seen_at)
        return datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        raise Bad("its date is not one") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
