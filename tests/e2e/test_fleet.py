"""A job and its workers: started, shared, steered, upgraded and stopped, on a file and on servers."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.e2e.fleet import Fleet, Servers, news, until
from tests.e2e.held_site import HeldSite
from tests.e2e.running import Running

PAGES = 8


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=PAGES, held=("a", "b")) as opened:
        yield opened


async def started(fleet: Fleet, site: HeldSite, **spider: Any) -> None:
    (fleet.folder / "site.py").write_text(site.spider(**spider))
    ended = await fleet.call("start", "site.py", "--detach")
    assert ended.code == 0, ended
    assert "trotline work site.py" in ended.out


async def under_way(fleet: Fleet, site: HeldSite) -> Running:
    """A worker whose two slots wait for the pages that are held back: it can do nothing else meanwhile."""
    await started(fleet, site)
    worker = await fleet.start("work", "site.py", "--until-finished", "--slots", "2")
    await asyncio.gather(site.arrived("a"), site.arrived("b"))
    return worker


async def left_behind(fleet: Fleet, site: HeldSite) -> Running:
    """A worker that had to leave its job: the spider's file is another one, and its process is gone."""
    worker = await under_way(fleet, site)
    (fleet.folder / "site.py").write_text(site.spider() + "# a change\n")
    os.kill(worker.children()[0], signal.SIGKILL)
    await news(worker, "other version")
    return worker


async def finished(*workers: Running) -> list[dict[str, Any]]:
    """What each of them said about the end of the job."""
    ends = await asyncio.gather(*(worker.end() for worker in workers))
    assert [end.code for end in ends] == [0] * len(ends), ends
    return [event for end in ends for event in end.events if event["event"] == "ended"]


async def test_two_workers_share_a_job_and_exactly_one_tells_its_end(fleet: Fleet, site: HeldSite):
    (fleet.folder / "site.py").write_text(site.spider())
    one = await fleet.start("work", "site.py", "--until-finished", "--slots", "1")
    two = await fleet.start("work", "site.py", "--until-finished", "--slots", "1")
    await asyncio.gather(news(one, "waits"), news(two, "waits"))
    starting = await fleet.start("start", "site.py")
    # With one slot each, both pages are under way at once only if both workers take part.
    await asyncio.gather(site.arrived("a"), site.arrived("b"))
    seen = await until(starting, lambda event: [worker["leased"] for worker in event["crew"]] == [1, 1])
    assert {worker["about"]["version"] for worker in seen["crew"]} != {""}
    site.release()

    said = await finished(one, two)
    ended = await starting.end()
    assert [event["announced"] for event in (*said, ended.summary)].count(True) == 1
    assert (ended.code, ended.summary["ending"], ended.summary["pages"]) == (0, "finished", len(site.names))
    assert await fleet.names() == sorted(site.names)
    assert set(site.visits.values()) == {1}

    [listed] = (await fleet.call("jobs", "--json")).events
    assert (listed["admitted"], listed["done"], listed["dead"]) == (len(site.names), len(site.names), 0)
    assert listed["started_at"] and listed["state"] == "finished"


async def test_a_paused_job_stands_still_and_goes_on(fleet: Fleet, site: HeldSite):
    worker = await under_way(fleet, site)
    assert (await fleet.call("pause", "site")).code == 0
    site.release()
    await until(worker, lambda event: event.get("state") == "paused" and event["leased"] == 0)
    visits = site.visits.total()
    assert visits < len(site.names)
    for _ in range(2):
        event = await news(worker, "progress")
        assert (event["leased"], site.visits.total()) == (0, visits)

    assert (await fleet.call("resume", "site")).code == 0
    await finished(worker)
    assert await fleet.names() == sorted(site.names)


async def test_workers_leave_a_cancelled_job_and_it_can_be_taken_up_again(fleet: Fleet, site: HeldSite):
    worker = await under_way(fleet, site)
    assert (await fleet.call("cancel", "site")).code == 0
    site.release()
    end = await worker.end()
    assert (end.code, end.summary["ending"]) == (130, "cancelled")
    books = await fleet.look()
    assert (books["state"], books["leased"], books["dead"]) == ("cancelled", 0, 0)
    assert books["waiting"] > 0

    assert (await fleet.call("resume", "site-1")).code == 0
    await finished(await fleet.start("work", "site.py", "--until-finished"))
    assert await fleet.names() == sorted(site.names)
    assert set(site.visits.values()) == {1}


async def test_a_drained_job_ends_with_what_waited(fleet: Fleet, site: HeldSite):
    await started(fleet, site)
    assert (await fleet.call("drain", "site")).code == 0
    [said] = await finished(await fleet.start("work", "site.py", "--until-finished"))
    assert said["announced"]
    assert await fleet.names() == ["home"]
    assert (await fleet.look())["tallies"]["refused: draining"] == len(site.names) - 1


