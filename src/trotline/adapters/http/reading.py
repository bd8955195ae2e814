"""Reading an answer: its head as we keep it, its body within the limits."""

import asyncio
from functools import lru_cache

import aiohttp
from aiohttp import hdrs

from trotline.adapters.http.encodings import OverLimit, codings, room_for, undo
from trotline.adapters.http.failures import Cut
from trotline.model.answer import Trouble
from trotline.model.limits import MIB, Limits

REDIRECT_BODY = 64 * 1024
"""Nobody reads the body of a redirect. This much is read over, so that the connection can be used again."""

_LARGE = 256 * 1024
"""Bodies beyond this are decompressed in a thread: tens of MiB would hold up every other visit."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def head(response: aiohttp.ClientResponse, limits: Limits) -> tuple[tuple[str, str], ...]:
    """The headers, names in lower case; `Cut` when all of them together are too much."""
    found = response.headers.items()
    pairs = tuple([(_lower(name), value if value.isascii() else _text(value)) for name, value in found])
    size = sum([len(name) + len(value) for name, value in pairs])
    if size > limits.header_bytes:
        raise Cut(Trouble.TOO_LARGE, f"head over the limit of {limits.header_bytes} bytes")
    return pairs


async def body(
    response: aiohttp.ClientResponse, limits: Limits, cut_at: int | None
) -> tuple[bytes, int, tuple[str, ...]]:
    """The body, the bytes it had on the wire, and what was odd.

    With `cut_at` a longer body is cut there; without it, a body over the limits is a `Cut`.
    """
    if response.status in _REDIRECTS and hdrs.LOCATION in response.headers:
        wire = await _wire(response, limits, REDIRECT_BODY, cut=True)
        return b"", len(wire), ()
    most = cut_at or limits.wire_body
    wire = await _wire(response, limits, most, cut=cut_at is not None)
    notes: tuple[str, ...] = ()
    if len(wire) > most:
        wire, notes = wire[:most], (f"body cut short at {most} bytes",)
    encoding = response.headers.get(hdrs.CONTENT_ENCODING)
    if encoding is None or not wire:
        return wire, len(wire), notes
    chain = codings(encoding, limits)
    room = cut_at or room_for(len(wire), limits)
    try:
        large = len(wire) > _LARGE
        plain, odd = await asyncio.to_thread(undo, wire, chain, room) if large else undo(wire, chain, room)
    except OverLimit as error:
        if cut_at is None:
            raise Cut(Trouble.TOO_LARGE, _named_limit(room, limits)) from error
        return error.start(cut_at), len(wire), (f"body cut short at {cut_at} bytes",)
    return plain, len(wire), notes + odd


async def _wire(response: aiohttp.ClientResponse, limits: Limits, most: int, *, cut: bool) -> bytes:
    """The bytes as they travel; a little more than `most` when there is more and a cut was asked for."""
    length = response.headers.get(hdrs.CONTENT_LENGTH)
    if length is not None and not cut and response.method != hdrs.METH_HEAD and int(length) > most:
        raise Cut(Trouble.TOO_LARGE, f"body of {length} bytes announced, the limit is {_size(most)}")
    content = response.content
    chunk = await content.readany()
    size = len(chunk)
    if content.at_eof() and size <= most:
        return chunk
    chunks = []
    while chunk:
        chunks.append(chunk)
        if size > most:
            if not cut:
                raise Cut(Trouble.TOO_LARGE, f"body over {_size(most)}")
            response.close()
            break
        chunk = await content.readany()
        size += len(chunk)
    return b"".join(chunks)


def _named_limit(room: int, limits: Limits) -> str:
    if room == limits.decoded_body:
        return f"decoded body over {_size(room)}"
    return f"body expands more than {limits.expansion}:1"


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB and count % MIB == 0 else f"{count} bytes"


@lru_cache(maxsize=1024)
def _lower(name: str) -> str:
    return str(name.lower())


def _text(value: str) -> str:
    """A header value of odd bytes, as UTF-8 if it is that, else as Latin-1; never half a character."""
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
