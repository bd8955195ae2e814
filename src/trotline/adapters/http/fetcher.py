"""The fetcher for plain HTTP, on aiohttp: one task, one hop, finite in every direction.

Optimized for few operations per page: headers are built once per session, the URL is taken as the gate
wrote it, an origin is checked once and cached, and phases are timed only with `timings`.
"""

import asyncio
import logging
import re
import ssl
import time
from collections import OrderedDict
from collections.abc import Collection, Coroutine, Mapping, Sequence
from copy import copy
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractCookieJar
from yarl import URL

from trotline.adapters.http import file_body, response_reader
from trotline.adapters.http.connections import Names, connector
from trotline.adapters.http.cookies import Jar, Jars
from trotline.adapters.http.failures import FETCH_ERRORS, Cut, HungUp, explain
from trotline.adapters.http.fast_path import FastPath, Reply
from trotline.adapters.http.guard import BoundedConnector, Forbidden, Guard
from trotline.adapters.http.proxy_dialer import ProxyDialer
from trotline.adapters.http.request_checks import checked, checked_of_task, places, why_not_origin
from trotline.adapters.http.timings import Stopwatch, trace
from trotline.errors import SettingsError
from trotline.model.account import StoredCookie
from trotline.model.answer import Answer, Failure, FailureKind, Timing
from trotline.model.limits import Limits
from trotline.model.proxy import ApiGateway, Proxy, ProxyMode, ProxyScheme, Way
from trotline.model.route_request import NO_COOKIES, RouteRequest
from trotline.model.secret import Secret
from trotline.model.stored_file import FILE_ROUTE, Files, StoredFile
from trotline.model.task import Task
from trotline.ports.file_store import FileStore
from trotline.rules import archived_codings, captive_pages, content_types
from trotline.rules.captive_runs import HOSTS, CaptiveRun, patience
from trotline.rules.provider_errors import provider_error
from trotline.rules.secret_scope import SecretScope
from trotline.rules.session_pinning import name_of

log = logging.getLogger("trotline.fetch")

T = TypeVar("T")

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
SESSIONS = 1_000
"""Cookie jars kept; the least recently used is evicted first."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that may be repeated although the server may have processed the first request."""
_KNOWN_ORIGINS = 10_000
_ORDINARY = RouteRequest()
_NOT_NORMALISED = re.compile(r"[^\x21-\x7e]|\\")


class _Response(aiohttp.ClientResponse):
    """Keeps the peer's address: the connection may be released before it is read."""

    target_address = ""

    def start(self, connection: Any) -> Coroutine[Any, Any, aiohttp.ClientResponse]:
        self.target_address = connection.protocol.target_address
        return super().start(connection)


