"""A fleet with one PostgreSQL for tasks and rows: its operators' commands, and what happens when things die.

What all frontiers have in common is in test_fleet.py.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import asyncpg
import pytest
from tests.e2e.fleet import Fleet, OneServer, news
from tests.e2e.fleet_crawl import Terms, crawl
from tests.e2e.held_site import HeldSite
from tests.e2e.postgres_standby import administrate, promote

from trotline.testing.postgres_server import PASSWORD, USER, WHEEL, binaries, pgbouncer, postgres
from trotline.testing.shop import DemoShop
from trotline.testing.shop.trouble import Manners

pytestmark = pytest.mark.xdist_group("fleet postgres")

RESUME_WITHIN = 5.0
"""Seconds from the moment that the server answers again to the next page that is done."""

SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="100/s", retries=1)


@shop.page(seeds=["{shop}" + path for path in ("/catalog", "/down/b")])
def listing(page: Page):
    for link in page.links("a[href*='/p/']"):
        yield product.task(link)


@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get()}}
"""


async def tables(url: str) -> set[str]:
    """The tables of the frontier, without its schema."""
    place, _, schema = url.partition("?schema=")
    connection = await asyncpg.connect(place)
    try:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    finally:
        await connection.close()
    return {row["tablename"] for row in rows}


async def test_a_run_and_all_that_operators_ask_afterwards(database: OneServer, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, *database.places())
    with DemoShop.in_thread(products=30, manners=Manners(failures=10)) as shop:
        (tmp_path / "shop.py").write_text(SPIDER.format(shop=shop.url))
        ran = await fleet.call("run", "shop.py", "--json")
        assert ran.code == 3, ran
        trace = await fleet.call("trace", f"{shop.url}/p/T4", "--spider", "shop.py")
        dead = await fleet.call("dead", "shop", "--json")
        seen = await fleet.look("shop")
        doctor = await fleet.call("doctor", "shop.py")
        jobs = await fleet.call("jobs", "--json")
        revived = await fleet.call("dead", "shop", "--why", "broken", "--revive")
        after = await fleet.look("shop")
        forgotten = await fleet.call("jobs", "--forget", "shop-1", "--force")
        left = await fleet.call("jobs")

    assert "visit 1  done    200 ok" in trace.out and "stored  1 row of product: T4" in trace.out
    [grave] = dead.events
    assert (grave["url"], grave["why"]) == (f"{shop.url}/down/b", "broken: 500")
    assert (seen["waiting"], seen["leased"], seen["dead"]) == (0, 0, 1)
    assert doctor.code == 0 and "answers" in doctor.out, doctor
    assert [job["state"] for job in jobs.events] == ["finished"]
    assert revived.code == 0 and (after["waiting"], after["dead"]) == (1, 0)
    assert forgotten.code == 0 and "shop-1" not in left.out
    assert {name for name in await tables(fleet.frontier) if name.endswith("_1")} == set()
    shown = [ran, trace, dead, doctor, jobs, revived, forgotten, left]
    assert not any(PASSWORD in each.out + each.err for each in shown)


async def test_a_worker_outlives_a_job_that_is_forgotten(database: OneServer, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, *database.places())
    async with HeldSite(pages=3) as site:
        (tmp_path / "site.py").write_text(site.spider())
        assert (await fleet.call("start", "site.py", "--detach")).code == 0
        worker = await fleet.start("work", "site.py", "--grace", "1s")
        try:
            await site.arrived()
            assert (await fleet.call("jobs", "--forget", "site-1", "--force")).code == 0
            assert (await news(worker, "forgotten"))["job"] == "site-1"
            site.release()
            ended = await fleet.call("start", "site.py", "--json")
        finally:
            await fleet.end()

    assert ended.code == 0, ended
    assert await fleet.names() == sorted(site.names)


async def test_the_server_crashes_and_workers_go_on_by_themselves(database: OneServer, tmp_path: Path) -> None:
    took = []
    async with crawl(tmp_path, *database.places(), Terms(pages=40, thinks=0.2)) as job:
        workers = [await job.worker() for _ in range(3)]
        await job.done(40)
        for how in ("immediate", "fast"):
            await job.done(20)
            database.postgres.stop(how)
            # One child dies meanwhile: the one that takes its place waits for the server.
            os.kill(workers[0].children()[0], signal.SIGKILL)
            await asyncio.sleep(3)
            database.postgres.start()
            began = time.monotonic()
            await job.done(1)
            took.append(time.monotonic() - began)
        await job.ended()
        books = await job.books()

    print(f"PostgreSQL stopped: resumed after {took} s, fetched again {books.again}, refused {books.refused}")
    assert not books.trouble
    assert max(took) < RESUME_WITHIN
    assert books.refused <= books.again <= 48, "not more than what the dead children had in their hands"


async def test_killed_workers_lose_nothing(database: OneServer, tmp_path: Path) -> None:
    async with crawl(tmp_path, *database.places(), Terms(hosts=8, pages=30)) as job:
        for _ in range(2):
            await job.worker()
        for _ in range(3):
            await job.done(15)
            killed = job.workers.pop(0)
            killed.signal_all(signal.SIGKILL)
            await killed.process.wait()
            await job.worker()
        await job.ended()
        books = await job.books()

    print(f"workers killed: fetched again {books.again}, refused {books.refused}")
    assert not books.trouble


async def test_a_fleet_behind_pgbouncer(database: OneServer, tmp_path: Path) -> None:
    with pgbouncer(database.postgres, pool=4) as url:
        frontier, sink = (f"{url}?{place.partition('?')[2]}" for place in database.places())
        async with crawl(tmp_path, frontier, sink, Terms(hosts=4, pages=20)) as job:
            for _ in range(3):
                await job.worker()
            await job.ended()
            books = await job.books()

    assert not books.trouble


@pytest.mark.parametrize("synchronous", [True, False] if os.environ.get("SOAK") else [False])
async def test_a_standby_takes_over_and_no_page_is_lost(tmp_path: Path, synchronous: bool) -> None:
    """Tasks and rows move together: a standby that lacks the last transactions has no settle without its rows."""
    with postgres() as old, postgres(standby_of=old) as new:
        if synchronous:
            await administrate(old, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        place = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{old.port},127.0.0.1:{new.port}/postgres"
        options = "target_session_attrs=read-write&schema="
        async with crawl(tmp_path, f"{place}?{options}tasks", f"{place}?{options}rows", Terms(pages=40)) as job:
            for _ in range(3):
                await job.worker()
            await job.done(80)
            old.stop("immediate")
            await promote(new)
            began = time.monotonic()
            await job.done(1)
            took = time.monotonic() - began
            await job.ended()
            job.sink_url = f"{new.url}?schema=rows"
            books = await job.books()

    unknown = books.progress.tallies.get("unknown to its worker", 0)
    print(f"standby took over: resumed after {took:.1f} s, fetched again {books.again}, unknown leases {unknown}")
    assert not books.trouble
    assert took < RESUME_WITHIN


async def test_the_fleet_demo_needs_one_server(tmp_path: Path) -> None:
    """`make fleet FRONTIER=postgresql`."""
    binaries(WHEEL)
    words = ["--frontier", "postgresql", "--products", "30", "--folder", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "trotline.testing.fleet_demo", *words],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        said = (await process.communicate())[0].decode()

    assert process.returncode == 0, said
    assert "30 rows: 0 missing, 0 too many, 0 different" in said
    assert "there is no other server" in said and "Valkey" not in said
    assert PASSWORD not in said
