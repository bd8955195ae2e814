"""The HTTP server: an application made from the route table, and its life from the first to the last connection."""

import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web

from trotline.errors import SettingsError
from trotline.model.time import Seconds
from trotline.web import request_security
from trotline.web.connections import Server
from trotline.web.dispatch import answering
from trotline.web.errors import Refused, json_answer, refusal
from trotline.web.forwarded_for import Trusted
from trotline.web.login_sessions import Who
from trotline.web.route_table import Role, Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trotline.web.server_state import Site

HEADERS_WITHIN: Seconds = 20.0
"""The headers of a later request have to be here by then; also how long an idle connection is kept."""
STOP_WITHIN: Seconds = 2.0
"""What is under way at Ctrl-C is given this long; streams end at once."""
_DRAIN_BODY: Seconds = 1.0
_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})


def application(site: "Site", routes: Sequence[Route]) -> web.Application:
    """ValueError if a route's path and its types differ."""
    hosts = request_security.Hosts(site.plan.host, site.plan.host_names)

    @web.middleware
    async def outermost(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            request_security.refuse_host(request, hosts)
            return await handler(request)
        except (Refused, web.HTTPException) as error:
            # Of the router: no such page, or not by this method.
            refused = refusal(error)
            if refused.status == 421 or request.path.startswith("/api/"):
                return json_answer(refused)
            return site.pages.error(request, Who(), refused)

    app = web.Application(middlewares=[outermost])
    app.on_response_prepare.append(request_security.add_headers)

    async def count(request: web.Request, response: web.StreamResponse) -> None:
        # Methods are what the client writes: only those that we know are counted by name.
        site.metrics.count(request.method if request.method in _METHODS else "other", response.status)

    app.on_response_prepare.append(count)
    for route in routes:
        _check(route)
        answer = answering(route, site)
        app.router.add_route(route.method, route.path, answer)
        if route.method == "GET":
            app.router.add_route("HEAD", route.path, answer)
    return app


def _check(route: Route) -> None:
    fields = route.takes.__struct_fields__
    if set(fields) != set(route.names):
        raise ValueError(f"{route.method} {route.path}: the path has {route.names}, its type has {fields}")
    if route.method != "GET" and route.role < Role.OPERATE and not route.path.startswith(("/login", "/logout")):
        raise ValueError(f"{route.method} {route.path} changes something, and needs the role operate")


class _Runner(web.AppRunner):
    def __init__(self, app: web.Application, trusted: Trusted, **more: Any) -> None:
        super().__init__(app, **more)
        self._trusted = trusted

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        options = {name: value for name, value in self._kwargs.items() if name != "handler_cancellation"}
        return Server(
            made.request_handler,
            trusted=self._trusted,
            request_factory=made.request_factory,
            handler_cancellation=True,
            **options,
        )


@asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, trusted: Trusted | None = None, *, or_any_port: bool = False
) -> "AsyncIterator[tuple[str, int]]":
    """Serve until the block ends; the address in use. `trusted`: reverse proxies. `or_any_port`: if it is taken."""
    runner = _Runner(
        app,
        trusted or Trusted(),
        shutdown_timeout=STOP_WITHIN,
        keepalive_timeout=HEADERS_WITHIN,
        lingering_time=_DRAIN_BODY,
        access_log=None,
        # Validation refuses compressed bodies: a few kilobytes can be gigabytes.
        auto_decompress=False,
        handler_cancellation=True,
    )
    await runner.setup()
    try:
        sock = _bound(host, port, or_any_port=or_any_port)
        await web.SockSite(runner, sock).start()
        found: tuple[Any, ...] = sock.getsockname()
        yield str(found[0]), int(found[1])
    finally:
        await runner.cleanup()


def _bound(host: str, port: int, *, or_any_port: bool = False) -> socket.socket:
    try:
        [(family, kind, proto, _, address), *_] = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sock = socket.socket(family, kind, proto)
    except OSError as error:
        raise SettingsError(f"--listen {host}: {error.strerror}", hint="Give an address of this machine.") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(128)
    except OSError as error:
        sock.close()
        if or_any_port and port and error.errno == errno.EADDRINUSE:
            return _bound(host, 0)
        raise SettingsError(
            f"{host}:{port} cannot be listened on: {error.strerror}",
            hint="Is another trotline web running? Give another port: --listen 127.0.0.1:8322 (0: any free one)",
        ) from error
    sock.setblocking(False)
    return sock
