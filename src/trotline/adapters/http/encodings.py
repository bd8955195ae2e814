"""Decoding of Content-Encoding, within limits.

The complete body is decoded at once: the wire limit bounds the input, and `room` the output, so decompression bombs
stop at the limit. isal decodes gzip in half the time of zlib.
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
"""The maximum of RFC 9659."""
_ZSTD_SLICE = 256
"""4 bytes of zstd can hold 128 KiB, and its decoder has no output limit: small slices keep the overshoot at 8 MiB."""
_STEP = 4 * MIB
"""Output per step; most pages are smaller."""
_BROKEN: tuple[type[Exception], ...] = (
    cast(type[Exception], IsalError),
    brotli.error,
    zstandard.ZstdError,
)
_NO_CODING = frozenset({"", "identity", "none"})


class Out:
    """The output so far, at most `room` bytes.

    A single piece is kept as it is, more go into one buffer that grows in place: a list of the pieces of a bomb would
    fragment the heap, which then stays large.
    """

    def __init__(self, room: int, *, keep: bool = True) -> None:
        """Without `keep` bytes are only counted."""
        self.left = room
        self._keep = keep
        self._first = b""
        self._more: bytearray | None = None

    def add(self, piece: bytes) -> None:
        room, self.left = self.left, self.left - len(piece)
        if not self._keep:
            piece = b""
        elif self.left < 0:
            # The last piece of a bomb may be large itself.
            piece = piece[:room]
        if self._more is not None:
            self._more += piece
        elif self._first:
            self._more = bytearray(self._first)
            self._more += piece
            self._first = b""
        else:
            self._first = piece
        if self.left < 0:
            raise OverLimit(out=self)

    def whole(self) -> bytes:
        return self._first if self._more is None else bytes(self._more)


class OverLimit(Exception):
    """The output is larger than its room (`why` is empty), or another limit was exceeded (`why` names it)."""

    def __init__(self, why: str = "", out: Out | None = None) -> None:
        super().__init__(why or "no room")
        self.why = why
        self._out = out

    def start(self, room: int) -> bytes:
        """The first bytes of the output, once; the rest is released."""
        out, self._out = self._out, None
        return b"" if out is None or not room else out.whole()[:room]


class BadEncoding(Exception):
    """The body does not match its Content-Encoding."""


def room_for(wire_bytes: int, limits: Limits, most: int | None = None) -> int:
    """The maximum decoded size of a body; `most` replaces the limit for pages."""
    return min(most or limits.decoded_body, max(MIB, limits.expansion * wire_bytes))


def codings(header: str, limits: Limits) -> list[str]:
    """The codings in the order of decoding; `OverLimit` if there are too many."""
    named = [part.strip().lower() for part in header.split(",")]
    chain = [name for name in reversed(named) if name not in _NO_CODING]
    if len(chain) > limits.encodings:
        raise OverLimit(f"content-encodings: {len(chain)}, the limit is {limits.encodings}")
    return chain


def undo(body: bytes, chain: list[str], room: int, *, keep: bool = True) -> tuple[bytes, tuple[str, ...]]:
    """The decoded body, and notes. `OverLimit` has the start of the output.

    Without `keep` the output is discarded: a check of its size.
    """
    notes: list[str] = []
    for number, name in enumerate(chain):
        stage = _STAGES.get(name)
        if stage is None:
            notes.append(f"unknown content-encoding {name[:20]!r}: left as it is")
            continue
        if not _may_be(name, body):
            # Servers that declare a coding but do not compress are common.
            if number or not _is_plain(body):
                raise BadEncoding(f"declared {name}, but is not {name}")
            notes.append(f"declared {name}, was plain")
            continue
        try:
            out = Out(room, keep=keep or number + 1 < len(chain))
            note = stage(body, out)
            body = out.whole()
        except _BROKEN as error:
            if "too much memory" in str(error):
                raise OverLimit(f"{name} window over {_ZSTD_WINDOW // MIB} MiB") from error
            if number or not _is_plain(body):
                raise BadEncoding(f"broken {name}: {error}") from error
            note = f"declared {name}, was plain"
        if note:
            notes.append(note)
    return body, tuple(notes)


def _inflate(data: bytes, out: Out, window_bits: int) -> str:
    for _ in range(MEMBERS):
        engine = isal_zlib.decompressobj(window_bits)
        out.add(engine.decompress(data, min(_STEP, out.left + 1)))
        while engine.unconsumed_tail and not engine.eof:
            out.add(engine.decompress(engine.unconsumed_tail, min(_STEP, out.left + 1)))
        if not engine.eof:
            return "compressed body cut short"
        data = engine.unused_data
        if window_bits != _GZIP or data[:2] != b"\x1f\x8b":
            return "bytes after the compressed body" if data.strip(b"\0") else ""
    raise OverLimit(f"more than {MEMBERS} gzip members", out)


_GZIP, _ZLIB, _RAW = 31, 15, -15


def _gunzip(data: bytes, out: Out) -> str:
    return _inflate(data, out, _GZIP)


def _undeflate(data: bytes, out: Out) -> str:
    """ "deflate" should mean zlib; about half of the servers send it without zlib's header."""
    wrapped = len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    return _inflate(data, out, _ZLIB if wrapped else _RAW)


def _unbrotli(data: bytes, out: Out) -> str:
    engine = brotli.Decompressor()
    # In steps: the library doubles its buffer, and would use twice the memory of its output.
    out.add(engine.process(data, output_buffer_limit=MIB))
    while not engine.is_finished() and not engine.can_accept_more_data():
        out.add(engine.process(b"", output_buffer_limit=MIB))
    return "" if engine.is_finished() else "compressed body cut short"


def _unzstd(data: bytes, out: Out) -> str:
    maker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    for _ in range(MEMBERS):
        engine = maker.decompressobj()
        at = 0
        while at < len(data) and not engine.eof:
            out.add(engine.decompress(data[at : at + _ZSTD_SLICE]))
            at += _ZSTD_SLICE
        if not engine.eof:
            return "compressed body cut short"
        data = engine.unused_data + data[at:]
        if not _may_be("zstd", data):
            return "bytes after the compressed body" if data else ""
    raise OverLimit(f"more than {MEMBERS} zstd frames", out)


_STAGES: dict[str, Callable[[bytes, Out], str]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}


def _may_be(name: str, data: bytes) -> bool:
    """Does the body have the magic number of this coding? (deflate and br have none.)"""
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
