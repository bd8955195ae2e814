"""A fetcher on the rack: what becomes of each fault, and that nothing is left behind."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest
from tests.e2e.torture.browser_differences import DIFFERENCES

from trotline.adapters.browser_like.fetcher import BrowserWays
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.rules.redirects import moved
from trotline.rules.verdicts import judge
from trotline.testing.torture import TortureServer
from trotline.testing.torture.certificates import Authority

FAST = Limits(first_byte=0.3, slow_after=0.3, total=20.0, connect=5.0)


class Seen(NamedTuple):
    """What came of one visit."""

    answer: Answer | Failure
    verdict: Verdict

    def failed(self, trouble: FailureKind, kind: Kind, *words: str) -> None:
        """There is no answer, for this reason, with these words."""
        assert isinstance(self.answer, Failure), self.answer
        assert (self.answer.trouble, self.verdict.kind) == (trouble, kind), self.answer
        assert [word for word in words if word not in self.answer.why] == [], self.answer.why
        assert self.answer.why.isprintable()
        assert len(self.answer.why) <= 200

    @property
    def page(self) -> Answer:
        assert isinstance(self.answer, Answer), self.answer
        return self.answer


class Rack:
    """Visits the torture server with fetchers of the test's choice."""

    def __init__(self, server: TortureServer, *, again: bool = False, trust: ssl.SSLContext | None = None) -> None:
        """`trust`: for the browser-like client, which is for https."""
        self.server = server
        self.browser = trust is not None
        self._trust = trust
        self.again = again
        """Is a connection to the host already open, with a good page behind it? Then the short way is taken."""
        # With the handshake, which counts here, and a thread of its own.
        self.limits = FAST if trust is None else msgspec.structs.replace(FAST, first_byte=1.5)
        self._fetchers: dict[str, HttpFetcher | BrowserWays] = {}
        self._plain: list[HttpFetcher] = []

    def fetcher(self, **options: object) -> HttpFetcher | BrowserWays:
        """One fetcher per set of options, kept for the test."""
        name = repr(sorted(options.items()))
        if name not in self._fetchers:
            own = {"user_agent": "test/1", "spider": "s", "allow_private": True, "tls": self._trust, **options}
            plain = HttpFetcher(self.limits, **own)
            self._plain.append(plain)
            self._fetchers[name] = BrowserWays(plain, options.get("headers", {})) if self.browser else plain
        return self._fetchers[name]

    def differs(self, path: str) -> bool:
        """Is this fault one of those that the browser-like client treats in another way?"""
        return self.browser and path in DIFFERENCES

    def task(self, path: str, host: str = "", **fields: object) -> Task:
        return Task(url=self.server.url(path, host), route="r", **fields)

    async def visit(self, path: str | Task, **options: object) -> Seen:
        """One hop."""
        task = self.task(path) if isinstance(path, str) else path
        if self.again:
            await self._open(task, **options)
        answer = await self.fetcher(**options).fetch(task)
        return Seen(answer, judge(task, answer, limits=self.limits, now=time.time()))

    async def _open(self, task: Task, **options: object) -> None:
        asked = len(self.server.requests)
        home = Task(url=self.server.url("/", urlsplit(task.url).hostname or ""), route="r", session=task.session)
        answer = await self.fetcher(**options).fetch_start(home, 1 << 20)
        if isinstance(answer, Failure) and answer.trouble is FailureKind.HUNG_UP:
            # As a worker does: the server closed the connection of the visit before.
            answer = await self.fetcher(**options).fetch_start(home, 1 << 20)
        assert isinstance(answer, Answer), answer
        # The tests count what they asked for themselves.
        del self.server.requests[asked:]

    async def follow(self, path: str | Task, **options: object) -> tuple[Task, Seen]:
        """Hop by hop, as a worker does, to the end."""
        task = self.task(path) if isinstance(path, str) else path
        while True:
            seen = await self.visit(task, **options)
            if seen.verdict.kind is not Kind.MOVED:
                return task, seen
            task = moved(task, seen.page.status, seen.verdict.location, "lane")

    async def close(self) -> None:
        for fetcher in (*self._fetchers.values(), *self._plain):
            await fetcher.close()


@pytest.fixture(scope="session")
def rack_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("rack"))


@pytest.fixture(params=["first", "again", "browser-first", "browser-again"])
async def rack(request: pytest.FixtureRequest, rack_authority: Authority) -> AsyncIterator[Rack]:
    """Every fault is met on a new connection and on one that is open, by the default client and by the browser-like one
    (over TLS). After each test: nobody is on the line any more, and no task of ours is left."""
    browser = request.param.startswith("browser")
    tls, trust = (rack_authority.server(), rack_authority.trust()) if browser else (None, None)
    async with TortureServer(hosts=("127.0.0.1", "127.0.0.2"), tls=tls) as server:
        made = Rack(server, again=request.param.endswith("again"), trust=trust)
        try:
            yield made
        finally:
            await made.close()
        async with asyncio.timeout(10):
            await server.quiet()
    assert asyncio.all_tasks() == {asyncio.current_task()}
