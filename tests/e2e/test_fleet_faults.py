"""Servers and workers of a fleet die, hang and come back in the middle of a job: nothing lost, nothing twice.

`python -m tests.e2e.fleet_soak` is the long version for workers that are killed.
"""

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.e2e.fleet import Fleet, Servers
from tests.e2e.fleet_crawl import SPIDER, Crawl, Terms, crawl
from tests.e2e.fleet_job import eventually, newest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call

from trotline.errors import FrontierUnreachable
from trotline.model.job import State
from trotline.testing.frontier_contract import Client

pytestmark = pytest.mark.xdist_group("fleet faults")

RESUME_WITHIN = 5.0
"""Seconds from the moment that a server answers again to the next page that is done: what operators are promised."""
NOTICE_WITHIN = 15.0
"""Seconds until a worker knows that its server hangs."""
HAND_BACK_WITHIN = 2.0
"""Seconds after which others may have what a worker holds that was told to stop. A second is promised; another is for
a machine that is busy with other tests."""


async def resumed(job: Crawl) -> float:
    """Seconds until another page is done."""
    began = time.monotonic()
    before = (await job.progress()).done
    await job.until(lambda progress: progress.done > before)
    return time.monotonic() - began


async def listed(job: Crawl) -> dict[str, Any]:
    """The job as `trotline jobs` lists it."""
    ended = await call(job.folder, "jobs", "--json", env=job.environment)
    return ended.events[-1]


async def test_redis_is_killed_and_workers_go_on_by_themselves(both: Servers, tmp_path: Path):
    took = {}
    async with crawl(tmp_path, *both.places(), Terms(pages=40, thinks=0.2)) as job:
        workers = [await job.worker() for _ in range(3)]
        await job.done(40)
        for fsync in ("everysec", "always"):
            both.redis.command("CONFIG", "SET", "appendfsync", fsync)
            await job.done(20)
            both.redis.kill()
            # Somebody else dies meanwhile: the one that takes its place waits for the server.
            os.kill(workers[0].children()[0], signal.SIGKILL)
            # Long enough for everybody to notice, and to wait for longer and longer.
            await asyncio.sleep(3)
            both.redis.start()
            took[fsync] = await resumed(job)
        await job.ended()
        books = await job.books()

    print(f"Redis killed: resumed after {took} s, fetched again {books.again}, refused {books.refused}")
    assert not books.trouble
    assert max(took.values()) < RESUME_WITHIN
    assert books.refused <= books.again <= 32, "not more than what the dead children had in their hands"


async def test_a_redis_that_forgets_its_last_seconds_loses_no_page(both: Servers, tmp_path: Path):
    """A power cut with `appendfsync everysec`, or a replica that had not heard of everything: what the server comes
    back with is older than what it had answered."""
    async with crawl(tmp_path, *both.places(), Terms(pages=40, thinks=0.2)) as job:
        for _ in range(3):
            await job.worker()
        before = (await job.done(80)).done
        [written] = (both.redis.folder / "appendonlydir").glob("*.incr.aof")
        remembered = written.stat().st_size
        await job.done(40)
        both.redis.kill()
        os.truncate(written, remembered)
        both.redis.start()
        assert (await job.progress()).done < before + 40, "it has forgotten"
        await job.ended()
        books = await job.books()

    unknown = books.progress.tallies.get("unknown to its worker", 0)
    print(f"Redis forgot: leases that nobody knew of {unknown}, fetched again {books.again}")
    assert not books.trouble
    assert unknown > 0


async def test_postgresql_crashes_and_no_row_is_lost(both: Servers, tmp_path: Path):
    async with crawl(tmp_path, *both.places(), Terms(pages=30)) as job:
        for _ in range(2):
            await job.worker()
        await job.done(40)
        both.postgres.stop("immediate")
        before = (await job.progress()).done
        await asyncio.sleep(2)
        during = (await job.progress()).done
        await eventually(lambda: listed(job), lambda row: row["held_back"].startswith("sink is unreachable: "))
        both.postgres.start()
        took = await resumed(job)
        await job.ended()
        books = await job.books()

    print(f"PostgreSQL crashed: resumed after {took:.2f} s, fetched again {books.again}, refused {books.refused}")
    assert not books.trouble
    assert during - before <= 64, "nothing is done that is not stored; a batch may have been on its way"
    assert took < RESUME_WITHIN
    assert books.again == 0, "what was fetched was kept in hand"