async def test_a_lane_is_paused_by_its_name_and_gets_another_pace(fleet: Fleet, site: HeldSite):
    lane = site.url.removeprefix("http://")
    await started(fleet, site, pace="1/h")
    wrong = await fleet.call("pause", "site", "--lane", lane[:-1])
    assert wrong.code == 2
    assert f"Did you mean {lane}?" in wrong.err
    worker = await fleet.start("work", "site.py", "--until-finished")
    await until(worker, lambda event: event.get("done", 0) > 0)
    assert (await fleet.call("pause", "site", "--lane", lane)).code == 0
    assert [view["state"] for view in (await fleet.look())["lanes"]] == ["paused"]
    # An hour between two pages: it ends only if the new pace counts at once.
    assert (await fleet.call("pace", "--host", lane, "200/s")).code == 0
    assert (await fleet.call("resume", "site", "--lane", lane)).code == 0
    site.release()
    await finished(worker)
    assert await fleet.names() == sorted(site.names)


async def test_tasks_are_pushed_while_the_job_runs_and_bad_lines_lose_no_other(fleet: Fleet, site: HeldSite):
    await started(fleet, site, seeds=repr([f"{site.url}/held/a"]))
    worker = await fleet.start("work", "site.py", "--until-finished")
    await site.arrived("a")
    lines = [
        f"{site.url}/page/1",
        "",
        "# a comment",
        "no URL at all",
        f'{{"url": "{site.url}/page/2", "job_type": "page", "priority": 1}}',
        f'{{"url": "{site.url}/page/3", "job_type": "nobody"}}',
        "https://elsewhere.example/",
        '{"url": broken',
        f"{site.url}/page/1",
        f"{site.url}/held/a",
    ]
    (fleet.folder / "urls.txt").write_text("\n".join(lines))
    pushed = await fleet.call("push", "site.py", "urls.txt", "--json")
    assert pushed.code == 3
    assert sorted(event["line"] for event in pushed.events[:-1]) == [4, 6, 7, 8]
    assert [pushed.summary[name] for name in ("job", "new", "duplicate", "bad")] == ["site-1", 2, 2, 4]
    site.release()
    await finished(worker)
    assert await fleet.names() == ["held/a", "page/1", "page/2"]

    late = await fleet.call("push", "site.py", "urls.txt")
    assert late.code == 2
    assert "no unfinished job" in late.err


async def test_the_rows_of_a_table_are_pushed(fleet: Fleet, site: HeldSite):
    await started(fleet, site, seeds=repr([f"{site.url}/held/a"]))
    worker = await fleet.start("work", "site.py", "--until-finished")
    await site.arrived("a")
    file = fleet.folder / "wanted.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE wanted (id INTEGER, url TEXT, job_type TEXT, priority INTEGER, meta TEXT)")
        rows = [(1, f"{site.url}/page/1", None, None, None), (2, f"{site.url}/page/2", "page", 1, '{"who": "me"}')]
        db.executemany("INSERT INTO wanted VALUES (?, ?, ?, ?, ?)", [*rows, (3, "none", None, None, None)])
        db.commit()
    place = ("--table", "wanted", "--at", f"sqlite:{file}")
    pushed = await fleet.call("push", "site.py", *place, "--json")
    site.release()
    await finished(worker)

    assert pushed.code == 3
    assert [event["line"] for event in pushed.events[:-1]] == [3]
    assert pushed.summary["new"] == 2
    assert await fleet.names() == ["held/a", "page/1", "page/2"]


async def test_a_table_in_postgresql_is_pushed_and_one_that_is_not_there_is_said(both: Servers, tmp_path: Path):
    fleet = Fleet(tmp_path, *both.places())
    async with HeldSite(pages=2) as site:
        await started(fleet, site, seeds=repr([f"{site.url}/page/1"]))
        place = both.postgres.url.partition("?")[0]
        connection = await asyncpg.connect(place)
        await connection.execute(
            f"CREATE TABLE wanted AS SELECT '{site.url}/' || n AS url FROM generate_series(1, 700) n"  # noqa: S608 - ours
        )
        secret = tmp_path / "place.txt"
        secret.touch(mode=0o600)
        secret.write_text(place)
        pushed = await fleet.call("push", "site.py", "--table", "public.wanted", "--at", f"file:{secret}", "--json")
        await connection.execute("DROP TABLE wanted")
        await connection.close()
        missing = await fleet.call("push", "site.py", "--table", "wanted", "--at", f"file:{secret}")

    assert pushed.code == 0, pushed
    assert pushed.summary["new"] == 700
    assert missing.code == 2
    assert "table wanted" in missing.err


