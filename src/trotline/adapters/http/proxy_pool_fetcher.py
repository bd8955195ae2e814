"""A fetcher for many ways out: direct, and through the members of proxy pools.

Each way has its connections and cookies, so that a site sees one client per way. DNS answers, the guard and the cookies
of named sessions are shared: a login is kept when the proxy changes. The number of ways and of idle connections is
bounded.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, Self

from trotline.adapters.http.api_gateway import GatewayFetcher
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.account import StoredCookie
from trotline.model.answer import Answer, Failure
from trotline.model.proxy import Proxy, Way
from trotline.model.task import Task

WAYS = 256
"""Ways kept open in a process; the least recently used is closed first, with its cookies."""

Visit = Coroutine[Any, Any, Answer | Failure]


class WayFetcher(Protocol):
    """Fetches through one way out."""

    def fetch(self, task: Task) -> Visit: ...
    def fetch_start(self, task: Task, most: int) -> Visit: ...
    @property
    def idle(self) -> int:
        """Open connections that no visit uses."""
        ...

    def close_idle(self) -> None: ...
    async def close(self) -> None: ...


class DirectFetcher(WayFetcher, Protocol):
    """The one without a way of a pool; it keeps the cookies of named sessions for all ways."""

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None: ...
    def cookies(self, session: str) -> tuple[StoredCookie, ...]: ...


class _Opened:
    """One way: its fetcher, visits in it, idle connections after the last one."""

    __slots__ = ("fetcher", "idle", "visits")

    def __init__(self, fetcher: WayFetcher) -> None:
        self.fetcher = fetcher
        self.visits = 0
        self.idle = 0


class PooledFetcher:
    """Implements `ports.fetcher.Fetcher`. Make and use it inside one event loop; close it there."""

    def __init__(
        self, direct: DirectFetcher, through: Callable[[Way], WayFetcher], *, most: int = WAYS, most_idle: int = 64
    ) -> None:
        """`through` makes the fetcher of another way. `most_idle`: connections over all ways that are kept for the next
        visit."""
        self._direct = direct
        self._through_way = through
        self._most = most
        self._most_idle = most_idle
        self._ways: OrderedDict[Way, _Opened] = OrderedDict()
        self._idle = 0
        self._closing: set[asyncio.Task[None]] = set()

    @classmethod
    def over(cls, direct: HttpFetcher, *, most: int = WAYS, most_idle: int = 64) -> Self:
        """The default client: proxies and API gateways."""

        def through(way: Way) -> WayFetcher:
            return direct.through(way) if isinstance(way, Proxy) else GatewayFetcher(way, direct)

        return cls(direct, through, most=most, most_idle=most_idle)

    # Not async: a direct fetch costs no second coroutine.
    def fetch(self, task: Task, way: Way | None = None) -> Visit:
        """One hop, through `way`; None: directly, or through the one proxy of the direct fetcher."""
        return self._direct.fetch(task) if way is None else self._through(way, task, None)

    def fetch_start(self, task: Task, most: int, way: Way | None = None) -> Visit:
        """One hop; a body longer than `most` bytes is truncated, with a note."""
        return self._direct.fetch_start(task, most) if way is None else self._through(way, task, most)

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        """The jar of this session gets these cookies instead of its own, whatever the way."""
        self._direct.restore_cookies(session, cookies)

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        """The cookies of a session that was restored."""
        return self._direct.cookies(session)

    async def close(self) -> None:
        """Close all connections. Fetches in flight become a Failure; fetching again is an error."""
        opened, self._ways = list(self._ways.values()), OrderedDict()
        await asyncio.gather(self._direct.close(), *(one.fetcher.close() for one in opened), *self._closing)

    async def _through(self, way: Way, task: Task, most: int | None) -> Answer | Failure:
        opened = self._open(way)
        opened.visits += 1
        try:
            if most is None:
                return await opened.fetcher.fetch(task)
            return await opened.fetcher.fetch_start(task, most)
        finally:
            opened.visits -= 1
            self._note_idle(opened)

    def _open(self, way: Way) -> _Opened:
        opened = self._ways.get(way)
        if opened is not None:
            self._ways.move_to_end(way)
            return opened
        opened = self._ways[way] = _Opened(self._through_way(way))
        if len(self._ways) > self._most:
            self._evict(opened)
        return opened

    def _evict(self, newest: _Opened) -> None:
        """Close the least recently used ways in which no visit is under way."""
        unused = (way for way, opened in self._ways.items() if not opened.visits and opened is not newest)
        over = len(self._ways) - self._most
        for way in [found for found, _ in zip(unused, range(over), strict=False)]:
            opened = self._ways.pop(way)
            self._idle -= opened.idle
            closing = asyncio.ensure_future(opened.fetcher.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _note_idle(self, opened: _Opened) -> None:
        idle = opened.fetcher.idle
        self._idle += idle - opened.idle
        opened.idle = idle
        if self._idle > self._most_idle:
            self._trim()

    def _trim(self) -> None:
        """Close idle connections of the least recently used ways. Counted anew: some have timed out meanwhile."""
        for opened in self._ways.values():
            opened.idle = opened.fetcher.idle
        self._idle = sum(opened.idle for opened in self._ways.values())
        for opened in self._ways.values():
            if self._idle <= self._most_idle:
                return
            if opened.idle:
                self._idle -= opened.idle
                opened.fetcher.close_idle()
                opened.idle = 0
