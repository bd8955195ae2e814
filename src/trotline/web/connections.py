"""Connections of the HTTP server: how many there may be, and which one ends when there are too many.

A client that opens hundreds and says nothing must not keep others out: room is made by closing the oldest idle
connection of the address that has the most.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from trotline.model.time import Seconds
from trotline.web import request_security
from trotline.web.errors import Refused, json_answer, refusal
from trotline.web.forwarded_for import Trusted

FIRST_WITHIN: Seconds = 10.0
"""The headers of the first request have to be here by then."""
MOST_CONNECTIONS = 600
"""At once. Below the usual limit of open files (1,024)."""
MOST_OF_AN_ADDRESS = 300
"""Trusted proxies may have as many as there are."""


class Server(web.Server):
    """Knows the connections of each address, the oldest first."""

    def __init__(self, *given: Any, trusted: Trusted, **more: Any) -> None:
        super().__init__(*given, **more)
        self.trusted = trusted
        self.by_address: dict[str, dict[Connection, None]] = {}

    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)

    def admits(self, new: "Connection") -> bool:
        """Make room for a new connection; False: all others are busy."""
        own = self.by_address.setdefault(new.address, {})
        own[new] = None
        if len(own) > MOST_OF_AN_ADDRESS and new.address not in self.trusted:
            return _ends_one(own, new)
        if len(self.connections) <= MOST_CONNECTIONS:
            return True
        most = max(self.by_address.values(), key=len)
        return _ends_one(most, new) or _ends_one(own, new)

    def forget(self, gone: "Connection") -> None:
        own = self.by_address.get(gone.address, {})
        own.pop(gone, None)
        if not own:
            self.by_address.pop(gone.address, None)


def _ends_one(connections: "dict[Connection, None]", new: "Connection") -> bool:
    idle = next((one for one in connections if one is not new and one.is_idle), None)
    if idle is None:
        return False
    idle.force_close()
    return True


class Connection(RequestHandler):
    """What is not HTTP gets a short answer with our headers, and no traceback in the log."""

    __slots__ = ("address",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._await_first()
        if isinstance(self._manager, Server) and not self._manager.admits(self):
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        if isinstance(self._manager, Server):
            self._manager.forget(self)
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """It waits for a request."""
        return not self._messages and (self._waiter is None or not self._waiter.done()) and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        return self._current_request is not None

    def _await_first(self) -> None:
        if self._keepalive_handle is not None and self._keepalive_timeout > FIRST_WITHIN:
            self._keepalive_handle.cancel()
            self._next_keepalive_close_time = self._loop.time() + FIRST_WITHIN
            check: Callable[[], None] = self._process_keepalive
            self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, check)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status == 500 and exc is not None:
            response = json_answer(refusal(exc))
        else:
            response = json_answer(Refused(status, "this is not a request that can be read"))
        request_security.harden(response.headers)
        response.force_close()
        return response
