"""Server-sent events: the newest snapshot of a job, or of all jobs, each second if it changed.

One computation a second per subject, whatever the number of viewers. There is no queue: a viewer that is slow gets the
newest snapshot when it can take one, and one that takes nothing for a while is dropped.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import web

from trotline.model.time import Seconds
from trotline.web.errors import Refused, problem, refusal
from trotline.web.login_sessions import Who
from trotline.web.route_table import SSE, Call, Role

EVERY: Seconds = 1.0
MOST_STREAMS = 200
"""In all."""
FOR_OPERATORS = 20
"""Of these: streams that those who may only look cannot take."""
MOST_OF_A_SESSION = 10
BLOCKED: Seconds = 10.0
"""A viewer that takes nothing for so long is dropped."""
LONGEST: Seconds = 15 * 60.0
"""Then a stream ends, and the browser opens another one."""
_ALIVE_EVERY: Seconds = 15.0
"""A comment, so that proxies keep the connection and a dead one is noticed."""
_LOOK_EVERY: Seconds = 5.0
_BUFFER = 1 << 14
"""Bytes that wait for a slow viewer, besides those of the operating system."""
_encode = msgspec.json.Encoder(enc_hook=str).encode

Compute = Callable[[], Awaitable[Any]]


class _Feed:
    """One subject: computed while somebody watches."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self.viewers = 0
        self.newest = b""
        self.version = 0
        self.changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def join(self) -> None:
        self.viewers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def leave(self) -> None:
        self.viewers -= 1
        if not self.viewers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while True:
            started = time.monotonic()
            self._show(await self._event())
            await asyncio.sleep(max(0.0, EVERY - (time.monotonic() - started)))

    async def _event(self) -> bytes:
        try:
            return _message("snapshot", await self._compute())
        except Exception as error:
            return _message("trouble", problem(refusal(error)))

    def _show(self, event: bytes) -> None:
        if event != self.newest:
            self.newest = event
            self.version += 1
            self.wake()

    def wake(self) -> None:
        """One event for all viewers: a task for each of them would cost more than all the rest."""
        self.changed.set()
        self.changed = asyncio.Event()


class Feeds:
    def __init__(self) -> None:
        self._feeds: dict[str, _Feed] = {}
        self._of_session: Counter[str] = Counter()
        self.streams = 0
        """Open ones."""
        self._closing = False

    def close(self) -> None:
        """Every stream ends at once."""
        self._closing = True
        for feed in self._feeds.values():
            feed.wake()

    async def stream(self, call: Call, subject: str, compute: Compute) -> web.StreamResponse:
        self._enter(call.who)
        feed = self._feeds.get(subject)
        if feed is None:
            feed = self._feeds[subject] = _Feed(compute)
        feed.join()
        try:
            response = await _begun(call.request)
            # A viewer that has left is no error; its connection is closed already.
            with suppress(ConnectionResetError):
                await self._send(call, response, feed)
            return response
        finally:
            feed.leave()
            if not feed.viewers and self._feeds.get(subject) is feed:
                del self._feeds[subject]
            self._leave(call.who.session)

    async def _send(self, call: Call, response: web.StreamResponse, feed: _Feed) -> None:
        written = time.monotonic()
        until, version = written + LONGEST, -1
        while not self._closing and time.monotonic() < until and _may_go_on(call):
            changed = feed.changed
            if feed.version != version and feed.newest:
                version = feed.version
                await _write(call.request, response, feed.newest)
                written = time.monotonic()
            elif time.monotonic() - written > _ALIVE_EVERY:
                await _write(call.request, response, b": alive\n\n")
                written = time.monotonic()
            # At most a few seconds: a session may have ended.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await changed.wait()

    def _enter(self, who: Who) -> None:
        session = who.session
        most = MOST_STREAMS if who.role is Role.OPERATE else MOST_STREAMS - FOR_OPERATORS
        if self.streams >= most:
            raise Refused(503, f"{most} streams are open already", hint="Close some, or poll instead.")
        if session and self._of_session[session] >= MOST_OF_A_SESSION:
            raise Refused(429, f"this session has {MOST_OF_A_SESSION} streams already", hint="Close a tab.")
        self.streams += 1
        self._of_session[session] += 1

    def _leave(self, session: str) -> None:
        self.streams -= 1
        self._of_session[session] -= 1
        if not self._of_session[session]:
            del self._of_session[session]


def _may_go_on(call: Call) -> bool:
    """A stream ends with its session."""
    return not call.who.session or call.site.access.sessions.lives(call.who.session)


async def _begun(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": SSE, "X-Accel-Buffering": "no"})
    response.force_close()
    await response.prepare(request)
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=_BUFFER)
    await response.write(b"retry: 2000\n\n")
    return response


async def _write(request: web.Request, response: web.StreamResponse, data: bytes) -> None:
    try:
        async with asyncio.timeout(BLOCKED):
            await response.write(data)
    except TimeoutError:
        if request.transport is not None:
            # Not close: that would wait until all is sent.
            request.transport.abort()
        raise ConnectionResetError("the viewer takes nothing") from None


def _message(name: str, data: Any) -> bytes:
    """JSON has no line breaks: one line of data."""
    return b"event: " + name.encode() + b"\ndata: " + _encode(data) + b"\n\n"
