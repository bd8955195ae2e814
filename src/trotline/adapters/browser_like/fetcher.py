"""The fetcher with a browser's TLS, HTTP/2 and headers: one way out, one identity.

Only https goes through the browser-like client. Plain http has no TLS to recognize: it goes through the default client
with the browser's headers, and with the same cookies.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import wreq
from wreq.http1 import Http1Options
from yarl import URL

from trotline.adapters.browser_like import errors
from trotline.adapters.browser_like.client_resources import ClientResources, runtime
from trotline.adapters.browser_like.profiles import profile_of
from trotline.adapters.browser_like.relay import Relay, Target
from trotline.adapters.browser_like.response_adapter import Reply
from trotline.adapters.browser_like.visit_timeouts import Watchdog
from trotline.adapters.http import response_reader
from trotline.adapters.http.connections import IDLE
from trotline.adapters.http.failures import FETCH_ERRORS, Cut, HungUp, explain
from trotline.adapters.http.fetcher import SAFE, HttpFetcher
from trotline.adapters.http.proxy_pool_fetcher import PooledFetcher, WayFetcher
from trotline.model.account import StoredCookie
from trotline.model.answer import Answer, Failure, FailureKind, Timing
from trotline.model.proxy import ApiGateway, Proxy, Way
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports import send_deadline

METHODS = {
    method: getattr(wreq.Method, method) for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
}
NO_GATEWAY = (
    'client="browser" does not work through an API gateway, which fetches the page itself: '
    'use client="plain" for the routes of this pool'
)
IDLE_PER_HOST = 8
"""Over HTTP/2 a host has one connection."""
_OF_THE_BROWSER = frozenset({"user-agent", "accept-encoding"})
"""Headers of the spider that are for the default client: the browser sends its own."""


class BrowserFetcher:
    """Fetches through one way out. Make and use it inside one event loop; close it there."""

    def __init__(self, plain: HttpFetcher, shared: ClientResources, headers: Mapping[str, str], slots: int) -> None:
        """`plain`: the default client of this way, for its limits, checks and proxy. `headers`: the spider's own."""
        self.limits = plain.limits
        self._plain = plain
        self._shared = shared
        self._headers = {name: value for name, value in headers.items() if name.lower() not in _OF_THE_BROWSER}
        self._slots = slots
        self._profile = profile_of(plain.way, plain.spider)
        self._relay = Relay(plain.names, plain.limits, plain.dialer)
        self._proxy = "" if plain.way is None else plain.way.public
        self._opening = asyncio.Lock()
        self._path = ""
        """Of the relay's socket; empty: it does not listen yet."""
        self._order: tuple[str, ...] = ()
        """Of the headers."""
        self._clients: dict[bool, wreq.Client] = {}
        """Certificates verified -> the client."""
        self._http: HttpFetcher | None = None

    def through(self, way: Way) -> WayFetcher:
        """The same through another proxy: with connections, cookies and a profile of its own."""
        if isinstance(way, ApiGateway):
            return _NoGateway(way)
        return BrowserFetcher(self._plain.through(way), self._shared, self._headers, self._slots)

    async def fetch(self, task: Task) -> Answer | Failure:
        """One hop. A page over the size limits is a Failure."""
        return await self._visit(task, None)

    async def fetch_start(self, task: Task, most: int) -> Answer | Failure:
        """One hop; a body longer than `most` bytes is truncated, with a note."""
        return await self._visit(task, most)

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        self._plain.restore_cookies(session, cookies)

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        return self._plain.cookies(session)

    @property
    def idle(self) -> int:
        """Open connections that no visit uses."""
        http = 0 if self._http is None else self._http.idle
        return http + max(0, self._relay.tunnels - self._relay.visits)

    def close_idle(self) -> None:
        if not self._relay.visits:
            self._relay.close_tunnels()
        if self._http is not None:
            self._http.close_idle()

    async def close(self) -> None:
        """Close all connections. Fetches in flight become a Failure; fetching again is an error."""
        await self._relay.close()
        if self._http is not None:
            await self._http.close()

    async def _visit(self, task: Task, cut_at: int | None) -> Answer | Failure:
        http = self._http or await self._open()
        if task.url[:5] == "http:":
            return await (http.fetch(task) if cut_at is None else http.fetch_start(task, cut_at))
        return await self._visit_https(task, cut_at, http)

    async def _visit_https(self, task: Task, cut_at: int | None, http: HttpFetcher) -> Answer | Failure:
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            # Before the URL is parsed: it refuses what is not one.
            given = await http.vet(task)
        except FETCH_ERRORS as error:
            return self._failure(task, *explain(error, "head", self.limits), clock() - started)
        url = URL(task.url, encoded=True)
        target = ((url.raw_host or "").lower(), url.port or 0)
        watchdog = Watchdog(self.limits, started, lambda: self._asked(target, started))
        reply: Reply | None = None
        head_at = 0.0
        try:
            async with watchdog:
                with self._relay.visiting(target):
                    reply = await self._ask(task, {**self._headers, **given}, url, target, http, watchdog)
                    head_at = clock()
                    headers, odd = response_reader.head(reply, self.limits)
                    if len(headers) > self.limits.header_fields:
                        raise Cut(FailureKind.TOO_LARGE, f"head with more than {self.limits.header_fields} fields")
                    if cut_at is None:
                        http.check_type(reply.status, reply.headers.get("Content-Type", ""))
                    body, wire_bytes, notes, _ = await response_reader.body(reply, self.limits, cut_at, http.turn)
        except FETCH_ERRORS as error:
            if reply is not None:
                reply.close()
            trouble, why = explain(watchdog.cut or error, "body" if reply else "head", self.limits)
            return self._failure(task, trouble, why, clock() - started)
        except BaseException:
            if reply is not None:
                reply.close()
            raise
        now = clock()
        return Answer(
            url=task.url,
            status=reply.status,
            headers=headers,
            body=body,
            wire_bytes=wire_bytes,
            address=self._relay.address(target),
            proxy=self._proxy,
            http=reply.http,
            timing=Timing(first_byte=head_at - started, body=now - head_at, total=now - started),
            notes=odd + notes if odd else notes,
        )

    def _failure(self, task: Task, trouble: FailureKind, why: str, took: Seconds) -> Failure:
        return Failure(url=task.url, trouble=trouble, why=why, proxy=self._proxy, timing=Timing(total=took))

    async def _ask(
        self,
        task: Task,
        headers: dict[str, str],
        url: URL,
        target: Target,
        http: HttpFetcher,
        watchdog: Watchdog,
    ) -> Reply:
        """Send the request and wait for the head of the answer."""
        method = METHODS.get(task.method)
        if method is None:
            raise Cut(FailureKind.GUARD, f'the browser-like client has no method {task.method}; use client="plain"')
        jar = http.jar(task)
        options: dict[str, Any] = {"headers": headers}
        if cookies := _cookies(headers, jar.filter_cookies(url)):
            options["cookies"] = cookies
        if task.body:
            options["body"] = task.body
        client = self._client(verify=http.checks_certificate(url))
        if send_deadline.has_passed():
            raise Cut(FailureKind.TIMEOUT, send_deadline.TOO_LATE)
        try:
            response = await client.request(method, task.url, **options)
        except errors.CLIENT_ERRORS as error:
            raise self._why_no_answer(error, task, target, watchdog.started) from error
        watchdog.answered()
        reply = Reply(response, task.method, self.limits, watchdog)
        if found := reply.headers.getall("Set-Cookie", None):
            jar.update_cookies_from_headers(found, url)
        return reply

    def _why_no_answer(self, error: Exception, task: Task, target: Target, started: Seconds) -> Exception:
        if failure := self._relay.failure(target, started):
            return failure
        cut = errors.of_head(error, self.limits)
        if cut.why == errors.NO_ANSWER and task.method in SAFE and self._relay.is_unanswered(target, started):
            return HungUp()
        return cut

    def _asked(self, target: Target, started: Seconds) -> Seconds | None:
        """Since when the answer is awaited; None: a tunnel to the target is being opened."""
        opened = self._relay.opened(target, started)
        return None if opened is None and self._relay.is_dialling(target) else opened or started

    async def _open(self) -> HttpFetcher:
        """Start the relay, with the first visit."""
        async with self._opening:
            if self._http is None:
                if not self._path:
                    path = self._shared.folder.socket_path()
                    await self._relay.listen(path)
                    self._path = str(path)
                own = await self._shared.header_set(self._profile, self._new_client(verify=True), self._relay)
                self._order = own.order
                given = {name.title(): value for name, value in self._headers.items()}
                self._http = self._plain.dressed_as({**own.over_http, **given})
        return self._http

    def _client(self, *, verify: bool) -> wreq.Client:
        client = self._clients.get(verify)
        if client is None:
            client = self._clients[verify] = self._new_client(verify=verify)
        return client

    def _new_client(self, *, verify: bool) -> wreq.Client:
        limits, way = self.limits, self._plain.way
        alone = isinstance(way, Proxy) and way.one_request_per_tunnel
        return wreq.Client(
            runtime=runtime(),
            emulation=self._profile.emulation(),
            orig_headers=list(self._order),
            proxies=[wreq.Proxy.unix(self._path)],
            tls_verify=self._shared.trusted if verify else False,
            tls_verify_hostname=verify,
            redirect=wreq.redirect.Policy.none(),
            connect_timeout=timedelta(seconds=limits.connect),
            pool_idle_timeout=timedelta(seconds=IDLE),
            pool_max_idle_per_host=0 if alone else IDLE_PER_HOST,
            # Hosts with idle connections; the least recently used is dropped.
            pool_max_size=self._slots,
            http1_options=Http1Options(max_headers=limits.header_fields, max_buf_size=max(8192, limits.header_bytes)),
            # The limits of expansion are ours.
            gzip=False,
            brotli=False,
            deflate=False,
            zstd=False,
        )


