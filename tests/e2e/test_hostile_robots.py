"""Hostile robots.txt files: healthy hosts are crawled all the same."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.raw_site import Site, fetcher, ok, site
from tests.e2e.running import call, rows_of

from trotline.adapters.http.robots import RobotsTxt
from trotline.model.limits import Limits

HALF = 200 * 1024
FILES = {
    "blanks after a name": b"user-agent" + b" " * 60_000 + b"\nDisallow: /x\n",
    "as many agents as rules": b"".join(b"user-agent:a%x\n" % number for number in range(HALF // 16))
    + b"".join(b"allow:/%x\n" % number for number in range(HALF // 11)),
}
SPIDER = """
from trotline import Limits, Page, Spider

site = Spider("site", pace="200/s", limits=Limits(parse=1.0))


@site.page(key="url", seeds={seeds})
def page(page: Page):
    yield {{"url": page.url}}
"""
RUN = ("run", "site.py", "--allow-private", "--json", "--slots", "4")


@pytest.fixture
async def hosts() -> AsyncIterator[Site]:
    """127.0.0.1 has a hostile robots.txt, 127.0.0.2 has none."""

    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        hostile = b"Host: 127.0.0.1:" in request
        if request.startswith(b"GET /robots.txt"):
            writer.write(ok(made.robots) if hostile else ok(status="404 Not Found"))
        else:
            writer.write(ok(b"<h1>tea</h1>", "Content-Type: text/html"))

    async with site(reply, hosts=2) as made:
        made.robots = FILES["blanks after a name"]  # type: ignore[attr-defined]
        yield made


def spider(there: Site, more: str = "") -> str:
    seeds = [there.url(f"/{name}", host) for host in ("127.0.0.1", "127.0.0.2") for name in "ab"]
    return more + SPIDER.format(seeds=seeds)


@pytest.mark.parametrize("name", FILES)
async def test_a_hostile_file_costs_nobody_a_page(hosts: Site, tmp_path: Path, name: str) -> None:
    hosts.robots = FILES[name]  # type: ignore[attr-defined]
    (tmp_path / "site.py").write_text(spider(hosts))
    ended = await call(tmp_path, *RUN)

    assert ended.code == 0, ended
    assert len(rows_of(tmp_path / "site.db")) == 4


async def test_a_file_that_never_lets_go_has_a_suspect_and_other_hosts_are_stored(hosts: Site, tmp_path: Path) -> None:
    hosts.robots = b"User-agent: *\nDisallow: /a\n"  # type: ignore[attr-defined]
    hang = "import protego\ndef hang(self, url, agent):\n    while True: pass\nprotego.Protego.can_fetch = hang\n"
    (tmp_path / "site.py").write_text(spider(hosts, hang))
    ended = await call(tmp_path, *RUN)

    assert ended.code == 3, ended
    assert ended.summary["reasons"] == {"killed: reading its robots.txt took longer than 1 s": 1}
    stored = {row["url"] for row in rows_of(tmp_path / "site.db")}
    assert stored == {hosts.url("/b"), hosts.url("/a", "127.0.0.2"), hosts.url("/b", "127.0.0.2")}


async def test_every_stretch_of_work_on_the_file_is_marked(hosts: Site) -> None:
    class Seen:
        entered = 0

        def __enter__(self) -> None:
            self.entered += 1

        def __exit__(self, *_: object) -> None:
            pass

    hosts.robots = b"User-agent: *\nDisallow: /a\n"  # type: ignore[attr-defined]
    marked = Seen()
    async with fetcher() as ours:
        robots = RobotsTxt(ours, agent="trotline", limits=Limits())
        await robots.ask(hosts.url("/b"), marked)
        assert marked.entered == 1, "reading it; /b shares nothing with its rules"
        await robots.ask(hosts.url("/a"), marked)
        assert marked.entered == 2, "asking the matcher"