async def test_another_version_waits_until_somebody_lets_it_in(fleet: Fleet, site: HeldSite):
    await started(fleet, site)
    newer = fleet.folder / "newer"
    newer.mkdir()
    (newer / "site.py").write_text(site.spider() + "# a change\n")
    old = await fleet.start("work", "site.py", "--until-finished", "--slots", "1")
    await asyncio.wait([asyncio.ensure_future(site.arrived(name)) for name in "ab"], return_when="FIRST_COMPLETED")
    stranger = await fleet.start("work", "site.py", "--until-finished", "--slots", "1", folder=newer)
    assert (await stranger.event())["event"] == "other version"
    assert (await fleet.look())["workers"] == 1

    # It lets its version in, and with it the one that waits.
    upgrade = await fleet.start("work", "site.py", "--until-finished", "--upgrade", "--slots", "1", folder=newer)
    assert (await news(upgrade, "joined"))["upgraded"]
    assert not (await news(stranger, "joined"))["upgraded"]
    await asyncio.gather(site.arrived("a"), site.arrived("b"))
    site.release()
    said = await finished(old, stranger, upgrade)
    assert sorted(event["announced"] for event in said) == [False, False, True]
    assert await fleet.names() == sorted(site.names)


async def test_a_worker_that_is_asked_to_stop_hands_back_what_it_holds(fleet: Fleet, site: HeldSite):
    await started(fleet, site)
    leaving = await fleet.start("work", "site.py", "--grace", "1s")
    await asyncio.gather(site.arrived("a"), site.arrived("b"))
    leaving.process.terminate()
    end = await leaving.end()
    assert (end.code, end.summary["ending"]) == (130, "interrupted")
    books = await fleet.look()
    assert (books["leased"], books["dead"], books["workers"]) == (0, 0, 0)

    site.release()
    await finished(await fleet.start("work", "site.py", "--until-finished"))
    assert await fleet.names() == sorted(site.names)
    assert site.visits["held/a"] == site.visits["held/b"] == 2
    assert site.visits.total() == len(site.names) + 2, "only these were fetched twice"


async def test_a_worker_goes_on_to_the_next_job_and_stops_at_once_while_it_waits(fleet: Fleet, site: HeldSite):
    site.release()
    await started(fleet, site)
    worker = await fleet.start("work", "site.py")
    assert (await news(worker, "ended"))["job"] == "site-1"
    await news(worker, "waits")
    await started(fleet, site)
    assert (await news(worker, "ended"))["job"] == "site-2"
    await news(worker, "waits")
    worker.process.terminate()
    assert (await worker.end()).code == 130


async def test_a_run_uses_the_same_places_and_shows_no_password(fleet: Fleet, site: HeldSite):
    (fleet.folder / "site.py").write_text(site.spider())
    running = await fleet.start("run", "site.py", "--processes", "2")
    await asyncio.gather(site.arrived("a"), site.arrived("b"))
    commands = [command_line(pid) for pid in running.children()]
    assert len(commands) >= 2
    assert not any(b"://" in command for command in commands), "what children are told is nobody else's business"
    site.release()
    ended = await running.end()
    assert (ended.code, ended.summary["ending"]) == (0, "finished")
    assert await fleet.names() == sorted(site.names)
    password = fleet.sink.partition("://")[2].partition("@")[0].partition(":")[2]
    shown = (
        ended.out + ended.err + (await fleet.call("status", "site")).out + (await fleet.call("doctor", "site.py")).out
    )
    assert not password or password not in shown
    assert os.sep + "evidence" not in shown


async def test_a_file_that_is_replaced_under_a_worker_is_not_used_for_the_old_job(site: HeldSite, tmp_path: Path):
    fleet = Fleet(tmp_path, f"sqlite:{tmp_path}/frontier.db", f"sqlite:{tmp_path}/rows.db")
    try:
        worker = await left_behind(fleet, site)
        site.release()
        upgrade = await fleet.start("work", "site.py", "--until-finished", "--upgrade")
        await finished(worker, upgrade)
    finally:
        await fleet.end()
    assert await fleet.names() == sorted(site.names)


async def test_a_worker_that_had_to_leave_ends_with_the_job_that_others_finish(site: HeldSite, tmp_path: Path):
    fleet = Fleet(tmp_path, f"sqlite:{tmp_path}/frontier.db", f"sqlite:{tmp_path}/rows.db")
    try:
        worker = await left_behind(fleet, site)
        await worker.suspend()
        site.release()
        await finished(await fleet.start("work", "site.py", "--until-finished", "--upgrade"))
        worker.process.send_signal(signal.SIGCONT)
        await finished(worker)
    finally:
        await fleet.end()


async def test_a_frontier_that_is_killed_and_comes_back_ends_nobody(both: Servers, site: HeldSite, tmp_path: Path):
    fleet = Fleet(tmp_path, *both.places())
    (tmp_path / "site.py").write_text(site.spider())
    starting = await fleet.start("start", "site.py")
    worker = await fleet.start("work", "site.py", "--until-finished", "--slots", "2")
    try:
        await asyncio.gather(site.arrived("a"), site.arrived("b"))
        await asyncio.to_thread(both.redis.kill)
        away = await until(starting, lambda event: "frontier is unreachable" in event["held_back"])
        assert both.redis.url.rpartition("@")[2].partition("/")[0].partition("://")[2] in away["held_back"]
        site.release()
        await asyncio.to_thread(both.redis.start)
        await finished(worker)
        assert (await starting.end()).code == 0
    finally:
        await fleet.end()
    assert await fleet.names() == sorted(site.names)


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