class _NoGateway:
    """In place of a fetcher through an API gateway."""

    idle = 0

    def __init__(self, gateway: ApiGateway) -> None:
        self._proxy = gateway.public

    async def fetch(self, task: Task) -> Answer | Failure:
        return Failure(url=task.url, trouble=FailureKind.GUARD, why=NO_GATEWAY, proxy=self._proxy)

    async def fetch_start(self, task: Task, most: int) -> Answer | Failure:
        return await self.fetch(task)

    def close_idle(self) -> None:
        """There are none."""

    async def close(self) -> None:
        """Nothing is open."""


class BrowserWays(PooledFetcher):
    """Implements `ports.fetcher.Fetcher`: direct, and through the proxies of pools."""

    def __init__(self, plain: HttpFetcher, headers: Mapping[str, str], *, slots: int = 64, **bounds: int) -> None:
        """`plain`: the default client; it is not closed with this one."""
        self._shared = ClientResources(plain.tls)
        direct = BrowserFetcher(plain, self._shared, headers, slots)
        super().__init__(direct, direct.through, **bounds)

    async def close(self) -> None:
        await super().close()
        self._shared.folder.close()


def _cookies(headers: dict[str, str], found: Any) -> str:
    """The Cookie header: the task's own, taken out of `headers`, and those of the jar."""
    given = [headers.pop(name) for name in list(headers) if name.lower() == "cookie"]
    return "; ".join([*given, *(f"{name}={morsel.coded_value}" for name, morsel in found.items())])
