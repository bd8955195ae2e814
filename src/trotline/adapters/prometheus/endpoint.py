"""A small HTTP server for /metrics, /healthz and /readyz, on the event loop of the command.

Every client that reaches its port can read it, and may be hostile: connections are few, short, and closed after one
response.
"""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from trotline.errors import SettingsError
from trotline.rules import redaction

MOST_CONNECTIONS = 16
"""At once; more are closed without a response."""
LONGEST_CONNECTION = 5.0
"""Seconds: a client that has not sent its request by then is disconnected."""
_TEXT = "text/plain; charset=utf-8"
_QUIET = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

log = logging.getLogger("trotline.metrics")
# A client that sends garbage must not fill our log.
_client_errors = logging.getLogger("trotline.metrics.clients")
_client_errors.addHandler(logging.NullHandler())
_client_errors.propagate = False


@asynccontextmanager
async def serving(
    host: str, port: int, text: Callable[[], bytes], content_type: str, trouble: Callable[[], str] = str
) -> AsyncIterator[None]:
    """Serve while the block runs. `trouble`: why the process is not ready; empty if it is. SettingsError if the address
    cannot be used."""
    loop = asyncio.get_running_loop()
    pages = _Pages(text, content_type, trouble, only_local=ipaddress.ip_address(host).is_loopback)
    server = web.Server(pages.answer, access_log=None, keepalive_timeout=0.0, logger=_client_errors)

    def connect() -> asyncio.Protocol:
        if len(server.connections) >= MOST_CONNECTIONS:
            return _Refused()
        protocol = server()
        loop.call_later(LONGEST_CONNECTION, protocol.force_close)
        return protocol

    try:
        listening = await loop.create_server(connect, host, port)
    except OSError as error:
        raise SettingsError(
            f"metrics: cannot listen on {host}, port {port}: {error.strerror or error}",
            hint="Another process of this machine may use the port: give each its own with --metrics PORT.",
        ) from error
    where = f"[{host}]" if ":" in host else host
    log.info("metrics.listening http://%s:%d/metrics", where, port)
    try:
        yield
    finally:
        listening.close()
        await server.shutdown(1.0)


class _Refused(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _Pages:
    def __init__(
        self, text: Callable[[], bytes], content_type: str, trouble: Callable[[], str], *, only_local: bool
    ) -> None:
        self._trouble = trouble
        self._text = text
        self._content_type = content_type
        self._only_local = only_local

    async def answer(self, request: web.BaseRequest) -> web.Response:
        response = self._response(request)
        response.headers.update(_QUIET)
        response.force_close()
        return response

    def _response(self, request: web.BaseRequest) -> web.Response:
        if self._only_local and not _is_local(request.headers.get("Host", "")):
            # A web page that rebinds its own name to 127.0.0.1 must not read our figures.
            return _plain(421, "this address serves requests to localhost only")
        if request.path not in ("/metrics", "/healthz", "/readyz"):
            return _plain(404, "there is /metrics, /healthz and /readyz")
        if request.method != "GET":
            return _plain(405, "only GET is allowed", Allow="GET")
        if request.path == "/healthz":
            # Alive, also while a server is down: a restart would not help, and cost the visits in flight.
            return _plain(200, "ok")
        if request.path == "/readyz":
            trouble = " ".join(redaction.text(self._trouble()).split())
            return _plain(503, f"degraded: {trouble}") if trouble else _plain(200, "ok")
        try:
            body = self._text()
        except Exception:
            log.exception("metrics.failed")
            return _plain(500, "the metrics could not be rendered; see the log")
        return web.Response(body=body, headers={"Content-Type": self._content_type})


def _plain(status: int, text: str, **headers: str) -> web.Response:
    return web.Response(status=status, body=f"{text}\n".encode(), headers={"Content-Type": _TEXT, **headers})


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.removeprefix("[").removesuffix("]")
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
