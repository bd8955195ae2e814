"""Reading an answer: its head as we keep it, its body within the limits."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

from aiohttp import hdrs
from multidict import CIMultiDict, CIMultiDictProxy

from trotline.adapters.http.encodings import BadEncoding, OverLimit, codings, room_for, undo
from trotline.adapters.http.failures import Cut
from trotline.model.answer import CUT_SHORT, FailureKind
from trotline.model.limits import MIB, Limits
from trotline.rules.archived_codings import is_one_member

REDIRECT_BODY = 64 * 1024
"""A redirect's body is discarded up to this size, so that the connection can be reused."""

_LARGE = 256 * 1024
"""Larger bodies are decompressed in a thread: tens of MiB would block every other visit."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOTES = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


Pairs = tuple[tuple[str, str], ...]


class Content(Protocol):
    """The body, as it arrives."""

    async def readany(self) -> bytes:
        """At least one byte; none: the end."""
        ...

    def at_eof(self) -> bool: ...


class Response(Protocol):
    """The part of a client's response that is read here."""

    @property
    def method(self) -> str: ...
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> CIMultiDictProxy[str] | CIMultiDict[str]: ...
    @property
    def content(self) -> Content: ...
    def close(self) -> None:
        """Close the connection, unless the body is complete."""
        ...


class Body(NamedTuple):
    plain: bytes
    """Without its codings."""
    wire_bytes: int
    notes: tuple[str, ...] = ()
    wire: bytes = b""
    """As it came, if that is kept."""


def head(response: Response, limits: Limits) -> tuple[Pairs, tuple[str, ...]]:
    """The headers, names in lower case, and notes; `Cut` if their total size is over the limit."""
    pairs = tuple([(_lower(name), value) for name, value in response.headers.items()])
    size = sum([len(name) + len(value) for name, value in pairs])
    if size > limits.header_bytes:
        raise Cut(FailureKind.TOO_LARGE, f"head over the limit of {limits.header_bytes} bytes")
    values = "".join([value for _, value in pairs])
    return (pairs, ()) if values.isascii() and values.isprintable() else _cleaned(pairs)


def _cleaned(found: Pairs) -> tuple[Pairs, tuple[str, ...]]:
    """Non-ASCII bytes become text; headers with control characters are dropped, so that no log ever shows them."""
    pairs = tuple((name, _text(value.replace("\t", " "))) for name, value in found)
    kept = tuple(pair for pair in pairs if not _CONTROL.search(pair[1]))
    notes = tuple(f"header {name} dropped: control characters" for name, value in pairs if _CONTROL.search(value))
    return kept, notes[:_NOTES]


async def body(
    response: Response, limits: Limits, cut_at: int | None, turn: asyncio.Lock, *, keeps_gzip: bool = False
) -> Body:
    """With `cut_at` a longer body is truncated there; without it, a body over the limits is a `Cut`. Large bodies are
    decompressed one at a time, in `turn`: a worker with many slots must not hold as many bombs.

    `keeps_gzip`: its only coding is gzip, and what came is kept if it is one whole member.
    """
    if response.status in _REDIRECTS and hdrs.LOCATION in response.headers:
        wire = await _wire(response, limits, REDIRECT_BODY, cut=True)
        return Body(b"", len(wire))
    most = cut_at or limits.wire_body
    encoding = response.headers.get(hdrs.CONTENT_ENCODING)
    chain = codings(encoding, limits) if encoding is not None else []
    look = partial(_look, chain, limits, turn) if chain and cut_at is None else None
    wire = await _wire(response, limits, most, cut=cut_at is not None, look=look)
    notes: tuple[str, ...] = ()
    if len(wire) > most:
        wire, notes = wire[:most], (f"{CUT_SHORT} at {most} bytes",)
    if not chain or not wire:
        return Body(wire, len(wire), notes)
    room = room_for(len(wire), limits, cut_at)
    try:
        plain, odd = await (_undo_small if len(wire) <= _LARGE else _undo_large)(wire, chain, room, turn)
    except OverLimit as error:
        start = error.start(room if cut_at else 0)
        if cut_at is None:
            # Without its frames: they reference the decoder and its output.
            raise Cut(FailureKind.TOO_LARGE, error.why or _named_limit(room, limits)) from error.with_traceback(None)
        return Body(start, len(wire), (f"{CUT_SHORT} at {room} bytes",))
    is_kept = keeps_gzip and not notes and not odd and is_one_member(wire, len(plain))
    return Body(plain, len(wire), notes + odd, wire if is_kept else b"")


async def _undo_small(wire: bytes, chain: list[str], room: int, turn: asyncio.Lock) -> tuple[bytes, tuple[str, ...]]:
    """In the event loop; but output that may be large waits for the thread's turn."""
    if room > MIB and turn.locked():
        async with turn:
            return undo(wire, chain, room)
    return undo(wire, chain, room)


async def _undo_large(
    wire: bytes, chain: list[str], room: int, turn: asyncio.Lock, *, keep: bool = True
) -> tuple[bytes, tuple[str, ...]]:
    async with turn:
        undone = await asyncio.to_thread(_undo_quietly, wire, chain, room, keep)
    if isinstance(undone, Exception):
        try:
            raise undone
        finally:
            # The exception and its frame would be a reference cycle, and keep the bomb until it is collected.
            del undone
    return undone


async def _look(chain: list[str], limits: Limits, turn: asyncio.Lock, start: bytes) -> None:
    """`Cut` if the start of a large body is already over the limit: the rest is not downloaded."""
    try:
        await _undo_large(start, chain, limits.decoded_body, turn, keep=False)
    except OverLimit as error:
        error.start(0)
        raise Cut(FailureKind.TOO_LARGE, error.why or _named_limit(limits.decoded_body, limits)) from error
    except BadEncoding:
        # Handled when the body is complete: it may be uncompressed.
        return


def _undo_quietly(
    wire: bytes, chain: list[str], room: int, keep: bool
) -> tuple[bytes, tuple[str, ...]] | OverLimit | BadEncoding:
    """Returns exceptions: raised in a thread, they would be part of a reference cycle with its future."""
    try:
        return undo(wire, chain, room, keep=keep)
    except (OverLimit, BadEncoding) as error:
        return error.with_traceback(None)


async def _wire(
    response: Response,
    limits: Limits,
    most: int,
    *,
    cut: bool,
    look: Callable[[bytes], Awaitable[None]] | None = None,
) -> bytes:
    """The bytes on the wire; a little more than `most` if there are more and `cut` is set.

    `look` gets the start of a large body.
    """
    length = response.headers.get(hdrs.CONTENT_LENGTH)
    if length is not None and not cut and response.method != hdrs.METH_HEAD and int(length) > most:
        raise Cut(FailureKind.TOO_LARGE, f"body over {_size(most)} (announced)")
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
                raise Cut(FailureKind.TOO_LARGE, f"body over {_size(most)}")
            response.close()
            break
        if look is not None and size > _LARGE:
            await look(b"".join(chunks))
            look = None
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
    """A header value as UTF-8 if it is valid, else as Latin-1."""
    raw = value.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
