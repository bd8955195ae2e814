"""Streams the body of a download into a file store: it is never in memory as a whole."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import hdrs

from trotline.adapters.http import response_reader
from trotline.adapters.http.failures import Cut
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits
from trotline.model.stored_file import Files, StoredFile
from trotline.ports.file_store import FileRefused, FileStore, FileWriter

_MIB = 1024 * 1024


async def save(
    response: response_reader.Response, limits: Limits, files: Files, store: FileStore, turn: asyncio.Lock
) -> tuple[StoredFile, int, tuple[str, ...]]:
    """The stored file, its bytes on the wire, and notes; `Cut` if it is too large, or not what is wanted."""
    length = response.headers.get(hdrs.CONTENT_LENGTH)
    if length is not None and int(length) > files.largest:
        raise Cut(FailureKind.TOO_LARGE, f"{_over(files.largest)} (announced)")
    with _explained():
        writer = store.begin()
    try:
        wire, notes = await _receive(response, limits, files, writer, turn)
        with _explained():
            return await writer.keep(response.headers.get(hdrs.CONTENT_TYPE, "")), wire, notes
    finally:
        writer.drop()


@contextmanager
def _explained() -> Iterator[None]:
    """Errors of the store, which are neither the site's fault nor the network's: the reason says so."""
    try:
        yield
    except FileRefused as error:
        raise Cut(FailureKind.TYPE, str(error)) from error
    except OSError as error:
        raise Cut(FailureKind.PROTOCOL, f"file cannot be stored: {error.strerror or error}") from error


async def _receive(
    response: response_reader.Response, limits: Limits, files: Files, writer: FileWriter, turn: asyncio.Lock
) -> tuple[int, tuple[str, ...]]:
    if response.headers.get(hdrs.CONTENT_ENCODING):
        # Compressed bodies are bounded like those of pages: what is small on the wire may be huge.
        body, wire, notes, _ = await response_reader.body(response, limits, None, turn)
        if len(body) > files.largest:
            raise Cut(FailureKind.TOO_LARGE, _over(files.largest))
        with _explained():
            writer.write(body)
        return wire, notes
    size = 0
    while chunk := await response.content.readany():
        size += len(chunk)
        if size > files.largest:
            raise Cut(FailureKind.TOO_LARGE, _over(files.largest))
        with _explained():
            writer.write(chunk)
    return size, ()


def _over(most: int) -> str:
    return (
        f"file over {most // _MIB} MiB (Files(largest))" if most >= _MIB else f"file over {most} bytes (Files(largest))"
    )
