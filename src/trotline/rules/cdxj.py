"""The index of a WARC file: CDXJ, one line per capture, sorted, as pywb and other tools read it."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from trotline.model.archive import ArchiveEntry, CaptureKind
from trotline.rules.warc_writer import LINE_BREAKS

_PLAIN = re.compile(r"(https?://[a-z0-9.-]+(?::[1-5]?[0-9]{1,4})?)(/[!-\"$->@-~]*)(?:\?([!-\"$-~]*))?")
"""Nearly every URL: the host is looked at once for all of its pages. An empty query is none."""
_ESCAPED = str.maketrans({sign: quote(sign) for sign in f" \t{LINE_BREAKS}"})


def key_of(url: str) -> str:
    """The sort key: the host backwards, then the path (`com,shop)/p/17?a=1`), in lower case. Other addresses as they
    are."""
    if (plain := _PLAIN.fullmatch(url)) is None:
        return _slowly(url)
    site, path, query = plain.groups()
    if query:
        query = "&".join(sorted(query.split("&"))) if "&" in query else query
        return f"{_place(site)}{path}?{query}".lower()
    return f"{_place(site)}{path}".lower()


@lru_cache(maxsize=1024)
def _place(site: str) -> str:
    """Of a host: what the keys of its pages begin with."""
    return _slowly(f"{site}/")[:-1]


def _slowly(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url.translate(_ESCAPED)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return url.translate(_ESCAPED)
    names = parts.hostname.split(".")
    if len(names) > 1 and names[0] == "www":
        names = names[1:]
    host = parts.hostname if names[-1].isdigit() or ":" in parts.hostname else ",".join(reversed(names))
    place = host if port is None or port == {"http": 80, "https": 443}[parts.scheme] else f"{host}:{port}"
    query = f"?{'&'.join(sorted(parts.query.split('&')))}" if parts.query else ""
    return f"{place}){parts.path or '/'}{query}".lower().translate(_ESCAPED)


_encode = msgspec.json.Encoder().encode


def written(entries: Iterable[ArchiveEntry], file: str) -> bytes:
    """The whole index of that file."""
    name = file.rpartition("/")[2]
    return b"".join(sorted([line(entry, name) for entry in entries]))


def line(entry: ArchiveEntry, name: str) -> bytes:
    """`name`: of its file, without folders."""
    stamp = _stamp(int(entry.at))
    fields: dict[str, Any] = {
        "url": entry.url,
        # The usual names and types of CDXJ; pywb knows a revisit by its type.
        "mime": "warc/revisit" if entry.is_revisit else entry.mime or "unk",
        "status": str(entry.status) if entry.status else "-",
        "digest": entry.digest,
        "length": str(entry.length),
        "offset": str(entry.offset),
        "filename": name,
        "id": entry.id,
        "at": entry.at,
        "job": entry.job,
        "route": entry.route,
    }
    if entry.is_revisit:
        fields["type"] = entry.mime
    if entry.kind is not CaptureKind.RESPONSE:
        fields["kind"] = entry.kind.value
    return f"{key_of(entry.url)} {stamp} ".encode() + _ascii(fields) + b"\n"


def _ascii(fields: dict[str, Any]) -> bytes:
    """Others may split the text of an index at more than a line feed."""
    encoded = _encode(fields)
    return encoded if encoded.isascii() else json.dumps(fields).encode()


@lru_cache(maxsize=256)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y%m%d%H%M%S")


class _Fields(msgspec.Struct, frozen=True):
    url: str
    length: str
    offset: str
    id: str
    at: float
    mime: str = ""
    status: str = "-"
    digest: str = ""
    job: str = ""
    route: str = ""
    kind: CaptureKind = CaptureKind.RESPONSE
    type: str = ""


_decode = msgspec.json.Decoder(_Fields).decode


def read(index: bytes, file: str) -> Iterator[ArchiveEntry]:
    """The lines of an index, of a file of that name; ValueError if one is not understood."""
    for each in index.splitlines():
        if each:
            yield entry_of(each, file)


def entry_of(text: bytes, file: str) -> ArchiveEntry:
    try:
        _, _, json = text.split(b" ", 2)
        entry = _entry(_decode(json), file)
    except (msgspec.DecodeError, ValueError, RecursionError):
        entry = None
    if entry is None or entry.odd or not entry.length:
        raise ValueError(f"a line of its index cannot be read: {text[:80]!r}")
    return entry


def _entry(fields: _Fields, file: str) -> ArchiveEntry:
    is_revisit = fields.mime == "warc/revisit"
    return ArchiveEntry(
        id=fields.id,
        url=fields.url,
        at=fields.at,
        kind=fields.kind,
        status=int(fields.status) if fields.status.isdigit() else 0,
        mime=fields.type if is_revisit else fields.mime,
        digest=fields.digest,
        job=fields.job,
        route=fields.route,
        file=file,
        offset=int(fields.offset),
        length=int(fields.length),
        is_revisit=is_revisit,
    )
