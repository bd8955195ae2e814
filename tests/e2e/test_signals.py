"""Signals: a run that is asked to stop finishes or returns what is in flight, and the next one goes on."""

import asyncio
import fcntl
import os
import pty
import signal
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import Running, call, lives, progress_of, rows_of, start

FOREVER = "10m"
"""Longer than any test waits."""
RUN = ("run", "site.py", "--allow-private", "--json")


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=8) as opened:
        yield opened


def _hears_the_terminal_end() -> None:
    """Also when the tests themselves run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


async def under_way(site: HeldSite, folder: Path, *words: str) -> Running:
    """A run of two slots that has just asked for the page that is held back."""
    (folder / "site.py").write_text(site.spider())
    running = await start(folder, *RUN, "--slots", "2", *words, preexec_fn=_hears_the_terminal_end)
    await site.arrived()
    return running


async def finish(site: HeldSite, folder: Path) -> None:
    """The same command again: it must end with every row."""
    site.release()
    ended = await call(folder, *RUN)
    assert ended.code == 0, ended
    assert ended.summary["job"] == "site-1", "it went on with the same job"
    stored = sorted(row["name"] for row in rows_of(folder / "site.db"))
    assert stored == sorted(site.names)
    books = await progress_of(folder, "site")
    assert (books.waiting, books.leased, books.done, books.dead) == (0, 0, len(site.names), 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_what_is_in_flight_is_finished_and_the_rest_waits(site: HeldSite, tmp_path: Path, number: signal.Signals):
    running = await under_way(site, tmp_path, "--grace", FOREVER)
    running.process.send_signal(number)
    site.release()
    ended = await running.end()

    assert ended.code == 130
    assert ended.summary["ending"] == "interrupted"
    assert "held/slow" in {row["name"] for row in rows_of(tmp_path / "site.db")}
    assert (await progress_of(tmp_path, "site")).leased == 0
    await finish(site, tmp_path)
    assert set(site.visits.values()) == {1}, "nothing was fetched twice"


async def test_ctrl_c_at_a_terminal_reaches_every_process_and_means_the_same(site: HeldSite, tmp_path: Path):
    running = await under_way(site, tmp_path, "--grace", FOREVER)
    running.signal_all(signal.SIGINT)
    site.release()
    assert (await running.end()).code == 130
    await finish(site, tmp_path)
    assert set(site.visits.values()) == {1}


async def test_a_terminal_that_is_closed_stops_the_run_and_nothing_is_lost(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    ours, theirs = pty.openpty()

    def at_a_terminal() -> None:
        _hears_the_terminal_end()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    running = await start(
        tmp_path, "run", "site.py", "--allow-private", "--slots", "2", "--grace", FOREVER,
        stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=at_a_terminal,
    )  # fmt: skip
    os.close(theirs)
    await site.arrived()
    os.close(ours)
    # Shells tell their jobs once more what the kernel has told them already.
    running.signal_all(signal.SIGHUP)
    site.release()

    assert await running.exit_code() == 130
    assert "held/slow" in {row["name"] for row in rows_of(tmp_path / "site.db")}
    await finish(site, tmp_path)
    assert set(site.visits.values()) == {1}, "nothing was fetched twice"


async def test_under_nohup_the_end_of_the_terminal_means_nothing(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    ignored = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    running = await start(tmp_path, *RUN, "--slots", "2", preexec_fn=ignored)
    await site.arrived()
    running.signal_all(signal.SIGHUP)
    site.release()
    ended = await running.end()

    assert ended.code == 0, ended
    assert set(site.visits.values()) == {1}


async def test_a_page_that_outlasts_the_grace_time_is_returned(site: HeldSite, tmp_path: Path):
    running = await under_way(site, tmp_path, "--grace", "1s")
    running.process.terminate()
    ended = await running.end()

    assert ended.code == 130
    books = await progress_of(tmp_path, "site")
    assert (books.leased, books.dead) == (0, 0)
    assert "held/slow" not in {row["name"] for row in rows_of(tmp_path / "site.db")}
    await finish(site, tmp_path)
    assert site.visits["held/slow"] == 2
    assert site.visits.total() == len(site.names) + 1, "only that page was fetched twice"


async def test_the_second_signal_ends_it_at_once(site: HeldSite, tmp_path: Path):
    running = await under_way(site, tmp_path, "--grace", FOREVER)
    # Two of a kind could melt into one before anybody looks.
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGTERM)
    ended = await running.end()

    assert ended.code == 130
    books = await progress_of(tmp_path, "site")
    assert (books.leased, books.dead) == (0, 0)
    await finish(site, tmp_path)


async def test_children_do_not_outlive_a_killed_supervisor(site: HeldSite, tmp_path: Path):
    running = await under_way(site, tmp_path, "--grace", "1s")
    [child] = running.children()
    running.process.kill()
    await running.end()

    assert not lives(child)
    await finish(site, tmp_path)


async def test_a_child_that_is_asked_to_stop_is_replaced_and_the_run_goes_on(site: HeldSite, tmp_path: Path):
    running = await under_way(site, tmp_path, "--grace", FOREVER)
    [child] = running.children()
    os.kill(child, signal.SIGTERM)
    site.release()
    ended = await running.end()

    assert ended.code == 0, ended
    assert ended.summary["ending"] == "finished"
    assert {row["name"] for row in rows_of(tmp_path / "site.db")} == site.names
    assert set(site.visits.values()) == {1}


async def test_a_stop_during_seeding_does_not_wait_for_the_seeds(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider(seeds=f'["{site.url}/", Sitemap("{site.url}/held/slow")]'))
    running = await start(tmp_path, *RUN, "--grace", "1s")
    await site.arrived()
    running.process.terminate()

    assert (await running.end()).code == 130


async def test_a_stop_does_not_wait_for_seeds_that_somebody_still_types(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    running = await start(tmp_path, *RUN, "--seeds", "-", stdin=asyncio.subprocess.PIPE)
    assert running.process.stdin is not None
    running.process.stdin.write(f"{site.url}/page/1\n".encode())
    # In-code seeds go with the lines, so nothing is under way yet: the run only waits for more.
    while not (await running.event())["workers"]:
        pass
    running.process.terminate()

    assert (await asyncio.wait_for(running.process.wait(), 60)) == 130
