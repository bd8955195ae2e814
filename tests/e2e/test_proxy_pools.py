"""Proxy pools with real processes: a site that bans by address sees every request, and its log is the judge."""

import asyncio
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.e2e.fleet import Fleet, Servers
from tests.e2e.proxied import used_while_banned, world
from tests.e2e.running import Ended, call, rows_of

from trotline.testing.ban_site import BanRules

GENEROUS = BanRules(rate=1000.0, burst=1000.0, ban_for=600.0)


async def run(folder: Path, *words: str) -> Ended:
    return await call(folder, "run", "site.py", "--allow-private", "--proxies", "proxies.toml", *words)


async def test_a_pace_per_proxy_uses_what_the_site_allows_and_is_never_banned(tmp_path: Path) -> None:
    allowed = BanRules(rate=12.0, burst=4.0, ban_after=1, ban_for=600.0)
    async with world(allowed, pages=240, proxies=6) as sites:
        sites.write(tmp_path, pace="10/s per proxy")

        ended = await run(tmp_path)

        [site] = sites.sites
        assert ended.code == 0, ended
        assert len(rows_of(tmp_path / "site.db")) == 240
        assert site.statuses() == {200: 241}, "no 429, no ban"
        turns = Counter(site.addresses())
        assert set(turns) == set(sites.addresses), "each leaves from its own address"
        assert max(turns.values()) - min(turns.values()) <= 2, f"equal turns: {turns}"


async def test_a_banned_proxy_rests_for_its_site_only(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=60, proxies=10, sites=2, first=120) as sites:
        picky, easy = sites.sites
        picky.banned = set(sites.addresses[::3])
        sites.write(tmp_path, pace="20/s per proxy")

        ended = await run(tmp_path)

        assert ended.code == 0, ended
        assert len(rows_of(tmp_path / "site.db")) == 120
        assert used_while_banned(picky) == []
        assert picky.statuses()[403] == len(picky.banned), "one request each was enough"
        assert set(easy.addresses()) == set(sites.addresses), "all of them still serve the other site"


async def test_a_site_that_bans_all_for_a_while_costs_no_page_and_comes_back(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=120, proxies=8, first=140) as sites:
        [site] = sites.sites
        sites.write(tmp_path, pace="10/s per proxy", pool='kind = "datacenter"\nrest = "4s"')
        running = asyncio.create_task(run(tmp_path, "--json"))
        await site.asked(30)
        site.closed_until = time.monotonic() + 6.0

        ended = await running

        assert ended.code == 0, ended
        summary = ended.summary
        assert (summary["dead"], len(rows_of(tmp_path / "site.db"))) == (0, 120)
        refused = site.statuses()[403]
        assert 1 <= refused <= 40, f"it is asked now and then while it is closed: {refused}"


async def test_a_proxy_that_is_added_or_removed_counts_within_5_seconds(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=400, proxies=4, first=160) as sites:
        [site] = sites.sites
        sites.write(tmp_path, pace="8/s per proxy")
        sites.write_pool(tmp_path, sites.proxies[:2])
        running = asyncio.create_task(run(tmp_path))
        await site.asked(30)
        assert set(site.addresses()) == set(sites.addresses[:2])
        sites.write_pool(tmp_path, sites.proxies[1:])
        changed = time.monotonic()

        ended = await running

        assert ended.code == 0, ended
        assert len(rows_of(tmp_path / "site.db")) == 400
        last = max(request.at for request in site.log if request.address == sites.addresses[0])
        first = min(request.at for request in site.log if request.address == sites.addresses[3])
        assert last - changed < 5.0
        assert first - changed < 5.0


async def test_dead_proxies_cost_no_page_and_no_attempt(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=60, proxies=5, first=180) as sites:
        sites.write(tmp_path, pace="20/s per proxy")
        for proxy in sites.proxies[:2]:
            await proxy.close()

        ended = await run(tmp_path, "--json")

        assert ended.code == 0, ended
        assert (ended.summary["dead"], len(rows_of(tmp_path / "site.db"))) == (0, 60)
        assert set(sites.sites[0].addresses()) == set(sites.addresses[2:])
        assert not any(name.startswith("retry") for name in ended.summary.get("tallies", {})), "free for the page"


@pytest.mark.timeout(180)
async def test_twenty_proxies_ten_workers_and_kills(both: Servers, tmp_path: Path) -> None:
    rules = BanRules(rate=6.0, burst=4.0, ban_after=2, ban_for=600.0)
    async with world(rules, pages=700, proxies=20, sites=2, first=200) as sites:
        picky, easy = sites.sites
        picky.banned = set(sites.addresses[::4])
        sites.write(tmp_path, pace="4/s per proxy")
        fleet = Fleet(tmp_path, *both.places())
        try:
            started = await fleet.call("start", "site.py", "--detach", "--proxies", "proxies.toml")
            assert started.code == 0, started
            words = ("work", "site.py", "--until-finished", "--processes", "2", "--slots", "8")
            working = [await fleet.start(*words, "--proxies", "proxies.toml") for _ in range(5)]
            kills = 0
            while len(picky.log) + len(easy.log) < 1000:
                await asyncio.sleep(0.6)
                if kills < 4 and len(picky.log) + len(easy.log) > 200 * (kills + 1):
                    working[0].signal_all(signal.SIGKILL)
                    await working.pop(0).process.wait()
                    working.append(await fleet.start(*words, "--proxies", "proxies.toml"))
                    kills += 1
            codes = [(await each.end()).code for each in working]

            assert set(codes) == {0}
            assert kills == 4
            names = await fleet.names()
            assert len(names) == len(set(names)) == 1400
            # A worker that is killed cannot report the ban that it has just met.
            assert len(used_while_banned(picky)) <= 2 * kills
            assert used_while_banned(easy) == []
            assert easy.statuses()[429] == easy.statuses()[403] == 0, "each address keeps its rate"
            # What a killed worker held is out for 15 s, so turns are not equal here.
            assert set(easy.addresses()) == set(sites.addresses)
        finally:
            await fleet.end()
