"""Pages of a session are read by the process that logged in, or not at all."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.fleet import Fleet, Servers
from tests.e2e.running import call, rows_of
from tests.e2e.small_site import serving

PAGES = 24
SPIDER = """
from trotline import Page, Spider

members = Spider("members", pace="300/s", concurrency=32)


@members.page(seeds=[{seeds}])
def login(page: Page):
    yield inside.task(page.url, form={{"user": page.session or "nobody"}}, session=page.session)


@members.page(key="name")
def inside(page: Page):
    yield {{"name": page.css("h1::text").get()}}
    for link in page.links("a"):
        yield inside.task(link, session=page.session)


{open}
"""
OPEN = """
@members.page(seeds=["{url}/open"])
def outside(page: Page):
    yield page.follow("a")
"""

FROM_OUTSIDE = """
from trotline import Page, Spider

members = Spider("members", pace="300/s", concurrency=100)


@members.page(seeds=lambda: [login.task("{url}/login/anna", session="anna", priority=1)])
def login(page: Page):
    yield inside.task(page.url, form={{"user": "anna"}}, session="anna", priority=1)


@members.page(key="name")
def inside(page: Page):
    yield {{"name": page.css("h1::text").get()}}


@members.page(seeds=["{url}/open"])
def outside(page: Page):
    yield page.follow("a")
    number = page.url.rpartition("/")[2]
    if number.isdigit():
        yield inside.task(f"{url}/club/anna/{{number}}", session="anna", priority=90)
"""
"""Pages that have no session lead to pages of one."""


class Club:
    """Whoever has logged in sees members' pages; strangers see a sign, and get 200 with it."""

    closed_until_login = False
    """Nothing outside leads to members' pages before somebody is one."""

    def __init__(self) -> None:
        self._members: dict[str, str] = {}
        self.logins = 0
        self._first_login = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path
        if path == "/robots.txt":
            return web.Response(status=404)
        if path.startswith("/login"):
            return await self._login(request)
        if path.startswith("/open/") and self.closed_until_login:
            await self._first_login.wait()
        if path.startswith("/open"):
            # Something to do for everybody, so that all processes ask for tasks.
            links = "".join(f'<a href="/open/{n}">{n}</a>' for n in range(60)) if path == "/open" else ""
            await asyncio.sleep(0.05)
            return web.Response(text=f"<p>open</p>{links}", content_type="text/html")
        user = self._members.get(request.cookies.get("member", ""))
        if user is None:
            return web.Response(text="<h1>members only</h1>", content_type="text/html")
        links = "".join(f'<a href="/club/{user}/{n}">{n}</a>' for n in range(PAGES)) if path == "/club" else ""
        return web.Response(text=f"<h1>{user} {path}</h1>{links}", content_type="text/html")

    async def _login(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.Response(text="<form></form>", content_type="text/html")
        self.logins += 1
        self._first_login.set()
        token = secrets.token_hex(8)
        self._members[token] = str((await request.post())["user"])
        answer = web.Response(status=303, headers={"Location": "/club"})
        answer.set_cookie("member", token)
        return answer


@pytest.fixture
async def club() -> AsyncIterator[tuple[Club, str]]:
    made = Club()
    async with serving(made.answer) as url:
        yield made, url


def written(folder: Path, url: str, *names: str) -> set[str]:
    """The spider's file; what it must store."""
    seeds = ", ".join(f'login.task("{url}/login/{name}"' + (f', session="{name}")' if name else ")") for name in names)
    text = SPIDER.format(seeds="", open=OPEN.format(url=url))
    text = text.replace("seeds=[]", f"seeds=lambda: [{seeds}]")
    (folder / "members.py").write_text(text)
    return {f"{name or 'nobody'} /club" for name in names} | {
        f"{name or 'nobody'} /club/{name or 'nobody'}/{n}" for name in names for n in range(PAGES)
    }


async def test_two_processes_never_read_a_members_page_as_strangers(tmp_path: Path, club: tuple[Club, str]):
    site, url = club
    wanted = written(tmp_path, url, "anna")
    words = ("run", "members.py", "--allow-private", "--processes", "2", "--slots", "4", "--json")

    ended = await call(tmp_path, *words)

    assert {row["name"] for row in rows_of(tmp_path / "members.db", "inside")} == wanted, ended.summary
    assert (site.logins, ended.summary["dead"]) == (1, 0)


async def test_a_login_without_a_name_stays_in_its_process_too(tmp_path: Path, club: tuple[Club, str], both: Servers):
    _, url = club
    wanted = written(tmp_path, url, "")
    frontier, _ = both.places()
    fleet = Fleet(tmp_path, frontier, f"sqlite:{tmp_path}/rows.db")
    try:
        assert (await fleet.call("start", "members.py", "--detach")).code == 0
        workers = [await fleet.start("work", "members.py", "--until-finished", "--slots", "4") for _ in range(2)]
        ends = await asyncio.gather(*(worker.end() for worker in workers))
        assert [end.code for end in ends] == [0, 0], ends
        assert {row["name"] for row in rows_of(tmp_path / "rows.db", "inside")} == wanted
    finally:
        await fleet.end()


@pytest.mark.parametrize("where", ["file", "server"])
async def test_pages_outside_of_a_session_may_lead_into_it_from_any_process(
    tmp_path: Path, club: tuple[Club, str], both: Servers, where: str
):
    made, url = club
    made.closed_until_login = True
    (tmp_path / "members.py").write_text(FROM_OUTSIDE.format(url=url))
    frontier = f"sqlite:{tmp_path}/frontier.db" if where == "file" else both.places()[0]
    # Slots for all pages that wait for the login, and for the login.
    words = ("run", "members.py", "--allow-private", "--processes", "2", "--slots", "40", "--frontier", frontier)

    ended = await call(tmp_path, *words, "--json")

    names = {row["name"] for row in rows_of(tmp_path / "members.db", "inside")}
    assert "members only" not in names
    assert (names, ended.summary["dead"]) == ({"anna /club", *(f"anna /club/anna/{n}" for n in range(60))}, 0)
