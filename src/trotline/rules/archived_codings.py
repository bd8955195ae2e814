"""Which bodies are archived as they came: those that are gzip-coded, which every reader of WARC files undoes."""

import zlib
from collections.abc import Iterable

_START = 64 * 1024
"""Bytes of a body in which its first byte has to be: a head may be long, too."""


def is_gzip(headers: Iterable[tuple[str, str]]) -> bool:
    """Is gzip the only coding? Not under another name: warcio and others know this one."""
    return [value for name, value in headers if name == "content-encoding"] == ["gzip"]


def is_one_member(wire: bytes, size: int) -> bool:
    """Is it one gzip member and nothing else, if all of it decodes to so many bytes? The last four bytes of a member
    are its own size: of several members, or before zeros, they are another one; unless those before it are empty."""
    return 0 < size == int.from_bytes(wire[-4:], "little") and _begins(wire)


def _begins(wire: bytes) -> bool:
    """Has its first member a head that every reader accepts, and a content? isal, which decodes bodies, reads heads
    with reserved bits or a wrong checksum; zlib refuses them, and so do most readers of WARC files."""
    try:
        return zlib.decompressobj(31).decompress(wire[:_START], 1) != b""
    except zlib.error:
        return False
