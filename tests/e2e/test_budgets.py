"""Limits of a job hold for everybody who works for it: on one machine, in a fleet, after a resume."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.fleet import Fleet, news
from tests.e2e.held_site import HeldSite
from tests.e2e.running import call, progress_of

PAGES = 60


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=PAGES, held=()) as opened:
        yield opened


def written(folder: Path, site: HeldSite, **spider: str) -> None:
    (folder / "site.py").write_text(site.spider(pace="1000/s", **spider))


async def test_max_pages_of_a_spider_holds_in_a_fleet(fleet: Fleet, site: HeldSite):
    written(fleet.folder, site, more="max_pages=10, concurrency=16")
    workers = [await fleet.start("work", "site.py", "--until-finished", "--slots", "4") for _ in range(3)]
    await asyncio.gather(*(news(worker, "waits") for worker in workers))
    starting = await fleet.start("start", "site.py")

    ended = await starting.end()
    ends = await asyncio.gather(*(worker.end() for worker in workers))

    assert (ended.code, [end.code for end in ends]) == (0, [0, 0, 0])
    assert (ended.summary["ending"], ended.summary["limit"]) == ("stopped at limit", "max_pages=10")
    assert ended.summary["pages"] == site.visits.total() == 10
    assert len(await fleet.names()) == 10

    resumed = await fleet.call("resume", "site")
    assert "without its limit (max_pages=10)" in resumed.out
    books = await fleet.look()
    assert books["state"] == "running", books


async def test_a_limit_that_many_workers_are_given_is_one_limit(tmp_path: Path, site: HeldSite):
    fleet = Fleet(tmp_path, f"sqlite:{tmp_path}/frontier.db", f"sqlite:{tmp_path}/rows.db")
    written(fleet.folder, site, more="concurrency=16")
    assert (await fleet.call("start", "site.py", "--detach")).code == 0
    # Without --until-finished: a worker that was given a limit does not wait for the next job after it.
    words = ("work", "site.py", "--max-pages", "10")
    workers = [await fleet.start(*words, "--slots", "4", "--prefetch", "0") for _ in range(3)]

    ends = await asyncio.gather(*(worker.end() for worker in workers))

    assert [end.code for end in ends] == [0, 0, 0]
    assert site.visits.total() == 10


async def test_a_run_with_several_processes_keeps_its_limit_and_the_same_command_goes_on(
    tmp_path: Path, site: HeldSite
):
    written(tmp_path, site, more="concurrency=16")
    command = ("run", "site.py", "--allow-private", "--processes", "4", "--slots", "8", "--max-pages", "10", "--json")

    ended = await call(tmp_path, *command)
    assert (ended.code, ended.summary["ending"], ended.summary["limit"]) == (0, "stopped at limit", "max_pages=10")
    assert ended.summary["pages"] == site.visits.total() == 10

    told = await call(tmp_path, *command[:-1])
    assert "site: stopped: max_pages=10 reached" in told.out
    assert (await progress_of(tmp_path, "site")).done == 20 == site.visits.total()

    # Without a limit it goes on to its end: an old one does not linger.
    ended = await call(tmp_path, "run", "site.py", "--allow-private", "--json")
    assert (ended.code, ended.summary["ending"]) == (0, "finished")
    assert set(site.visits.values()) == {1}


async def test_bytes_are_a_limit_too(tmp_path: Path, site: HeldSite):
    written(tmp_path, site)
    command = ("run", "site.py", "--allow-private", "--slots", "2", "--max-bytes", "1KB", "--json")

    ended = await call(tmp_path, *command)

    assert (ended.code, ended.summary["ending"]) == (0, "stopped at limit")
    assert ended.summary["limit"] == "max_bytes=1024"
    progress = await progress_of(tmp_path, "site")
    assert progress.size >= 1024
    # The first page has them all; what was in flight besides are two slots and what is held ready for them.
    assert progress.done <= 4


async def test_a_worker_stops_after_its_time_and_the_job_goes_on(tmp_path: Path):
    async with HeldSite(pages=3, held=("slow",)) as site:
        fleet = Fleet(tmp_path, f"sqlite:{tmp_path}/frontier.db", f"sqlite:{tmp_path}/rows.db")
        written(tmp_path, site)
        assert (await fleet.call("start", "site.py", "--detach")).code == 0

        ended = await fleet.call("work", "site.py", "--max-time", "2s", "--grace", "1s", "--json")

        assert ended.code == 0
        books = await fleet.look()
        assert (books["state"], books["waiting"] + books["leased"]) == ("running", 1)
        site.release()
        assert (await fleet.call("work", "site.py", "--until-finished", "--json")).code == 0
        assert await fleet.names() == sorted(site.names)


async def test_a_job_that_stopped_at_its_limit_goes_on_when_it_is_started_again(fleet: Fleet, site: HeldSite):
    written(fleet.folder, site, more="concurrency=16")
    for total in (10, 20):
        worker = await fleet.start("work", "site.py", "--until-finished", "--slots", "4")
        ended = await fleet.call("start", "site.py", "--max-pages", "10", "--json")
        assert (await worker.end()).code == 0
        assert (ended.code, ended.summary["ending"]) == (0, "stopped at limit")
        assert (ended.summary["job"], site.visits.total()) == ("site-1", total)


@pytest.mark.slow("starts real workers")
@pytest.mark.parametrize("limit", ["pages", "time", "cancel"])
async def test_a_fleet_ends_with_a_job_that_was_cut_short_and_after_its_time(
    tmp_path: Path, site: HeldSite, limit: str
):
    fleet = Fleet(tmp_path, f"sqlite:{tmp_path}/frontier.db", f"sqlite:{tmp_path}/rows.db")
    written(fleet.folder, site, more="max_pages=10" if limit == "pages" else "")
    assert (await fleet.call("start", "site.py", "--detach")).code == 0
    if limit == "cancel":
        assert (await fleet.call("cancel", "site")).code == 0
    words = ("fleet", "site.py", "--max", "1", "--allow-private", "--json")
    env = fleet.environment | ({"TROTLINE_MAX_TIME": "3s"} if limit == "time" else {})

    ended = await call(tmp_path, *words, *(() if limit == "time" else ("--until-finished",)), env=env)

    said = [event["text"] for event in ended.events if event["event"] == "fleet.finished"]
    expected = {"pages": ["the job has stopped at its limit; trotline resume continues it"], "time": []}
    assert (ended.code, said) == (130 if limit == "cancel" else 0, expected.get(limit, ["the job was cancelled"]))
    assert ended.events[-1]["event"] == "fleet.ended"
