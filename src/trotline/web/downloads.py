"""Records as a file: written by the exporter in a thread, sent in pieces as fast as the client takes them."""

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import CancelledError
from itertools import islice

from aiohttp import web

from trotline.commands.export import Wanted, export
from trotline.model.record_row import Row
from trotline.model.time import Seconds
from trotline.web.errors import LOG, Refused

AT_ONCE = 2
MOST_ROWS = 1_000_000
"""Of a download; more with `trotline export`."""
PIECE = 1 << 16
_WAITING = 8
"""Pieces that wait for the client: then the exporter waits, too."""
STALLED: Seconds = 30.0
"""A client that takes nothing for so long is dropped."""
CUT = "Trotline-Cut"
"""Header of a table that has only the first rows. JSON lines say it in their last line."""
MEDIA = {"jsonl": "application/x-ndjson", "csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


class Capped:
    """The first rows; knows whether there are more. Can be gone through more than once, as tables need it."""

    def __init__(self, rows: Iterable[Row], most: int) -> None:
        self._rows = rows
        self._most = most
        self.cut = False

    def __iter__(self) -> Iterator[Row]:
        found = iter(self._rows)
        yield from islice(found, self._most)
        self.cut = self.cut or next(found, None) is not None


class _Pipe(io.RawIOBase):
    """The exporter's file: what it writes goes to the event loop, which lets it wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(_WAITING)
        self._begun = bytearray()
        self._size = 0
        self._broken = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        piece = bytes(data)
        self._begun += piece
        self._size += len(piece)
        if len(self._begun) >= PIECE:
            self._send(bytes(self._begun))
            self._begun.clear()
        return len(piece)

    def end(self, error: BaseException | None = None) -> None:
        """Of the exporter's thread."""
        if self._begun and error is None:
            self._send(bytes(self._begun))
        self._send(error)

    def break_off(self) -> None:
        """The client has left: the exporter's next write fails, and nothing keeps it waiting."""
        self._broken = True
        while not self._queue.empty():
            self._queue.get_nowait()

    async def pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._queue.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    def _send(self, piece: bytes | BaseException | None) -> None:
        if self._broken:
            raise BrokenPipeError("the client has left")
        try:
            asyncio.run_coroutine_threadsafe(self._queue.put(piece), self._loop).result()
        except (CancelledError, RuntimeError) as error:
            raise BrokenPipeError("the server ends") from error


class Downloads:
    def __init__(self) -> None:
        self._running = 0

    async def send(self, request: web.Request, sink: str, wanted: Wanted, name: str, most: int) -> web.StreamResponse:
        if self._running >= AT_ONCE:
            raise Refused(
                503,
                f"{AT_ONCE} downloads are under way already",
                hint="Try again later.",
                headers={"Retry-After": "10"},
            )
        self._running += 1
        try:
            return await self._send(request, sink, wanted, name, most)
        finally:
            self._running -= 1

    async def _send(self, request: web.Request, sink: str, wanted: Wanted, name: str, most: int) -> web.StreamResponse:
        pipe = _Pipe(asyncio.get_running_loop())
        capped: list[Capped] = []

        def cap(rows: Iterable[Row]) -> Capped:
            capped.append(Capped(rows, most))
            return capped[-1]

        def work() -> None:
            try:
                export(sink, wanted, pipe, cap)  # type: ignore[arg-type]
                pipe.end()
            except BrokenPipeError:
                return
            except BaseException as error:
                _given_up(pipe, error)

        # A daemon: a database that does not answer must not keep the server from ending.
        threading.Thread(target=work, name="trotline-download", daemon=True).start()
        pieces = pipe.pieces()
        try:
            # Nothing is sent before the first piece: an error that comes first is still an error's answer.
            first = await anext(pieces, b"")
            response = web.StreamResponse(headers=_headers(wanted.form, name))
            if wanted.form != "jsonl" and capped and capped[0].cut:
                response.headers[CUT] = f"the first {most} rows; all of them: trotline export"
            await response.prepare(request)
            await _written(request, response, first)
            async for piece in pieces:
                await _written(request, response, piece)
            if wanted.form == "jsonl" and capped and capped[0].cut:
                await response.write(_cut_line(most))
            await response.write_eof()
            return response
        except ConnectionResetError:
            return web.Response(status=499)
        finally:
            pipe.break_off()


def _given_up(pipe: _Pipe, error: BaseException) -> None:
    try:
        pipe.end(error)
    except BrokenPipeError:
        LOG.debug("a download that nobody waits for has failed: %s", type(error).__name__)


def _headers(form: str, name: str) -> dict[str, str]:
    return {"Content-Type": MEDIA[form], "Content-Disposition": f'attachment; filename="{name}.{form}"'}


def _cut_line(most: int) -> bytes:
    return b'{"_trotline_cut": "the first %d rows; all of them: trotline export"}\n' % most


async def _written(request: web.Request, response: web.StreamResponse, piece: bytes) -> None:
    try:
        async with asyncio.timeout(STALLED):
            await response.write(piece)
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client takes nothing") from None
