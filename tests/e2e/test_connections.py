"""What a worker keeps of hosts that it visited: few connections, few names, and none for ever."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench.hosts import ManyHosts, addresses, build
from tests.e2e.raw_site import fetcher, ok, site, task
from tests.e2e.running import start

from trotline.adapters.http import connections, resolver
from trotline.adapters.http.guard import Guard
from trotline.model.answer import Answer

CLOSES = ok(b"<p>hello</p>", "Connection: close")
KEEPS = ok(b"<p>hello</p>")


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the system was really asked for a name."""
    asked: Counter[str] = Counter()
    look_up = resolver._look_up

    def counted(host: str, port: int, family: int) -> list[Any]:
        asked[host] += 1
        return look_up(host, port, family)

    monkeypatch.setattr(resolver, "_look_up", counted)
    return asked


async def test_a_name_is_not_looked_up_for_every_page_and_what_is_dialled_is_judged_every_time(
    lookups: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []
    look = Guard.look

    def watched(self: Guard, address: str, port: int) -> None:
        judged.append(address)
        look(self, address, port)

    monkeypatch.setattr(Guard, "look", watched)
    async with site(CLOSES) as there, fetcher() as ours:
        for number in range(20):
            assert isinstance(await ours.fetch(task(there.url(f"/{number}", host="localhost"))), Answer)
        assert there.connections == 20, "each page has a connection of its own here"
    assert lookups == {"localhost": 1}
    assert judged.count("127.0.0.1") == 20


async def test_many_who_need_a_name_at_once_ask_for_it_once(lookups: Counter[str]) -> None:
    async with site(CLOSES) as there, fetcher() as ours:
        await asyncio.gather(*(ours.fetch(task(there.url(f"/{number}", host="localhost"))) for number in range(20)))
    assert lookups == {"localhost": 1}


async def test_an_answer_that_is_too_old_is_asked_for_again(
    lookups: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "DNS_CACHE", 0.0)
    async with site(CLOSES) as there, fetcher() as ours:
        for number in range(3):
            await ours.fetch(task(there.url(f"/{number}", host="localhost")))
    assert lookups == {"localhost": 3}


async def test_names_beyond_the_bound_are_forgotten(lookups: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "DNS_NAMES", 1)
    # Kept by name and port.
    async with site(CLOSES) as one, site(CLOSES) as two, fetcher() as ours:
        for there in (one, two, one):
            await ours.fetch(task(there.url("/", host="localhost")))
    assert lookups == {"localhost": 3}


async def test_idle_connections_are_bounded_however_many_hosts_there_are() -> None:
    async with site(KEEPS, hosts=40) as there, fetcher(slots=8) as ours:
        for number in range(40):
            assert isinstance(await ours.fetch(task(there.url("/", host=f"127.0.0.{number + 1}"))), Answer)
        assert _idle(ours) == 8
        # The ones that were used last are kept.
        await ours.fetch(task(there.url("/", host="127.0.0.40")))
        assert there.connections == 40


async def test_idle_connections_are_bounded_where_hosts_have_several() -> None:
    async with site(KEEPS, hosts=4) as there, fetcher(slots=8) as ours:
        for host in range(4):
            await asyncio.gather(*(ours.fetch(task(there.url("/", host=f"127.0.0.{host + 1}"))) for _ in range(6)))
            assert _idle(ours) <= 8


def _idle(ours: Any) -> int:
    return sum(map(len, ours._connector._conns.values()))


SPIDER = """
import os

from trotline import Page, Spider

hosts = Spider("hosts", pace="50/s")

@hosts.page(key="url", seeds=[f"http://{host}:{os.environ['PORT']}/0.html" for host in os.environ["HOSTS"].split(",")])
def page(page: Page):
    yield {"url": page.url}
"""
HOSTS = 600
SLOTS = 16


async def test_the_sockets_of_a_child_stay_few_in_a_crawl_of_many_hosts(tmp_path: Path) -> None:
    (tmp_path / "hosts.py").write_text(SPIDER)
    web = ManyHosts(build(tmp_path / "site", 1), tmp_path / "server")
    web.hosts = addresses(HOSTS)
    with web:
        env = {"PORT": str(web.port), "HOSTS": ",".join(web.hosts), "TROTLINE_ALLOW_PRIVATE": "yes"}
        running = await start(
            tmp_path, "run", "hosts.py", "--slots", str(SLOTS), "--quiet", "--out", "r.jsonl", env=env
        )
        most = 0
        ending = asyncio.create_task(running.end())
        while not ending.done():
            most = max([most, *map(_sockets, running.children())])
            await asyncio.wait([ending], timeout=0.05)
        ended = await ending
    assert ended.code == 0, ended
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == HOSTS
    assert 0 < most <= 2 * SLOTS + 100


def _sockets(pid: int) -> int:
    found = 0
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            found += str(descriptor.readlink()).startswith("socket:")
    except OSError:
        # Gone, or closed meanwhile.
        return found
    return found
