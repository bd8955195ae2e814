"""Bodies that are small on the wire and large when undone, and bodies whose encoding lies."""

import gzip
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache

import brotli
import zstandard

from trotline.testing.torture.faults import Call, Faults, answer, page

bombs = Faults("bomb")
packed = Faults("packed")

MIB = 1024 * 1024
LARGEST = 10 * 1024
"""MiB that a bomb becomes, at most."""
_USUAL = 64
_ZEROS = b"\0" * MIB
_PAGE = page("packed") * 40


def _deflated(mib: int, wrapper: int) -> bytes:
    """So many MiB of zeros. A mebibyte is packed once and repeated, so that 10 GiB take no time either."""
    engine = zlib.compressobj(9, zlib.DEFLATED, wrapper)
    first = engine.compress(_ZEROS) + engine.flush(zlib.Z_FULL_FLUSH)
    again = engine.compress(_ZEROS) + engine.flush(zlib.Z_FULL_FLUSH)
    return first + again * (mib - 1)


def _gzip(mib: int) -> bytes:
    return _deflated(mib, 31)


def _zlib(mib: int) -> bytes:
    return _deflated(mib, 15)


def _raw(mib: int) -> bytes:
    return _deflated(mib, -15)


def _br(mib: int) -> bytes:
    engine = brotli.Compressor(quality=5)
    first = engine.process(_ZEROS) + engine.flush()
    again = engine.process(_ZEROS) + engine.flush()
    return bytes(first + again * (mib - 1))


_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_RLE_BLOCK = (128 * 1024 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
"""128 KiB of zeros in four bytes."""
_LAST_BLOCK = (1).to_bytes(3, "little")


def _zstd(mib: int) -> bytes:
    """One frame without a content size; window of 8 MiB, the largest that a server may ask for."""
    return _ZSTD_MAGIC + bytes([0x00, 13 << 3]) + _RLE_BLOCK * (8 * mib) + _LAST_BLOCK


def _zstd_sized(mib: int) -> bytes:
    """One frame that announces its size."""
    head = bytes([0xC0, 13 << 3]) + struct.pack("<Q", mib * MIB)
    return _ZSTD_MAGIC + head + _RLE_BLOCK * (8 * mib) + _LAST_BLOCK


def _zstd_window(mib: int) -> bytes:
    """A frame that asks for a window of 8 GiB."""
    return _ZSTD_MAGIC + bytes([0x00, 23 << 3]) + _RLE_BLOCK * (8 * mib) + _LAST_BLOCK


_MAKERS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "gzip": ("gzip", _gzip),
    "deflate": ("deflate", _zlib),
    "raw-deflate": ("deflate", _raw),
    "br": ("br", _br),
    "zstd": ("zstd", _zstd),
    "zstd-sized": ("zstd", _zstd_sized),
    "zstd-window": ("zstd", _zstd_window),
    "gzip-gzip": ("gzip, gzip", lambda mib: gzip.compress(_gzip(mib), 9)),
    "gzip-br": ("gzip, br", lambda mib: bytes(brotli.compress(_gzip(mib), quality=5))),
    "zstd-zstd": ("zstd, zstd", lambda mib: bytes(zstandard.ZstdCompressor().compress(_zstd(mib)))),
    "members": ("gzip", lambda mib: gzip.compress(_ZEROS, 9) * mib),
    "frames": ("zstd", lambda mib: _zstd(1) * mib),
}
KINDS = tuple(_MAKERS)


@lru_cache(maxsize=8)
def bomb(kind: str, mib: int) -> tuple[str, bytes]:
    """(Content-Encoding, body) of a bomb that becomes so many MiB."""
    header, make = _MAKERS[kind]
    return header, make(mib)


def _arm(kind: str) -> None:
    header = _MAKERS[kind][0]

    @bombs.add(kind, f"{header}; /bomb/{kind}/N becomes N MiB (default {_USUAL}, at most {LARGEST})")
    async def act(call: Call) -> None:
        mib = max(1, min(LARGEST, int(call.number(_USUAL))))
        encoding, body = bomb(kind, mib)
        await call.send(answer(body, "Content-Type: text/html", f"Content-Encoding: {encoding}"))


for _kind in _MAKERS:
    _arm(_kind)


def _encoded(name: str, about: str, encoding: str, body: bytes) -> None:
    packed.say(name, about, answer(body, "Content-Type: text/html", f"Content-Encoding: {encoding}"), stay=True)


_WHOLE = gzip.compress(_PAGE)
_encoded("gzip", "as it should be", "gzip", _WHOLE)
_encoded("plain", "declared gzip, is plain", "gzip", _PAGE)
_encoded("plain-br", "declared br, is plain", "br", _PAGE)
_encoded("plain-zstd", "declared zstd, is plain", "zstd", _PAGE)
_encoded("other", "declared gzip, is br", "gzip", bytes(brotli.compress(_PAGE)))
_encoded("truncated", "gzip that ends early", "gzip", _WHOLE[:-20])
_encoded("bad-crc", "gzip with a wrong sum", "gzip", _WHOLE[:-8] + b"\1" * 8)
_encoded("damaged", "gzip with a hole in the middle", "gzip", _WHOLE[:20] + b"\xff" * 20 + _WHOLE[40:])
_encoded("junk", "words after the gzip", "gzip", _WHOLE + b"and so on")
_encoded("unknown", "an unknown encoding", "pack200-gzip", _PAGE)
_encoded("chain", "gzip, fifty times", ", ".join(["gzip"] * 50), _WHOLE)
_encoded("members", "a thousand gzip members of one byte", "gzip", gzip.compress(b"x") * 1000)
_encoded("brackets", "an encoding that is not a token", "gzip; q=1, <script>", _PAGE)
packed.say("undeclared", "gzip without Content-Encoding", answer(_WHOLE, "Content-Type: text/html"), stay=True)
