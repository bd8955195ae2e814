"""A connection that enforces limits while it receives an answer.

aiohttp's parser bounds single lines. The rest is bounded here, where the bytes arrive: heads without end, many interim
answers, trailers, chunk framing, unsolicited answers, and slow answers. An ordinary page costs a few comparisons.
"""

import asyncio
from contextlib import suppress
from typing import Any

from aiohttp import ClientOSError, ClientPayloadError, HttpVersion10, HttpVersion11, ServerDisconnectedError
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import set_exception
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpParser
from aiohttp.streams import StreamReader

from trotline.adapters.http.failures import Cut, HungUp
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits
from trotline.model.time import Seconds
from trotline.ports import send_deadline

INTERIM = 10
"""1xx answers before the final one."""
_FRAMING = 8
"""Bytes of chunk framing per byte of body; chunks of one byte have six."""
_NOTHING: BaseException = RuntimeError("no cause")


class WatchedConnection(ResponseHandler):
    """A connection that closes itself when a limit is exceeded; its reader gets the `Cut`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits, watchdog: "Watchdog") -> None:
        super().__init__(loop)
        self.proxied_address: str | None = None
        """The target's address behind a proxy; "": only the proxy knows it; None: no proxy, the peer is the target."""
        self._peer = ""
        self._limits = limits
        self._watchdog = watchdog
        self._clock = loop.time
        self._params: dict[str, Any] = {}
        self._begun: list[bytes] | None = None
        """Segments of an incomplete head."""
        self._requests = 0
        self._touched = False
        """A byte of the answer to the current request was received."""
        self._asked: Seconds = 0.0
        """When the request was sent; 0: none was."""
        self._silent_since: Seconds = 0.0
        """When the request was sent, or the last interim answer received."""
        self._mark: tuple[Seconds, int] = (0.0, 0)
        """A time, and the bytes received until then: the start of the rate measurement."""
        self._received = 0
        self._interim = 0
        self._answered = False
        self._cut: Cut | None = None
        self._judge_beyond = 2 * limits.header_bytes

    @property
    def target_address(self) -> str:
        """The address of the target; empty if only a proxy knows it."""
        return self._peer if self.proxied_address is None else self.proxied_address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if peer else ""
        self._watchdog.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._watchdog.remove(self)
        super().connection_lost(exc)

    def set_response_params(self, **params: Any) -> None:
        """A request is about to be sent."""
        if send_deadline.has_passed():
            raise Cut(FailureKind.TIMEOUT, send_deadline.TOO_LATE)
        self._params = params
        self._asked = self._silent_since = self._clock()
        self._received = self._interim = 0
        self._answered = self._touched = False
        self._begun = None
        self._requests += 1
        super().set_response_params(**params)

    def ask(self, request: bytes) -> None:
        """Send another request with the parameters of the last one; `Watchdog` enforces its timeouts."""
        self.set_response_params(**{**self._params, "timer": None, "skip_payload": False})
        assert self.transport is not None  # noqa: S101 - for the type checker: the connection is open
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if data:
            if self._answered and (self._payload is None or self._payload.is_eof()):
                # Unsolicited: it would be taken for the answer to the next request.
                self._hang_up()
                return
            if not self._received:
                self._mark = (self._clock(), 0)
            if not self._answered:
                if self._begun is None:
                    self._begun = []
                self._begun.append(data)
            self._received += len(data)
            self._touched = True
        super().data_received(data)
        if self._answered:
            self._begun = None
        if self._received > self._limits.header_bytes:
            self._judge_size()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """A head is complete."""
        message = data[0]
        code = message.code
        if 100 <= code < 200 and code != 101:
            self._interim += 1
            # The time limits start anew for the final answer.
            self._silent_since, self._received = self._clock(), 0
            if self._interim > INTERIM:
                self.cut(Cut(FailureKind.PROTOCOL, f"more than {INTERIM} interim answers (1xx)"))
        elif self._answered:
            self._should_close = True
        elif code < 100 or message.version not in (HttpVersion11, HttpVersion10):
            version = f"HTTP/{message.version.major}.{message.version.minor}"
            self.cut(Cut(FailureKind.PROTOCOL, f"not HTTP: {version} with status {code:03d}"))
        else:
            self._answered = True
            super().feed_data(data, size)

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _NOTHING) -> None:
        if self._cut is not None and exc is not self._cut:
            return
        begun, self._begun = self._begun, None
        if begun is not None and isinstance(exc, HttpProcessingError) and self._whole_before_it_broke(b"".join(begun)):
            return
        if self._requests > 1 and not self._touched and isinstance(exc, ClientOSError | ServerDisconnectedError):
            exc = HungUp()
        payload = self._payload
        if payload is not None and self._answered and not payload.is_eof():
            # The parser notifies only readers of heads, not of bodies.
            set_exception(payload, exc if exc is self._cut else ClientPayloadError("broken body"), exc)
        if exc_cause is _NOTHING:
            super().set_exception(exc)
        else:
            super().set_exception(exc, exc_cause)

    def cut(self, why: Cut) -> None:
        """Stop reading, close, and raise `why` in the reader."""
        if self._cut is None:
            self._cut = why
            self.set_exception(why)
            self._hang_up()

    def judge_rate(self, now: Seconds, late: Seconds) -> None:
        """Called periodically. `late`: how long the event loop was blocked, which does not count against the site."""
        if not self._asked or self._cut is not None or self._complete():
            return
        limits = self._limits
        self._asked += late
        self._silent_since += late
        if now - self._asked > limits.total:
            what = "body not complete" if self._answered else "no answer"
            self.cut(Cut(FailureKind.TIMEOUT, f"{what} within {limits.total:g} s"))
            return
        if not self._received:
            if now - self._silent_since > limits.first_byte:
                self.cut(Cut(FailureKind.TIMEOUT, f"no answer within {limits.first_byte:g} s"))
            return
        since, before = self._mark
        since = now if self._reading_paused else since + late
        elapsed = now - since
        self._mark = (since, self._received if self._reading_paused else before)
        if elapsed < limits.slow_after:
            return
        if self._received - before < elapsed * limits.slowest:
            what = "body" if self._answered else "head"
            self.cut(Cut(FailureKind.TOO_SLOW, f"{what} under {limits.slowest} bytes a second for {elapsed:.2g} s"))
        self._mark = (now, self._received)

    def _complete(self) -> bool:
        return self._answered and (self._payload is None or self._payload.is_eof())

    def _judge_size(self) -> None:
        limits = self._limits
        if not self._answered:
            self.cut(Cut(FailureKind.TOO_LARGE, f"head over the limit of {limits.header_bytes} bytes"))
        elif self._received > self._judge_beyond and self._payload is not None:
            body = self._payload.total_bytes
            if self._received - body > self._judge_beyond + _FRAMING * body:
                self.cut(
                    Cut(FailureKind.TOO_LARGE, f"trailers and framing over the limit of {limits.header_bytes} bytes")
                )

    def _whole_before_it_broke(self, begun: bytes) -> bool:
        """Did invalid data follow a complete answer? Then the answer is used, and the connection closed."""
        if self._answered:
            return False
        super().set_response_params(**self._params)
        parser, self._parser = self._parser, None
        assert parser is not None  # noqa: S101 - it has just been made
        found = _first_answer(parser, begun)
        if found is None or not found[1].is_eof():
            return False
        self._payload = found[1]
        self._should_close = True
        self.feed_data(found)
        return True

    def _hang_up(self) -> None:
        self._should_close = True
        self._parser = None
        self._payload = None
        if self.transport is not None:
            self.transport.abort()


