"""Coordinators as real processes on one place: killed, frozen, woken up again. A time of the schedule is one job."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.e2e.running import KILLER, Running, call, start

from trotline.config import backends
from trotline.model.job import Job, Progress
from trotline.model.leadership import Tick
from trotline.model.schedule import Schedule
from trotline.testing.postgres_server import PASSWORD, USER, postgres
from trotline.testing.redis_server import DEBIAN, redis

SEEDS = 10_000
TERM = {"E2E_TERM": "5", "PYTHONPATH": str(KILLER)}
"""A coordinator that is silent is waited for so long."""
YEARLY = Schedule("0 0 1 1 *")
SPIDER = f"""
import os, signal
from pathlib import Path

from trotline import Spider

shop = Spider("shop", schedule="{YEARLY.cron}", hosts=["shop.example"])


def seeds():
    for number in range({SEEDS}):
        doom = Path(f"doom-{{number}}")
        if doom.exists():
            # Whoever takes the file is struck, and nobody else after it.
            strike = signal.Signals[doom.read_text()]
            doom.unlink()
            os.kill(os.getpid(), strike)
        yield f"https://shop.example/{{number}}"


@shop.page(seeds=seeds)
def page(page):
    yield {{"url": page.url}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SPIDER)
    return tmp_path


@pytest.fixture(params=["sqlite", "redis", "postgresql"])
def frontier(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{folder / 'frontier.db'}"
        return
    if request.param == "postgresql":
        with postgres() as database:
            # A command line has no passwords.
            passwords = folder / "passwords"
            passwords.touch(mode=0o600)
            passwords.write_text(f"*:*:*:*:{PASSWORD}\n")
            yield f"postgresql://{USER}@127.0.0.1:{database.port}/postgres?passfile={passwords}"
        return
    with redis(DEBIAN) as server:
        yield server.url


def doom(folder: Path, number: int, strike: signal.Signals) -> None:
    """Who comes to this seed is struck."""
    (folder / f"doom-{number}").write_text(strike.name)


async def owe_a_run(frontier: str) -> None:
    """The schedule was last looked at a year ago: a run is due, one."""
    leadership = await backends.open_leadership(frontier)
    term = await leadership.campaign("shop", "test")
    await leadership.skip(term, Tick(at=term.now - 400 * 86400, schedule=YEARLY.text))
    await leadership.resign(term)
    await leadership.close()


@asynccontextmanager
async def coordinator(folder: Path, frontier: str) -> AsyncIterator[Running]:
    running = await start(folder, "coordinate", "shop.py", "--frontier", frontier, "--json", env=TERM)
    try:
        yield running
    finally:
        if running.process.returncode is None:
            running.signal_all(signal.SIGKILL)
            await running.process.wait()


async def hears(running: Running, event: str) -> dict[str, object]:
    """The next event of this name; those before it are read over."""
    while True:
        found = await running.event()
        if found["event"] == event:
            return found


async def is_frozen(running: Running) -> None:
    async with asyncio.timeout(60):
        while _state(running.process.pid) != "T":  # noqa: ASYNC110 - nobody is told when a process is stopped
            await asyncio.sleep(0.05)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def books(frontier: str) -> dict[str, tuple[Job, Progress]]:
    """Every job, and how far it is."""
    jobs = await backends.open_jobs(frontier)
    found = {}
    for job in await jobs.all():
        opened = await backends.open_frontier(frontier, job)
        found[job.id] = (job, await opened.console.progress())
        await opened.close()
    await jobs.close()
    return found


@pytest.mark.timeout(240)
async def test_a_leader_that_freezes_and_one_that_is_killed_are_replaced_and_one_job_gets_its_seeds(
    folder: Path, frontier: str
) -> None:
    await owe_a_run(frontier)
    doom(folder, 3_210, signal.SIGSTOP)
    doom(folder, 7_654, signal.SIGKILL)

    async with coordinator(folder, frontier) as first:
        began = await hears(first, "coordinator.leads")
        await hears(first, "tick.started")
        await is_frozen(first)

        async with coordinator(folder, frontier) as second:
            standing_by = await hears(second, "coordinator.stands_by")
            took_over = await hears(second, "coordinator.leads")
            assert standing_by["leader"] == began["leader"]
            assert took_over["term"] > began["term"]
            assert await second.exit_code() == -signal.SIGKILL

        # The frozen one wakes up in the middle of its seeds, two terms too late.
        os.kill(first.process.pid, signal.SIGCONT)
        await hears(first, "coordinator.lost")
        again = await hears(first, "coordinator.leads")
        assert again["term"] > took_over["term"]
        await hears(first, "job.seeded")

    [(job, progress)] = (await books(frontier)).values()
    assert (progress.admitted, progress.waiting, progress.sealed) == (SEEDS, SEEDS, True)
    assert job.spider == "shop"


@pytest.mark.timeout(120)
async def test_a_leader_that_is_asked_to_stop_resigns_at_once(folder: Path) -> None:
    frontier = f"sqlite:{folder / 'frontier.db'}"
    leadership = await backends.open_leadership(frontier)
    async with coordinator(folder, frontier) as first, coordinator(folder, frontier) as second:
        said = {str((news := await one.event())["event"]): (one, news) for one in (first, second)}
        leader, began = said["coordinator.leads"]
        leader.process.terminate()
        ended = await leader.end()
        holder = (await leadership.campaign("shop", "test")).holder
    await leadership.close()

    assert (ended.code, ended.err) == (0, "")
    assert holder != began["leader"], "the election is free before the term would have run out"


@pytest.mark.timeout(120)
async def test_seeding_that_is_killed_again_and_again_gives_exactly_the_seeds(folder: Path) -> None:
    chance = random.Random(13)
    words = ("start", "shop.py", "--detach", "--frontier", f"sqlite:{folder / 'frontier.db'}")
    for _ in range(4):
        doom(folder, chance.randrange(SEEDS), signal.SIGKILL)
        assert (await call(folder, *words)).code == -signal.SIGKILL

    assert (await call(folder, *words)).code == 0

    [(_, progress)] = (await books(words[-1])).values()
    assert (progress.admitted, progress.sealed) == (SEEDS, True)