class HttpFetcher:
    """Implements `ports.fetcher.Fetcher`. Make and use it inside one event loop; close it there."""

    def __init__(
        self,
        limits: Limits,
        *,
        user_agent: str,
        spider: str,
        headers: Mapping[str, str] = {},
        secret_headers: Mapping[str, Secret] = {},
        cookies: Mapping[str, str | Secret] = {},
        cookie_hosts: Collection[str] = (),
        secret_scope: SecretScope | None = None,
        allow_private: bool = False,
        allow: Collection[str] = (),
        slots: int = 64,
        types: Collection[str] = content_types.PAGES,
        tls: ssl.SSLContext | None = None,
        insecure_hosts: Collection[str] = (),
        proxy: Proxy | None = None,
        timings: bool = False,
        keeps_cookies: bool = True,
        routes: Mapping[str, RouteRequest] = {},
        files: Files | None = None,
        store: FileStore | None = None,
        keeps_wire: bool = False,
    ) -> None:
        """`cookies` go to `cookie_hosts` and their subdomains (to every host if none is given); `allow`: hosts and
        networks that may be private; content types not in `types` are dropped unread; `tls`: the trusted certificates;
        certificates are not verified for `insecure_hosts`; `routes`: what requests of some routes have of their own;
        `files`: which downloads are accepted; `store`: where they go; `keeps_wire`: answers have gzip-coded bodies as
        they came, too."""
        self.limits = limits
        self.spider = spider
        try:
            own = {"User-Agent": user_agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPT_ENCODING}
            self._headers = checked({**own, **headers})
            checked({name: value.reveal() for name, value in secret_headers.items()})
            for route in routes.values():
                checked(route.headers)
                checked({name: value.reveal() for name, value in route.secret_headers.items()})
        except Forbidden as error:
            raise SettingsError(error.why, hint="headers are single lines of printable characters") from error
        self._secret_headers = dict(secret_headers)
        self._secret_scope = secret_scope or SecretScope()
        self._reached: dict[str, bool] = {}
        """Origin -> whether it may get the secrets."""
        self._keeps_cookies = keeps_cookies
        self._routes = dict(routes)
        self._files = files
        self._store = store
        self._keeps_wire = keeps_wire
        self._dressed_routes = frozenset(n for n, one in routes.items() if one.headers or one.secret_headers)
        """Routes with headers of their own."""
        self._cookies = dict(cookies)
        self._cookie_hosts = [host.partition(":")[0] for host in cookie_hosts]
        self._guard = Guard(allow_private=allow_private, allow=places(allow))
        self._slots = slots
        self._types = content_types.read(types)
        self.tls = tls
        self._insecure = dict.fromkeys((host.lower() for host in insecure_hosts), False)
        """Hosts whose certificates are not verified -> whether that was logged."""
        self._names = Names(self._guard, limits, slots=slots)
        self.turn = asyncio.Lock()
        self._timings = timings
        self._jars = Jars(self._new_jar, SESSIONS)
        self._origins: dict[str, str] = {}
        """Origin -> why it is refused; empty if it is allowed."""
        self._fast_path = FastPath(self._headers)
        self._site_pages = captive_pages.SitePages()
        """Shared by all ways."""
        self._go_through(proxy)

    def checks_certificate(self, url: URL) -> bool:
        """False for the spider's `insecure_hosts`, which are logged."""
        host = url.raw_host or ""
        logged = self._insecure.get(host) if self._insecure and url.scheme == "https" else True
        if logged is False:
            self._insecure[host] = True
            log.warning("tls.unverified %s: certificate not verified (insecure_hosts)", host)
        return host not in self._insecure

    def _go_through(self, proxy: Proxy | None, level: int = logging.WARNING) -> None:
        """Set everything that belongs to one way out. `level`: of the log of its failures. Of a pool with a thousand
        proxies some always fail: they are counted, and those that are down are named in the summary."""
        total = None if proxy is None else proxy.total
        if total is not None:
            self.limits = msgspec.structs.replace(self.limits, total=total, first_byte=total)
        connect = self.limits.connect
        self._timeout = aiohttp.ClientTimeout(total=self.limits.total, connect=connect, sock_connect=connect)
        self.way = proxy
        self._level = level
        self.dialer = None if proxy is None else ProxyDialer(proxy, self.limits, self._guard, level)
        self._proxy = "" if proxy is None else proxy.public
        self._forwarder = _forwarder(proxy)
        self._captive = CaptiveRun()
        self._connector: BoundedConnector | None = None
        self._sessions: OrderedDict[str, aiohttp.ClientSession] = OrderedDict()

    def through(self, proxy: Proxy) -> Self:
        """A fetcher like this one through another proxy: with connections and cookies of its own; DNS answers, the
        guard and the cookies of named sessions are shared."""
        made = copy(self)
        made._go_through(proxy, logging.INFO)
        return made

    def to_gateway(self, gateway: ApiGateway) -> Self:
        """A fetcher for requests to an API gateway. The operator chose it: its address may be private. The spider's
        secrets and cookies are not for it, and cookies of one site must not reach another."""
        made = copy(self)
        made._guard = Guard(allow_private=True)
        made._names = Names(made._guard, self.limits, slots=self._slots)
        made._origins, made._secret_headers, made._keeps_cookies = {}, {}, False
        made._routes, made._dressed_routes, made._files, made._store = {}, frozenset(), None, None
        # The type is judged with the target's status.
        made._types = content_types.EVERYTHING
        if gateway.total is not None:
            made.limits = msgspec.structs.replace(self.limits, total=gateway.total, first_byte=gateway.total)
        made._go_through(None)
        made._proxy = gateway.public
        return made

    def dressed_as(self, headers: Mapping[str, str]) -> Self:
        """A fetcher like this one for another client (`adapters.browser_like`): with these headers instead of its own,
        and with connections and cookies of its own."""
        made = copy(self)
        made._headers = checked(headers)
        made._fast_path = FastPath(made._headers)
        made._go_through(self.way, self._level)
        return made

    async def fetch(self, task: Task, way: Way | None = None) -> Answer | Failure:
        """One hop. A page over the size limits is a Failure."""
        if way is not None and way != self.way:
            raise ValueError(f"this fetcher does not go out through {way}; use PooledFetcher")
        return await self._visit(task, None)

    async def fetch_start(self, task: Task, most: int, way: Way | None = None) -> Answer | Failure:
        """One hop; a body longer than `most` bytes is truncated, with a note."""
        if way is not None and way != self.way:
            raise ValueError(f"this fetcher does not go out through {way}; use PooledFetcher")
        return await self._visit(task, most)

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        """The jar of this session gets these cookies instead of its own."""
        self._jars.of(session).restore(cookies, time.time())

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        """The cookies of a session that was restored."""
        return self._jars.of(session).stored()

    async def vet(self, task: Task) -> Mapping[str, str]:
        """Check a task that another party will fetch, and answer the headers that it would get; raises an error that
        `explain` knows."""
        self._judged(task.url)
        await self._names.vet(URL(task.url, encoded=True))
        return self._own_headers(task)

    def jar(self, task: Task) -> AbstractCookieJar:
        """The cookies that a task sends."""
        return self._session(self._jar_name(task)).cookie_jar

    def _jar_name(self, task: Task) -> str:
        if task.session:
            return name_of(task.session)
        route = self._routes.get(task.route) if self._routes else None
        return "" if route is None else route.jar

    @property
    def guard(self) -> Guard:
        return self._guard

    @property
    def names(self) -> Names:
        """DNS answers that the guard has checked."""
        return self._names

    @property
    def idle(self) -> int:
        """Open connections that no visit uses."""
        return 0 if self._connector is None else self._connector.idle

    def close_idle(self) -> None:
        if self._connector is not None:
            self._connector.close_idle()

    async def close(self) -> None:
        """Close all connections. Fetches in flight become a Failure; fetching again is an error."""
        if self._connector is not None:
            await self._connector.close()

    async def _visit(self, task: Task, cut_at: int | None) -> Answer | Failure:
        watch = Stopwatch() if self._timings else None
        clock = asyncio.get_running_loop().time
        started = clock()
        response: _Response | Reply | None = None
        try:
            response = await self._ask(task, watch)
            headers, odd = response_reader.head(response, self.limits)
            is_file = self._files is not None and task.route == FILE_ROUTE
            if cut_at is None:
                self.check_type(response.status, response.headers.get("Content-Type", ""), is_file=is_file)
            file: StoredFile | None = None
            if is_file and self._store is not None and self._files is not None and 200 <= response.status < 300:
                saving = file_body.save(response, self.limits, self._files, self._store, self.turn)
                file, wire_bytes, notes = await saving
                body = wire = b""
            else:
                keeps_gzip = self._keeps_wire and cut_at is None and archived_codings.is_gzip(headers)
                reading = response_reader.body(response, self.limits, cut_at, self.turn, keeps_gzip=keeps_gzip)
                body, wire_bytes, notes, wire = await reading
            if self.dialer is not None and cut_at is None and task.url[:5] == "http:" and response.status < 400:
                self._check_captive(task.url, response, body)
        except FETCH_ERRORS as error:
            if response is not None:
                response.close()
            trouble, why = self._explain(error, task, "body" if response else "head")
            took = watch.timing() if watch else Timing(total=clock() - started)
            return Failure(url=task.url, trouble=trouble, why=why, proxy=self._proxy, timing=took)
        except BaseException:
            # Cancelled: the connection holds a partial answer and must not be reused.
            if response is not None:
                response.close()
            raise
        return Answer(
            url=task.url,
            status=response.status,
            headers=headers,
            body=body,
            wire=wire,
            wire_bytes=wire_bytes,
            address=response.target_address,
            proxy=self._proxy,
            http="1.0" if response.version == aiohttp.HttpVersion10 else "1.1",
            timing=watch.timing() if watch else Timing(total=clock() - started),
            notes=odd + notes if odd else notes,
            file=file,
        )

    async def _ask(self, task: Task, watch: Stopwatch | None) -> _Response | Reply:
        """Send the request and wait for the head of the answer."""
        origin, target = self._judged(task.url)
        session = self._session(self._jar_name(task))
        plain = task.method == "GET" and not (task.headers or task.body or self._secret_headers or watch)
        plain = plain and task.route not in self._dressed_routes
        if plain and target[:1] == "/" and "#" not in target and not len(session.cookie_jar):
            reply = await self._fast_path.ask(self._connections(), origin, target)
            if reply is not None:
                if cookies := reply.headers.getall("Set-Cookie", None):
                    session.cookie_jar.update_cookies_from_headers(cookies, URL(task.url, encoded=True))
                return reply
        return await self._ask_in_full(task, origin, session, watch)

    async def _ask_in_full(
        self, task: Task, origin: str, session: aiohttp.ClientSession, watch: Stopwatch | None
    ) -> _Response:
        url = URL(task.url, encoded=True)
        dressed = task.headers or self._secret_headers or task.route in self._dressed_routes
        headers = self._own_headers(task) if dressed else None
        forwarder = self._forwarder if url.scheme == "http" else None
        if forwarder is not None and self.dialer is not None:
            await self._names.vet(url)
            headers = {**(headers or {}), **self.dialer.login}
        checks = self.checks_certificate(url)
        response = await session.request(
            task.method,
            url,
            headers=headers,
            data=task.body or None,
            allow_redirects=False,
            trace_request_ctx=watch,
            proxy=forwarder,
            ssl=checks,
        )
        assert isinstance(response, _Response)  # noqa: S101 - for the type checker: the session makes no other
        if forwarder is None:
            self._fast_path.learn(origin, url, checks_certificate=checks)
        elif response.status >= 400 and self.dialer is not None:
            self._check_forwarded(response, self.dialer)
        return response

    def _check_forwarded(self, response: _Response, dialer: ProxyDialer) -> None:
        """An error answer to a forwarded request may be the proxy's own."""
        said = provider_error(response.headers.items())
        if response.status == 407:
            said = (FailureKind.PROXY, "authentication failed")
        if said is not None:
            response.close()
            dialer.refused(said[0], f"{said[1]} ({response.status})", str(response.url.raw_host))

    def _check_captive(self, url: str, response: _Response | Reply, body: bytes) -> None:
        host, now = urlsplit(url).hostname or "", asyncio.get_running_loop().time()
        page = captive_pages.page_of(host, response.status, response.headers.get("Location", ""), body)
        trouble, what = self._captive.judge(host, page, now) if response.status == 200 else None, f"{HOSTS} hosts"
        since = self._site_pages.captive_since(self.way, url, page, now)
        if trouble is None and since is not None:
            trouble, what = patience(now - since), f"{captive_pages.PATHS} paths of a host, and no other proxy does"
        if trouble is not None and self.dialer is not None:
            self.dialer.refused(trouble, f"answers with the same page for {what} (captive page)", host)

    def _explain(self, error: Exception, task: Task, phase: str) -> tuple[FailureKind, str]:
        if isinstance(error, HungUp):
            url = URL(task.url, encoded=True)
            self._connections().distrust(url.raw_host or "", url.port)
            if task.method not in SAFE:
                # It may have been processed: repeating it is the author's decision (`retries`).
                return FailureKind.PROTOCOL, "closed without an answer"
        return explain(error, phase, self.limits)

    def _judged(self, text: str) -> tuple[str, str]:
        """Origin and request target of a URL as the gate wrote it; raises `Forbidden`."""
        if _NOT_NORMALISED.search(text):
            raise Forbidden("the URL has characters that must be encoded")
        end = text.find("/", 8)
        origin = text if end < 0 else text[:end]
        why = self._origins.get(origin)
        if why is None:
            why = why_not_origin(URL(text, encoded=True), self._guard)
            if len(self._origins) >= _KNOWN_ORIGINS:
                self._origins.clear()
            self._origins[origin] = why
        if why:
            raise Forbidden(why)
        return origin, text[len(origin) :]

    def _own_headers(self, task: Task) -> Mapping[str, str]:
        """The task's headers, those of its route, and secret ones if the URL is one of the spider's own hosts."""
        given = checked_of_task(task.headers)
        route = self._routes.get(task.route, _ORDINARY)
        if route.headers:
            given = _under(route.headers, given)
        if not (self._secret_headers or route.secret_headers) or not self._may_have_secrets(task.url):
            return given
        secret = _under(self._secret_headers, route.secret_headers)
        return _under({name: value.reveal() for name, value in secret.items()}, given)

    def _may_have_secrets(self, url: str) -> bool:
        end = url.find("/", 8)
        origin = url if end < 0 else url[:end]
        known = self._reached.get(origin)
        if known is None:
            if len(self._reached) >= _KNOWN_ORIGINS:
                self._reached.clear()
            known = self._reached[origin] = self._secret_scope.admits(origin)
        return known

    def check_type(self, status: int, content_type: str, *, is_file: bool = False) -> None:
        """Raises `Cut` for an unwanted content type."""
        if 200 <= status < 300:
            types = self._files.types if is_file and self._files is not None else self._types
            kind = content_types.unwanted(content_type, types)
            if kind:
                raise Cut(FailureKind.TYPE, f"content type {kind!r} is not wanted")

    def _session(self, name: str) -> aiohttp.ClientSession:
        """The session of that name: cookies of its own, shared connections."""
        session = self._sessions.get(name)
        # Jars of routes are of one way out, like the default one.
        jar = self._jars.of(name) if name and name[0] != "\0" and self._keeps_cookies else None
        if session is not None and jar is not None and session.cookie_jar is not jar:
            self._retire(self._sessions.pop(name))
            session = None
        if session is None:
            session = self._sessions[name] = self._new_session(aiohttp.DummyCookieJar() if name == NO_COOKIES else jar)
            if len(self._sessions) > SESSIONS:
                self._retire(self._sessions.popitem(last=False)[1])
        elif len(self._sessions) > 1:
            self._sessions.move_to_end(name)
        return session

    def _retire(self, session: aiohttp.ClientSession) -> None:
        # Not at once: one of its visits may still be in flight, for at most this long.
        asyncio.get_running_loop().call_later(self.limits.total + 1, session.detach)

    def _new_jar(self) -> Jar:
        jar = Jar()
        if self._cookies:
            jar.give(self._cookies, self._cookie_hosts, secure=self._secret_scope.secure)
        return jar

    def _new_session(self, jar: AbstractCookieJar | None) -> aiohttp.ClientSession:
        if jar is None:
            jar = self._new_jar() if self._keeps_cookies else aiohttp.DummyCookieJar()
        session = aiohttp.ClientSession(
            connector=self._connections(),
            connector_owner=False,
            cookie_jar=jar,
            headers=self._headers,
            response_class=_Response,
            timeout=self._timeout,
            auto_decompress=False,
            max_line_size=self.limits.header_bytes,
            max_field_size=self.limits.header_bytes,
            max_headers=self.limits.header_fields,
            trace_configs=[trace()] if self._timings else None,
        )
        # aiohttp would repeat a request at once, ignoring the lane's pace, even after a partial answer.
        session._retry_connection = False
        return session

    def _connections(self) -> BoundedConnector:
        if self._connector is None:
            self._connector = connector(self.limits, self._names, slots=self._slots, tls=self.tls, dialer=self.dialer)
        return self._connector


def _under(headers: Mapping[str, T], other: Mapping[str, T]) -> dict[str, T]:
    """Both; those of `other` win, whatever the case of their names."""
    names = {name.lower() for name in other}
    return {**{name: value for name, value in headers.items() if name.lower() not in names}, **other}


def _forwarder(proxy: Proxy | None) -> URL | None:
    """The proxy for plain-http requests in absolute form; None: they go through a tunnel, or directly."""
    if proxy is None or proxy.mode is ProxyMode.ADDRESS or proxy.scheme is ProxyScheme.SOCKS5:
        return None
    return URL(f"http://{proxy.public}")
