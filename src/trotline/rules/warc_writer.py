"""WARC 1.1 records, written: captures to bytes. One gzip member per record, so that any record can be read alone.

A response has two records: `response` (or `revisit`, if its body is in the file already) and `request`. An artifact is
a `resource`. A body that came gzip-coded is stored as it came. Others are stored without their coding: headers that
described it are renamed `x-archive-orig-*`.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from isal import igzip_lib

from trotline.model.archive import LONGEST_TYPE, ArchiveEntry, Capture, CaptureKind
from trotline.model.time import Moment
from trotline.rules.gzip_members import around

LARGEST_ABOUT = 32 * 1024
"""Bytes of what is stored of a task. A larger `meta` is left out, and the page cannot be parsed again."""
TOO_LARGE = "about_too_large"
SAME_BODY = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
LEAST_REVISIT = 256
"""Smaller bodies are stored again: a reference would take as much."""
END = b"\r\n\r\n"
ORIGINAL = "x-archive-orig-"

_LEVEL = 2
_FAST = 0
"""Of requests: a few hundred bytes."""
_FRAMING = frozenset({"content-length", "transfer-encoding"})
_CODING = _FRAMING | {"content-encoding"}
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_FLIPPED = {digit: f"{int(digit, 16) ^ 1:x}" for digit in "0123456789abcdefABCDEF"}
LINE_BREAKS = "\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
"""What begins a line in some reader: those of Python split text at all of them."""
_ONE_LINE = str.maketrans(dict.fromkeys(f"\0{LINE_BREAKS}", " "))


_json = msgspec.json.Encoder().encode


class First(NamedTuple):
    """The record that has a body first."""

    url: str
    date: str


class Written(NamedTuple):
    """The records of one capture, and its line for the index; its file is not known yet."""

    data: bytes
    entry: ArchiveEntry
    date: str


def digest_of(body: bytes) -> str:
    """In hexadecimal, which others read as well as base32, and which takes a fiftieth of the time."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def date_of(at: Moment) -> str:
    part, second = math.modf(at)
    micros = round(part * 1e6)
    return f"{_second(second)}.{micros:06d}Z" if micros < 1_000_000 else f"{_second(second + 1.0)}.000000Z"


@lru_cache(maxsize=256)
def _second(at: Moment) -> str:
    """Pages of one second come together."""
    return datetime.fromtimestamp(at, UTC).isoformat()[:-6]


def encode(capture: Capture, known: Mapping[str, First], offset: int = 0) -> Written:
    """`known`: digests of bodies that are in the same file. `offset`: where it will be in its file."""
    digest = digest_of(capture.body)
    date, url = date_of(capture.at), _line(capture.url)
    urn = _urn(capture.id)
    # No dictionaries of fields on the way: this runs for every page.
    about = f"WARC-Payload-Digest: {digest}\r\nWARC-JSON-Metadata: {_about(capture)}\r\n"
    if capture.kind is CaptureKind.ARTIFACT:
        return _artifact(capture, digest, date, f"{_start(urn, date, url)}{about}", offset)
    first = known.get(digest) if len(capture.body) >= LEAST_REVISIT else None
    fields = f"{_start(urn, date, url)}{about}Content-Type: application/http; msgtype=response\r\n"
    if capture.address:
        fields += f"WARC-IP-Address: {_line(capture.address)}\r\n"
    if first is not None:
        fields += f"WARC-Profile: {SAME_BODY}\r\nWARC-Refers-To-Target-URI: {first.url}\r\n"
        fields += f"WARC-Refers-To-Date: {first.date}\r\n"
    head = _response_head(capture)
    kind, body = ("response", capture.body) if first is None else ("revisit", b"")
    response = _record(kind, fields, head, body, is_packed=capture.is_coded)
    of_request = (
        f"{_start(_urn(_other(capture.id)), date, url)}WARC-Concurrent-To: {urn}\r\n"
        "Content-Type: application/http; msgtype=request\r\n"
    )
    request = _record("request", of_request, _request_head(capture, url), b"", _FAST)
    entry = _entry(capture, url, digest, _mime(capture.headers), offset, len(response), is_revisit=first is not None)
    return Written(response + request, entry, date)


def _artifact(capture: Capture, digest: str, date: str, fields: str, offset: int) -> Written:
    kind = capture.type or "application/octet-stream"
    fields += f"WARC-Block-Digest: {digest}\r\nContent-Type: {_line(kind)}\r\n"
    data = _record("resource", fields, b"", capture.body)
    return Written(data, _entry(capture, _line(capture.url), digest, _line(kind), offset, len(data)), date)


