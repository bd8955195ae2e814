"""Whoever reads a command's output may have enough of it (`trotline watch shop --json | head -1`): the command ends."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import Running, call, progress_of, rows_of, start

BROKEN_PIPE = 141
RUN = ("run", "site.py", "--allow-private", "--json")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[HeldSite]:
    """Its job cannot end before the test lets it."""
    async with HeldSite(pages=4) as opened:
        (tmp_path / "site.py").write_text(opened.spider())
        yield opened


async def read_by_head(folder: Path, *words: str, lines: int, said: list[bytes] | None = None) -> Running:
    """The command with a reader who closes the pipe after so many lines; `said` gets them."""
    said = [] if said is None else said
    ours, theirs = os.pipe()
    running = await start(folder, *words, stdout=theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as reader:
        for _ in range(lines):
            said.append(await asyncio.to_thread(reader.readline))
            assert said[-1], "it said nothing"
    return running


@contextmanager
def full_pipe() -> Iterator[int]:
    """The end to write to of a pipe without room, which nobody reads."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    try:
        with suppress(BlockingIOError):
            while os.write(theirs, b"-" * 4096):
                pass
        os.set_blocking(theirs, True)
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(("words", "lines"), [(("--json",), 1), ((), 0)], ids=["json", "text"])
async def test_a_view_ends_with_its_reader(site: HeldSite, tmp_path: Path, words: tuple[str, ...], lines: int):
    assert (await call(tmp_path, "start", "site.py", "--detach")).code == 0
    watching = await read_by_head(tmp_path, "watch", "site", *words, lines=lines)
    ended = await watching.end()
    assert (ended.code, ended.err) == (BROKEN_PIPE, "")


@pytest.mark.parametrize("words", [("--json",), ()], ids=["json", "text"])
async def test_a_view_ends_with_its_job(site: HeldSite, tmp_path: Path, words: tuple[str, ...]):
    running = await start(tmp_path, *RUN)
    await site.arrived()
    watching = await start(tmp_path, "watch", "site", *words)
    assert watching.process.stdout is not None
    assert await watching.process.stdout.readline()
    site.release()
    assert (await watching.end()).code == 0
    assert (await running.end()).code == 0


async def test_a_run_without_a_reader_stops_as_if_its_terminal_were_closed(site: HeldSite, tmp_path: Path):
    running = await read_by_head(tmp_path, *RUN, "--grace", "1s", lines=1)
    ended = await running.end()
    assert (ended.code, ended.err) == (BROKEN_PIPE, "")
    assert (await progress_of(tmp_path, "site")).leased == 0, "what was in flight is given back"

    site.release()
    again = await call(tmp_path, *RUN)
    assert (again.code, again.summary["job"]) == (0, "site-1")
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names)


async def test_a_worker_outlives_the_reader_of_its_log(site: HeldSite, tmp_path: Path):
    """As one whose log collector died: it is a service, and the job needs it."""
    assert (await call(tmp_path, "start", "site.py", "--detach")).code == 0
    # The first line says that it takes part, the second how far the job is.
    words = ("work", "site.py", "--allow-private", "--json", "--until-finished")
    said: list[bytes] = []
    working = await read_by_head(tmp_path, *words, lines=2, said=said)
    assert b"no worker is running" not in said[1], "it says so of itself"
    site.release()
    ended = await working.end()
    assert (ended.code, "of the output could not be written: Broken pipe" in ended.err) == (BROKEN_PIPE, True)
    assert (await progress_of(tmp_path, "site")).finished_at is not None
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names)


async def test_a_coordinator_outlives_a_full_disk_under_its_log(site: HeldSite, tmp_path: Path):
    assert (await call(tmp_path, "start", "site.py", "--detach")).code == 0
    with Path("/dev/full").open("w") as full:  # noqa: ASYNC230 - a device
        leading = await start(tmp_path, "coordinate", "site.py", stdout=full.fileno())
    site.release()
    # It has reported that it leads, in vain; that the job is over is noticed all the same.
    assert (await call(tmp_path, "work", "site.py", "--allow-private", "--until-finished", "--quiet")).code == 0
    assert leading.process.returncode is None
    leading.process.terminate()
    ended = await leading.end()
    assert (ended.code, "could not be written: No space left on device" in ended.err) == (BROKEN_PIPE, True)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_worker_whose_output_nobody_reads_finishes_its_job(site: HeldSite, tmp_path: Path, stream: str):
    """A full pipe (`trotline work ... | sleep 1000`) must not block the supervisor: it sends the heartbeats."""
    assert (await call(tmp_path, "start", "site.py", "--detach")).code == 0
    words = ("work", "site.py", "--allow-private", "--until-finished", "--log-format", "json", "--log-level", "debug")
    with full_pipe() as theirs:
        working = await start(tmp_path, *words, "--json", **{stream: theirs})
        site.release()
        ended = await working.end()
    assert ended.code == (BROKEN_PIPE if stream == "stdout" else 0)
    assert (await progress_of(tmp_path, "site")).finished_at is not None
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names)


async def test_fetch_prints_all_records_although_nobody_reads_its_messages(site: HeldSite, tmp_path: Path):
    """It is a run with a supervisor, too. Its standard output is records, of which none may be dropped."""
    site.release()
    with full_pipe() as theirs:
        words = ("fetch", site.url, "--allow-private", "--fields", "links")
        ended = await (await start(tmp_path, *words, stderr=theirs)).end()
    assert (ended.code, ended.out.count("\n")) == (0, 1)


async def test_a_coordinator_whose_output_nobody_reads_notices_the_end_of_a_job(site: HeldSite, tmp_path: Path):
    with full_pipe() as theirs:
        leading = await start(tmp_path, "coordinate", "site.py", stdout=theirs)
        assert (await call(tmp_path, "start", "site.py", "--detach")).code == 0
        site.release()
        assert (await call(tmp_path, "work", "site.py", "--allow-private", "--until-finished", "--quiet")).code == 0
        leading.process.terminate()
        ended = await leading.end()
    assert (ended.code, "could not be written: its reader does not take them" in ended.err) == (BROKEN_PIPE, True)


async def test_who_started_a_job_may_stop_reading_and_the_job_goes_on(site: HeldSite, tmp_path: Path):
    ended = await (await read_by_head(tmp_path, "start", "site.py", "--json", lines=1)).end()
    assert (ended.code, ended.err) == (BROKEN_PIPE, "")
    assert (await progress_of(tmp_path, "site")).finished_at is None


async def test_a_question_whose_answer_nobody_reads(tmp_path: Path):
    ended = await (await read_by_head(tmp_path, "--help", lines=0)).end()
    assert (ended.code, ended.err) == (BROKEN_PIPE, "")