async def test_a_redis_that_stalls_makes_nobody_run_again(both: Servers, tmp_path: Path):
    async with crawl(tmp_path, *both.places(), Terms(pages=30)) as job:
        for _ in range(3):
            await job.worker()
        await job.done(40)
        os.kill(both.redis.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(8)
        finally:
            os.kill(both.redis.pid, signal.SIGCONT)
        took = await resumed(job)
        await job.done(20)
        # The same from inside: it takes commands, and answers none.
        both.redis.command("CLIENT", "PAUSE", "3000", "ALL")
        await job.ended()
        books = await job.books()

    print(f"Redis stalled: resumed after {took:.2f} s, fetched again {books.again}, refused {books.refused}")
    assert not books.trouble
    assert books.progress.tallies.get("rescued", 0) == 0, "nobody was taken for dead"
    assert books.again == 0
    assert took < RESUME_WITHIN


async def test_a_redis_that_hangs_is_known_to(both: Servers, tmp_path: Path):
    async with crawl(tmp_path, *both.places(), Terms(hosts=1, pages=1)) as job:
        frontier = await job.frontier()
        await frontier.progress()
        os.kill(both.redis.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(FrontierUnreachable):
                await frontier.lease("w", 1)
            took = time.monotonic() - began
        finally:
            os.kill(both.redis.pid, signal.SIGCONT)

    print(f"known to hang after {took:.1f} s")
    assert took < NOTICE_WITHIN


async def test_a_job_goes_on_while_its_code_is_upgraded(both: Servers, tmp_path: Path):
    """The old workers are stopped one after another once the new one is at work, as in any rolling upgrade."""
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "crawl.py").write_text(f"{SPIDER}# another version\n")
    async with crawl(tmp_path, *both.places(), Terms(pages=30)) as job:
        old = await job.worker()
        await job.done(20)
        frontier = await job.frontier()
        # The old one is done with everything in a few seconds, a busy machine starts the new one in more.
        await frontier.steer(State.PAUSED)
        new = await job.worker("--upgrade", folder=newer)
        await eventually(frontier.workers, lambda crew: len(crew) == 2)
        await frontier.steer(State.RUNNING)
        crew = await eventually(frontier.workers, lambda crew: len(crew) == 2 and all(view.done for view in crew))
        job.workers.remove(old)
        old.process.terminate()
        assert (await old.end()).code == 130
        await job.ended()
        books = await job.books()

    assert len({view.about.version for view in crew}) == 2, "two versions at the same time"
    assert not books.trouble
    assert books.again == 0
    assert str(new.process.pid) in {visit["worker"].split("-")[-3] for visit in books.visits[-5:]}


async def test_a_worker_that_was_frozen_past_its_lease_changes_nothing_when_it_wakes(both: Servers, tmp_path: Path):
    """Who is it? Rows tell which worker they come from: those of the other one, which saw the pages later, stay."""
    frontier_url, sink_url = both.places()
    async with HeldSite(pages=4, held=("a", "b")) as site:
        spider = site.spider().replace('{"name":', '{"by": __import__("os").getpid(), "name":')
        (tmp_path / "site.py").write_text(spider)
        fleet = Fleet(tmp_path, frontier_url, sink_url)
        assert (await fleet.call("start", "site.py", "--detach")).code == 0
        frontier = await newest(frontier_url)
        zombie = await fleet.start("work", "site.py", "--until-finished", "--slots", "2")
        await asyncio.gather(site.arrived("a"), site.arrived("b"))
        zombie.signal_all(signal.SIGSTOP)
        try:
            other = await fleet.start("work", "site.py", "--until-finished", "--slots", "4")
            await eventually(frontier.progress, lambda _: site.visits["held/a"] + site.visits["held/b"] == 4)
            [child] = other.children()
            site.release()
            assert (await other.end()).code == 0
            finished = await frontier.progress()
        finally:
            zombie.signal_all(signal.SIGCONT)
        assert (await zombie.end()).code == 0
        progress = await frontier.progress()
        await frontier.close()

    rows, visits = await stored(sink_url)
    late = [visit for visit in visits if visit["worker"].split("-")[-3] == str(zombie.process.pid)]
    late = [visit for visit in late if "/held/" in visit["url"]]
    assert [visit["outcome"] for visit in late] == ["done", "done"], "it came to its end, and nobody believed it"
    assert {name: by for name, by in rows.items() if name.startswith("held/")} == {"held/a": child, "held/b": child}
    assert set(rows) == site.names
    assert progress.tallies == finished.tallies, "nothing is counted twice"
    assert (progress.done, progress.waiting, progress.leased, progress.dead) == (len(site.names), 0, 0, 0)


async def test_a_worker_that_is_told_to_stop_hands_back_at_once_what_it_has_not_begun(both: Servers, tmp_path: Path):
    frontier_url, sink_url = both.places()
    async with HeldSite(pages=300, held=("a", "b")) as site:
        (tmp_path / "site.py").write_text(site.spider(pace="20/s", more="concurrency=24"))
        fleet = Fleet(tmp_path, frontier_url, sink_url)
        assert (await fleet.call("start", "site.py", "--detach")).code == 0
        frontier = await newest(frontier_url)
        worker = await fleet.start("work", "site.py", "--grace", "3s", "--slots", "16")
        await asyncio.gather(site.arrived("a"), site.arrived("b"))
        await eventually(frontier.progress, lambda progress: progress.leased >= 8)
        worker.process.terminate()
        told = time.monotonic()
        took = [await handed_back(frontier, down_to, told) for down_to in (2, 0)]
        assert (await worker.end()).code == 130
        progress = await frontier.progress()
        await frontier.close()

    print(f"not begun: handed back after {took[0]:.2f} s; in flight with a grace time of 3 s: {took[1]:.2f} s")
    assert took[0] < HAND_BACK_WITHIN
    assert took[1] < 3 + HAND_BACK_WITHIN
    assert (progress.leased, progress.dead) == (0, 0)
    assert progress.admitted == len(site.names)


async def handed_back(frontier: Client, down_to: int, told: float) -> float:
    await eventually(frontier.progress, lambda progress: progress.leased <= down_to)
    return time.monotonic() - told


async def stored(sink_url: str) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Whose row each page's is, and the ledger."""
    url, _, schema = sink_url.partition("?schema=")
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"SET search_path TO {schema}")
        data = [json.loads(row["data"]) for row in await connection.fetch("SELECT data FROM records")]
        visits = [dict(row) for row in await connection.fetch("SELECT * FROM visits ORDER BY leased_at")]
    finally:
        await connection.close()
    assert len({each["name"] for each in data}) == len(data)
    return {each["name"]: each["by"] for each in data}, visits