def _entry(
    capture: Capture, url: str, digest: str, mime: str, offset: int, length: int, *, is_revisit: bool = False
) -> ArchiveEntry:
    return ArchiveEntry(
        id=capture.id,
        url=url,
        at=capture.at,
        kind=capture.kind,
        status=capture.status,
        mime=mime,
        digest=digest,
        job=capture.job,
        route=capture.route,
        offset=offset,
        length=length,
        is_revisit=is_revisit,
    )


def _mime(headers: Iterable[tuple[str, str]]) -> str:
    for name, value in headers:
        if name == "content-type":
            return _type_of(value)
    return ""


@lru_cache(maxsize=256)
def _type_of(content_type: str) -> str:
    return _line(content_type.partition(";")[0].strip().lower())[:LONGEST_TYPE]


def _start(urn: str, date: str, url: str) -> str:
    """The fields of every record."""
    return f"WARC-Record-ID: {urn}\r\nWARC-Date: {date}\r\nWARC-Target-URI: {url}\r\n"


def _about(capture: Capture) -> str:
    """In one line of ASCII. The exact time, too: dates have microseconds."""
    known = {"job": capture.job, "route": capture.route, "seen_at": capture.at}
    text = _ascii({**capture.about, **known})
    if len(text) > LARGEST_ABOUT:
        return _ascii({**known, TOO_LARGE: len(text)})
    return text


def _ascii(value: dict[str, Any]) -> str:
    encoded = _json(value)
    return encoded.decode() if encoded.isascii() else json.dumps(msgspec.to_builtins(value))


def _record(kind: str, fields: str, head: bytes, body: bytes, level: int = _LEVEL, *, is_packed: bool = False) -> bytes:
    """`is_packed`: the body is compressed already."""
    start = f"WARC/1.1\r\nWARC-Type: {kind}\r\n{fields}Content-Length: {len(head) + len(body)}\r\n\r\n"
    if is_packed:
        return around(start.encode() + head, body, END)
    packed: bytes = igzip_lib.compress(b"".join((start.encode(), head, body, END)), level, igzip_lib.COMP_GZIP)
    return packed


def _response_head(capture: Capture) -> bytes:
    reason = _REASONS.get(capture.status, "")
    names = _written_names(tuple([name for name, _ in capture.headers]), is_coded=capture.is_coded)
    lines = _lines(names, [value for _, value in capture.headers])
    start = f"HTTP/{capture.http} {capture.status:03d} {reason}\r\n"
    return f"{start}{lines}content-length: {len(capture.body)}\r\n\r\n".encode("utf-8", "replace")


@lru_cache(maxsize=256)
def _written_names(names: tuple[str, ...], *, is_coded: bool) -> tuple[str, ...]:
    """Responses of one site have the same names, mostly."""
    untrue = _FRAMING if is_coded else _CODING
    return tuple(ORIGINAL + name if name in untrue or name.startswith(ORIGINAL) else name for name in names)


def _request_head(capture: Capture, url: str) -> bytes:
    """`url`: in one line."""
    start = url.find("/", url.find("://") + 3)
    target, host = (url[start:], url[:start]) if start > 0 else ("/", url)
    first = f"{_line(capture.method)} {target} HTTP/1.1\r\nhost: {host.partition('://')[2]}\r\n"
    return f"{first}{_same_lines(capture.request_headers)}\r\n".encode("utf-8", "replace")


@lru_cache(maxsize=64)
def _same_lines(pairs: tuple[tuple[str, str], ...]) -> str:
    """Most requests of a spider have the same headers."""
    return _lines([name for name, _ in pairs], [value for _, value in pairs])


def _lines(names: Iterable[str], values: Iterable[str]) -> str:
    lines = [f"{name}: {value}" for name, value in zip(names, values, strict=True)]
    if not "".join(lines).isprintable():
        lines = [_line(line) for line in lines]
    lines.append("")
    return "\r\n".join(lines)


def _line(text: str) -> str:
    return text if text.isprintable() else text.translate(_ONE_LINE)


def _urn(digits: str) -> str:
    return f"<urn:uuid:{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}>"


def _other(digits: str) -> str:
    """The id of the request that belongs to a response."""
    return f"{digits[:15]}{_FLIPPED[digits[15]]}{digits[16:]}"
