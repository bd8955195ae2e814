"""WARC 1.1 records: captures to bytes and back. One gzip member per record, so that any record can be read alone.

A response has two records: `response` (or `revisit`, if its body is in the file already) and `request`. An artifact is
a `resource`. The body is stored without its content coding: headers that described it are renamed `x-archive-orig-*`.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from isal import igzip_lib, isal_zlib

from trotline.model.answer import Answer
from trotline.model.archive import ArchivedPage, ArchiveEntry, Capture, CaptureKind
from trotline.model.time import Moment

LARGEST_RECORD = 256 * 1024 * 1024
"""Bytes of a record that is read: more than any limit lets through, and an end for bombs."""
LARGEST_ABOUT = 32 * 1024
"""Bytes of what is stored of a task. A larger `meta` is left out, and the page cannot be parsed again."""
TOO_LARGE = "about_too_large"
SAME_BODY = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
LEAST_REVISIT = 256
"""Smaller bodies are stored again: a reference would take as much."""

_LEVEL = 2
_FAST = 0
"""Of requests: a few hundred bytes."""
_STEP = 16 * 1024
_END = b"\r\n\r\n"
_CODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_ORIGINAL = "x-archive-orig-"
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_ONE_LINE = str.maketrans({"\r": " ", "\n": " ", "\0": " "})


class Bad(ValueError):
    """Not a record that was written here."""


class First(NamedTuple):
    """The record that has a body first."""

    url: str
    date: str


class Written(NamedTuple):
    """The records of one capture, and its line for the index; its offset and file are not known yet."""

    data: bytes
    entry: ArchiveEntry


def digest_of(body: bytes) -> str:
    return "sha256:" + base64.b32encode(hashlib.sha256(body).digest()).decode()


def date_of(at: Moment) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def encode(capture: Capture, known: Mapping[str, First]) -> Written:
    """`known`: digests of bodies that are in the same file."""
    digest = digest_of(capture.body)
    if capture.kind is CaptureKind.ARTIFACT:
        return _artifact(capture, digest)
    first = known.get(digest) if len(capture.body) >= LEAST_REVISIT else None
    head = _response_head(capture)
    fields = _fields(capture, digest) | {"Content-Type": "application/http; msgtype=response"}
    if capture.address:
        fields["WARC-IP-Address"] = capture.address
    if first is not None:
        fields |= {"WARC-Profile": SAME_BODY, "WARC-Refers-To-Target-URI": first.url, "WARC-Refers-To-Date": first.date}
    response = _record("response" if first is None else "revisit", fields, head, b"" if first else capture.body)
    request = _record(
        "request",
        {
            "WARC-Record-ID": f"<urn:uuid:{_uuid(_other(capture.id))}>",
            "WARC-Date": fields["WARC-Date"],
            "WARC-Target-URI": fields["WARC-Target-URI"],
            "WARC-Concurrent-To": fields["WARC-Record-ID"],
            "Content-Type": "application/http; msgtype=request",
        },
        _request_head(capture),
        b"",
        _FAST,
    )
    mime = next((value for name, value in capture.headers if name == "content-type"), "")
    entry = _entry(capture, digest, mime.partition(";")[0].strip().lower(), len(response), is_revisit=first is not None)
    return Written(response + request, entry)


def _artifact(capture: Capture, digest: str) -> Written:
    kind = capture.type or "application/octet-stream"
    fields = {"WARC-Block-Digest": digest, "Content-Type": _line(kind)}
    data = _record("resource", _fields(capture, digest) | fields, b"", capture.body)
    return Written(data, _entry(capture, digest, kind, len(data)))


def _entry(capture: Capture, digest: str, mime: str, length: int, *, is_revisit: bool = False) -> ArchiveEntry:
    return ArchiveEntry(
        id=capture.id,
        url=_line(capture.url),
        at=capture.at,
        kind=capture.kind,
        status=capture.status,
        mime=_line(mime),
        digest=digest,
        job=capture.job,
        route=capture.route,
        length=length,
        is_revisit=is_revisit,
    )


def _fields(capture: Capture, digest: str) -> dict[str, str]:
    return {
        "WARC-Record-ID": f"<urn:uuid:{_uuid(capture.id)}>",
        "WARC-Date": date_of(capture.at),
        "WARC-Target-URI": _line(capture.url),
        "WARC-Payload-Digest": digest,
        "WARC-JSON-Metadata": _about(capture),
    }


def _about(capture: Capture) -> str:
    """In one line of ASCII. The exact time, too: dates have microseconds."""
    known = {"job": capture.job, "route": capture.route, "seen_at": capture.at}
    text = _ascii({**capture.about, **known})
    if len(text) > LARGEST_ABOUT:
        return _ascii({**known, TOO_LARGE: len(text)})
    return text


def _ascii(value: dict[str, Any]) -> str:
    encoded = msgspec.json.encode(value)
    return encoded.decode() if encoded.isascii() else json.dumps(msgspec.to_builtins(value))


def _record(kind: str, fields: Mapping[str, str], head: bytes, body: bytes, level: int = _LEVEL) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields.items()])
    start = f"WARC/1.1\r\nWARC-Type: {kind}\r\n{lines}Content-Length: {len(head) + len(body)}\r\n\r\n"
    plain = b"".join((start.encode(), head, body, _END))
    packed: bytes = igzip_lib.compress(plain, level, igzip_lib.COMP_GZIP)
    return packed


def _response_head(capture: Capture) -> bytes:
    reason = _REASONS.get(capture.status, "")
    pairs = [(_ORIGINAL + name if _is_renamed(name) else name, value) for name, value in capture.headers]
    lines = _lines([*pairs, ("content-length", str(len(capture.body)))])
    return f"HTTP/{capture.http} {capture.status} {reason}\r\n{lines}\r\n".encode("utf-8", "replace")


def _is_renamed(name: str) -> bool:
    return name in _CODED or name.startswith(_ORIGINAL)


def _request_head(capture: Capture) -> bytes:
    start = capture.url.find("/", capture.url.find("://") + 3)
    target, host = (capture.url[start:], capture.url[:start]) if start > 0 else ("/", capture.url)
    lines = _lines([("host", host.partition("://")[2]), *capture.request_headers])
    return f"{_line(capture.method)} {_line(target)} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "replace")


def _lines(pairs: list[tuple[str, str]]) -> str:
    if "".join([name + value for name, value in pairs]).isprintable():
        return "".join([f"{name}: {value}\r\n" for name, value in pairs])
    return "".join([f"{_line(name)}: {_line(value)}\r\n" for name, value in pairs])


def _line(text: str) -> str:
    return text if text.isprintable() else text.translate(_ONE_LINE)


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def _other(digits: str) -> str:
    """The id of the request that belongs to a response."""
    return f"{int(digits[:16], 16) ^ 1:016x}{digits[16:]}"


# Reading


class Record(NamedTuple):
    """One record as it was read."""

    fields: dict[str, str]
    """Names in lower case."""
    block: bytes


def records(data: bytes) -> Iterator[tuple[int, int, Record]]:
    """Offset, length and content of each record of a file; `Bad` where it is not one."""
    at = 0
    while at < len(data):
        plain, length = _member(data, at)
        yield at, length, _parsed(plain)
        at += length


def _member(data: bytes, at: int) -> tuple[bytes, int]:
    """The first gzip member from there on, and its length."""
    engine = isal_zlib.decompressobj(31)
    found, fed, size = [], at, 0
    while not engine.eof:
        part = data[fed : fed + _STEP] if not engine.unconsumed_tail else engine.unconsumed_tail
        if not part:
            raise Bad("it ends in the middle of a record")
        if not engine.unconsumed_tail:
            fed += len(part)
        try:
            got = engine.decompress(part, LARGEST_RECORD)
        except Exception as error:
            # IsalError, which has no type for checkers, or ValueError.
            raise Bad(f"it is not gzip: {error}") from error
        found.append(got)
        size += len(got)
        if size >= LARGEST_RECORD:
            raise Bad(f"a record of more than {LARGEST_RECORD} bytes")
    return b"".join(found), fed - len(engine.unused_data) - at


def _parsed(plain: bytes) -> Record:
    head, mark, rest = plain.partition(_END)
    lines = head.split(b"\r\n")
    if not mark or lines[0] not in (b"WARC/1.1", b"WARC/1.0"):
        raise Bad("it is not a WARC record")
    fields = dict(_pairs(lines[1:]))
    try:
        length = int(fields.get("content-length", ""))
    except ValueError:
        raise Bad("its Content-Length is not a number") from None
    if length < 0 or len(rest) != length + len(_END) or not rest.endswith(_END):
        raise Bad("its length is not what it says")
    return Record(fields, rest[:length])


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
    seen_at = about.get("seen_at")
    status, headers, _ = _http(record.block) if kind != "resource" else (0, (), b"")
    mime = record.fields.get("content-type", "")
    if kind != "resource":
        mime = next((value for name, value in headers if name == "content-type"), "").partition(";")[0].strip()
    return ArchiveEntry(
        id=_digits(record.fields.get("warc-record-id", "")),
        url=record.fields.get("warc-target-uri", ""),
        at=float(seen_at) if isinstance(seen_at, int | float) else _moment(record.fields.get("warc-date", "")),
        kind=CaptureKind.ARTIFACT if kind == "resource" else CaptureKind.RESPONSE,
        status=status,
        mime=mime.lower(),
        digest=record.fields.get("warc-payload-digest", ""),
        job=_text(about.get("job")),
        route=_text(about.get("route")),
        is_revisit=kind == "revisit",
    )


def about_of(record: Record) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(record.fields.get("warc-json-metadata", "{}"))
    except (msgspec.DecodeError, RecursionError):
        raise Bad("its metadata is not JSON") from None
    return found if isinstance(found, dict) else {}


def page_of(entry: ArchiveEntry, record: Record, original: Record | None = None) -> ArchivedPage:
    """`original`: of a revisit, the record with its body. `Bad` if the body is not what the digest says."""
    if record.fields.get("warc-type") == "resource":
        answer = Answer(url=entry.url, status=0, headers=(("content-type", entry.mime),), body=record.block)
    else:
        status, headers, body = _http(record.block)
        if original is not None:
            body = _http(original.block)[2]
        kept = tuple((name.removeprefix(_ORIGINAL), value) for name, value in headers[:-1])
        answer = Answer(
            url=entry.url, status=status, headers=kept, body=body, address=record.fields.get("warc-ip-address", "")
        )
    if digest_of(answer.body) != record.fields.get("warc-payload-digest"):
        raise Bad("its body does not have the digest that was written with it")
    about = about_of(record)
    return ArchivedPage(entry=entry, answer=answer, method=_text(about.get("method")) or "GET", about=about)


def refers_to(record: Record) -> First:
    return First(record.fields.get("warc-refers-to-target-uri", ""), record.fields.get("warc-refers-to-date", ""))


def _http(block: bytes) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    head, mark, body = block.partition(_END)
    lines = head.split(b"\r\n")
    words = lines[0].split(b" ", 2)
    if not mark or len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise Bad("it has no HTTP response")
    return int(words[1]), tuple(_pairs(lines[1:])), body


def _digits(urn: str) -> str:
    return urn.removeprefix("<urn:uuid:").removesuffix(">").replace("-", "")


def _moment(date: str) -> Moment:
    try:
        return datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise Bad("its date is not one") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
