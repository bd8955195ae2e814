"""One host, one limit, eight worker processes with wrong clocks: the limit is used, and never exceeded."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.e2e.fleet import Servers
from tests.e2e.fleet_crawl import Terms, crawl
from tests.e2e.fleet_kills import at_work

from trotline.model.pace import START_SLACK
from trotline.testing.servers import missing

RATE = 20
"""Few enough for a machine that is busy with other tests to use them up."""
LATE = 0.25
"""Seconds. What is sent in time may be read late by a web server on a busy machine."""


def clock(offset: str) -> dict[str, str]:
    """What makes a process believe in another time of day. How fast time goes by it still sees."""
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        missing("libfaketime is not installed. Try: apt-get install faketime")
    keep = {"DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1"}
    return {"LD_PRELOAD": str(libraries[0]), "FAKETIME": offset, **keep}


def test_a_wrong_clock_is_wrong():
    program = "import time; print(time.time(), time.monotonic())"
    told = [
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **more}, capture_output=True, text=True, check=True
        ).stdout.split()
        for more in ({}, clock("+2h"))
    ]
    [(today, turning), (wrong, still_turning)] = [[float(part) for part in each] for each in told]
    assert 7000 < wrong - today < 7400
    assert 0 <= still_turning - turning < 100


def ahead(moments: list[float], rate: float) -> float:
    """Seconds by which starts were ahead of the rate, over the window in which they were most: in every window there
    are at most rate x (window + this) + 1 of them."""
    most = best = 0.0
    for number, moment in enumerate(moments):
        due = moment - number / rate
        best = max(best, due) if number else due
        most = max(most, best - due)
    return most


def test_what_is_measured_here_is_what_is_meant():
    assert ahead([0.0, 0.1, 0.2, 0.3], 10) == pytest.approx(0)
    assert ahead([0.0, 0.1, 0.1, 0.3], 10) == pytest.approx(0.1)
    assert ahead([5.0, 5.2, 5.4, 5.4, 5.4], 10) == pytest.approx(0.2), "a pause saves nothing up"


@pytest.mark.timeout(180)
async def test_eight_processes_share_a_limit_through_kills_and_wrong_clocks(both: Servers, tmp_path: Path):
    seconds = 12
    terms = Terms(hosts=1, pages=RATE * seconds, seeds=RATE * seconds, pace=f"{RATE}/s", at_once=64, thinks=0.0)
    async with crawl(tmp_path, *both.places(), terms) as job:
        fast = await job.worker("--processes", "4", env=clock("+2h"))
        await job.worker("--processes", "4", env=clock("-2h"))
        await job.done(RATE * 3)
        os.kill(at_work(fast)[0], signal.SIGKILL)
        await job.ended()
        books = await job.books()

    assert not books.trouble
    moments = sorted(moment for each in books.fetched.values() for moment in each)
    middle = moments[len(moments) // 5 : -len(moments) // 5]
    used = (len(middle) - 1) / (middle[-1] - middle[0]) / RATE
    workers = {visit["worker"] for visit in books.visits}
    print(f"{len(workers)} processes used {used:.1%} of the limit, at most {ahead(moments, RATE):.3f} s ahead of it")
    assert len(workers) >= 8, "all of them took part"
    assert ahead(moments, RATE) <= START_SLACK + LATE
    assert used <= 1.02
    begin, end = (datetime.fromtimestamp(moment, UTC) for moment in (moments[0], moments[-1]))
    hour = timedelta(hours=1)
    assert all(begin - hour < visit["leased_at"] < end + hour for visit in books.visits), "the server's time is stored"
    # Starts that the killed one had taken are lost, and a busy machine is late with some.
    assert used >= 0.9
