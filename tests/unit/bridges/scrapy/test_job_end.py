"""What the log says of the job when a process ends."""

import logging

import pytest

from trotline.bridges.scrapy.job_end import JobEnd
from trotline.model.job import Progress, State

PLACE = "redis://:canary@queue:6379/0"


def progress(state: State) -> Progress:
    return Progress(waiting=0, leased=0, done=3, dead=0, started_at=1.0, now=100.0, state=state)


@pytest.mark.parametrize("announced", [True, False])
def test_a_job_that_was_cancelled_does_not_go_on(caplog: pytest.LogCaptureFixture, announced: bool) -> None:
    caplog.set_level(logging.INFO)
    end = JobEnd()
    assert end.decide(0, 0, progress(State.CANCELLED))
    end.log("shop-1", "shop", PLACE, "cancelled", announced=announced)
    assert "shop-1 was cancelled" in caplog.text
    assert "goes on" not in caplog.text


def test_a_process_that_is_stopped_says_how_the_job_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    JobEnd().log("shop-1", "shop", PLACE, "shutdown", announced=False)
    assert "goes on" in caplog.text


@pytest.mark.parametrize(("dead", "said"), [(1, "1 page is dead"), (1200, "1,200 pages are dead")])
def test_a_job_with_dead_pages_says_that_their_links_were_not_visited(
    caplog: pytest.LogCaptureFixture, dead: int, said: str
) -> None:
    end = JobEnd()
    end.dead = dead
    end.log("shop-1", "shop", PLACE, "finished", announced=True)
    assert said in caplog.text
    assert "trotline dead shop-1 --frontier redis://queue:6379/0 --revive" in caplog.text
    assert "canary" not in caplog.text


@pytest.mark.parametrize(("gone", "said"), [(True, "is not in the frontier any more"), (False, "the frontier failed")])
def test_a_job_whose_frontier_failed_is_not_said_to_go_on_in_other_processes(
    caplog: pytest.LogCaptureFixture, gone: bool, said: str
) -> None:
    end = JobEnd()
    end.fail(gone=gone)
    end.log("shop-1", "shop", PLACE, "frontier_failed", announced=False)
    assert said in caplog.text
    assert "from the start" in caplog.text
    assert "other processes" not in caplog.text
