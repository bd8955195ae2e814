"""Undoing Content-Encoding, within limits.

The body is undone in one go once it is there: the wire limit bounds what goes in, and `room` bounds what comes out,
so a bomb stops at the limit and not at the end of the memory. isal undoes gzip in half the time of zlib.
"""

from collections.abc import Callable
from typing import cast

import brotli
import zstandard
from isal import isal_zlib
from isal.igzip_lib import IsalError

from trotline.model.limits import MIB, Limits

MEMBERS = 64
"""gzip members or zstd frames in one body."""
_ZSTD_WINDOW = 8 * MIB
"""What RFC 9659 lets a server ask of us."""
_ZSTD_SLICE = 512
"""4 bytes of zstd can hold 128 KiB, and its decoder knows no output limit: small bites keep the overshoot at 16 MiB."""
_BROKEN: tuple[type[Exception], ...] = (
    cast(type[Exception], IsalError),
    brotli.error,
    zstandard.ZstdError,
)
_NO_CODING = frozenset({"", "identity", "none"})


class OverLimit(Exception):
    """What comes out is more than there is room for (`why` is empty), or another limit struck (`why` names it)."""

    def __init__(self, why: str = "", pieces: list[bytes] | None = None) -> None:
        super().__init__(why or "no room")
        self.why = why
        self._pieces = pieces or []

    def start(self, room: int) -> bytes:
        """The first bytes of what came out. Joined only when asked for: a bomb is mostly thrown away."""
        return b"".join(self._pieces)[:room]


class BadEncoding(Exception):
    """The bytes are not what Content-Encoding says."""


def room_for(wire_bytes: int, limits: Limits) -> int:
    """How many bytes a body of that many wire bytes may become."""
    return min(limits.decoded_body, max(MIB, limits.expansion * wire_bytes))


def codings(header: str, limits: Limits) -> list[str]:
    """The codings to undo, first one first; `OverLimit` when there are too many."""
    named = [part.strip().lower() for part in header.split(",")]
    chain = [name for name in reversed(named) if name not in _NO_CODING]
    if len(chain) > limits.encodings:
        raise OverLimit(f"{len(chain)} content-encodings, the limit is {limits.encodings}")
    return chain


def undo(body: bytes, chain: list[str], room: int) -> tuple[bytes, tuple[str, ...]]:
    """The body with its codings undone, and what was odd. `OverLimit` knows how it starts."""
    notes: list[str] = []
    for number, name in enumerate(chain):
        stage = _STAGES.get(name)
        if stage is None:
            notes.append(f"unknown content-encoding {name[:20]!r}: left as it is")
            continue
        if not _may_be(name, body):
            # Servers that forget to compress, or undo it on the way, are common. Believe the bytes, once.
            if number or not _is_plain(body):
                raise BadEncoding(f"declared {name}, was something else")
            notes.append(f"declared {name}, was plain")
            continue
        try:
            body, note = stage(body, room)
        except _BROKEN as error:
            if "too much memory" in str(error):
                raise OverLimit(f"{name} window over {_ZSTD_WINDOW // MIB} MiB") from error
            if number or not _is_plain(body):
                raise BadEncoding(f"broken {name}: {error}") from error
            note = f"declared {name}, was plain"
        if note:
            notes.append(note)
    return body, tuple(notes)


def _inflate(data: bytes, room: int, window_bits: int) -> tuple[bytes, str]:
    pieces: list[bytes] = []
    left = room
    for _ in range(MEMBERS):
        engine = isal_zlib.decompressobj(window_bits)
        piece = engine.decompress(data, left + 1)
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise OverLimit(pieces=pieces)
        if not engine.eof:
            return b"".join(pieces), "compressed body cut short"
        data = engine.unused_data
        if window_bits != _GZIP or data[:2] != b"\x1f\x8b":
            note = "bytes after the compressed body" if data.strip(b"\0") else ""
            return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), note
    raise OverLimit(f"more than {MEMBERS} gzip members", pieces)


_GZIP, _ZLIB, _RAW = 31, 15, -15


def _gunzip(data: bytes, room: int) -> tuple[bytes, str]:
    return _inflate(data, room, _GZIP)


def _undeflate(data: bytes, room: int) -> tuple[bytes, str]:
    """ "deflate" should mean zlib; half of those who send it send it without zlib's header."""
    wrapped = len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    return _inflate(data, room, _ZLIB if wrapped else _RAW)


def _unbrotli(data: bytes, room: int) -> tuple[bytes, str]:
    engine = brotli.Decompressor()
    # In steps: the library doubles its buffer, and would take twice what it gives.
    pieces = [engine.process(data, output_buffer_limit=MIB)]
    size = len(pieces[0])
    while size <= room and not engine.is_finished() and not engine.can_accept_more_data():
        pieces.append(engine.process(b"", output_buffer_limit=MIB))
        size += len(pieces[-1])
    if size > room:
        raise OverLimit(pieces=pieces)
    return b"".join(pieces), "" if engine.is_finished() else "compressed body cut short"


def _unzstd(data: bytes, room: int) -> tuple[bytes, str]:
    maker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    pieces: list[bytes] = []
    size = 0
    for _ in range(MEMBERS):
        engine = maker.decompressobj()
        at = 0
        while at < len(data) and not engine.eof:
            piece = engine.decompress(data[at : at + _ZSTD_SLICE])
            at += _ZSTD_SLICE
            pieces.append(piece)
            size += len(piece)
            if size > room:
                raise OverLimit(pieces=pieces)
        if not engine.eof:
            return b"".join(pieces), "compressed body cut short"
        data = engine.unused_data + data[at:]
        if not _may_be("zstd", data):
            return b"".join(pieces), "bytes after the compressed body" if data else ""
    raise OverLimit(f"more than {MEMBERS} zstd frames", pieces)


_STAGES: dict[str, Callable[[bytes, int], tuple[bytes, str]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}


def _may_be(name: str, data: bytes) -> bool:
    """Does the body start as this coding must? (deflate and br have no sure sign: the decoder finds out.)"""
    if name in ("gzip", "x-gzip"):
        return data[:2] == b"\x1f\x8b"
    if name == "zstd":
        skippable = data[1:4] == b"\x2a\x4d\x18" and data[0] >> 4 == 5
        return data[:4] == b"\x28\xb5\x2f\xfd" or skippable
    return True


def _is_plain(data: bytes) -> bool:
    """Does it read as text? Compressed bytes have control characters among their first few."""
    start = data[:256]
    return not any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in start)
