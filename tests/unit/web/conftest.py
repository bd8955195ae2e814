"""A server in this process on a real socket, in front of a real job in a file."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from trotline.commands.web import WebPlan
from trotline.config import backends
from trotline.config.settings import Settings
from trotline.model.job import LaneRules
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.secret import Secret
from trotline.model.task import Task
from trotline.ports.backend import OpenJob
from trotline.rules.urls import fingerprint
from trotline.web.routes import ROUTES
from trotline.web.serve import made
from trotline.web.server import application, listening
from trotline.web.server_state import Site

VIEW = "view-" + "v" * 32
OPERATE = "operate-" + "o" * 32
EVIL = "<script>alert(1)</script>"
"""The name of a lane, a reason, a path: pages are hostile."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def what(self) -> str:
        return str(self.json["error"]["what"])


class Client:
    def __init__(self, url: str, site: Site, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.site = site
        self.session = session

    async def call(self, method: str, path: str, *, token: str = "", **options: Any) -> Answer:
        headers = dict(options.pop("headers", None) or {})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        options.setdefault("allow_redirects", False)
        async with self.session.request(method, self.url + path, headers=headers, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.call("POST", path, **({"json": {} if body is None else body} | options))


class Serving:
    """Starts servers; all of them end with the test."""

    def __init__(self, stack: list[Any]) -> None:
        self._stack = stack

    async def __call__(self, settings: Settings, *, host: str = "127.0.0.1", **plan: Any) -> Client:
        site = made(WebPlan(settings=settings, host=host, **plan))
        app = application(site, ROUTES)

        async def end_streams(_: Any) -> None:
            site.feeds.close()
            await site.seeding.close()

        app.on_shutdown.append(end_streams)
        context = listening(app, host, 0, site.access.trusted)
        _, port = await context.__aenter__()
        session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self._stack.append((context, session, site))
        return Client(f"http://127.0.0.1:{port}", site, session)


@pytest.fixture
async def serving() -> AsyncIterator[Serving]:
    stack: list[Any] = []
    yield Serving(stack)
    for context, session, site in stack:
        await session.close()
        await context.__aexit__(None, None, None)
        await site.index.close()


def task(path: str, host: str = "shop.example") -> Task:
    url = f"https://{host}/{path}"
    return Task(url=url, route="page", lane=host, fingerprint=fingerprint("page", url))


class Folder(NamedTuple):
    path: Path
    settings: Settings
    job: str


@pytest.fixture
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """One job with tasks that wait, one that is leased, one that is done, and a dead one whose texts are hostile."""
    monkeypatch.chdir(tmp_path)
    frontier = f"sqlite:{tmp_path}/frontier.db"
    jobs = await backends.open_jobs(frontier)
    job = await jobs.start("shop", LaneRules(), "")
    await jobs.close()
    opened = await backends.open_frontier(frontier, job)
    try:
        await _fill(opened)
    finally:
        await opened.close()
    return Folder(tmp_path, Settings(frontier=frontier, sink=f"sqlite:{tmp_path}/shop.db"), job.id)


async def _fill(opened: OpenJob) -> None:
    await opened.frontier.put([task("done"), task("dead", "dead.example"), task("leased", "leased.example")])
    await opened.frontier.beat("host-1.1")
    leases = await opened.frontier.lease("host-1.1", 3)
    for lease in leases:
        if "done" in lease.task.url:
            await opened.frontier.settle("host-1.1", [Settlement(lease, Done(), tallies={"records": 2})])
        elif "dead" in lease.task.url:
            await opened.frontier.settle("host-1.1", [Settlement(lease, Bury(f"broken: {EVIL}", detail=EVIL))])
    await opened.frontier.put([task(f"p/{number}") for number in range(5)])


@pytest.fixture
async def server(serving: Serving, folder: Folder) -> Client:
    """Without tokens, as on a laptop."""
    return await serving(folder.settings)


@pytest.fixture
async def guarded(serving: Serving, folder: Folder) -> Client:
    return await serving(folder.settings, view=Secret(VIEW), operate=Secret(OPERATE))