def _first_answer(parser: HttpParser[Any], begun: bytes) -> tuple[RawResponseMessage, StreamReader] | None:
    """The answer at the start of `begun`, after interim ones; head by head, as the data behind it may be invalid."""
    for _ in range(INTERIM + 1):
        end = begun.find(b"\r\n\r\n") + 4
        if end < 4:
            return None
        try:
            messages = parser.feed_data(begun[:end])[0]
        except Exception:  # the first parse has reported it
            return None
        begun = begun[end:]
        if messages and (messages[-1][0].code == 101 or not 100 <= messages[-1][0].code < 200):
            with suppress(Exception):
                parser.feed_data(begun)
            return messages[-1]
    return None


class Watchdog:
    """Checks every connection of a fetcher about once a second, while there are any."""

    def __init__(self, limits: Limits) -> None:
        self._every = min(1.0, limits.slow_after / 4, limits.first_byte / 4, limits.total / 4)
        self._connections: set[WatchedConnection] = set()
        self._next: asyncio.TimerHandle | None = None
        self._due: Seconds = 0.0

    def add(self, connection: WatchedConnection) -> None:
        self._connections.add(connection)
        if self._next is None:
            self._plan()

    def remove(self, connection: WatchedConnection) -> None:
        self._connections.discard(connection)
        if not self._connections and self._next is not None:
            self._next.cancel()
            self._next = None

    def _plan(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + self._every
        self._next = loop.call_at(self._due, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        late = max(0.0, now - self._due - self._every)
        for connection in list(self._connections):
            connection.judge_rate(now, late)
        self._next = None
        if self._connections:
            self._plan()
