"""What the screen says while a worker waits for its next try."""

import msgspec
import pytest

from tests.unit.worker.fake_ports import lease
from trotline.model.lease import Lease
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.retry_status import MOST_SEEDS, RetryStatus

REFUSED = Retry(wait=14.2, why="unreachable: no connection: Connection refused")


def after(*outcomes: Outcome, at: float = 100.0) -> str:
    status = RetryStatus()
    for outcome in outcomes:
        status.note(FinishedVisit(lease=lease(1), outcome=outcome), 100.0)
    return status.text(at)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (REFUSED, "h.test: no connection: Connection refused, again in 14 s"),
        (Retry(wait=60, why="unreachable: robots.txt: 503"), "robots.txt of h.test: 503, again in 60 s"),
        (Snooze(wait=15, why="unreachable: the proxy is away"), "h.test: the proxy is away, again in 15 s"),
    ],
)
def test_the_cause_and_the_next_try_are_said(outcome: Outcome, told: str) -> None:
    assert after(outcome) == told


def test_time_goes_on() -> None:
    assert after(REFUSED, at=110.0).endswith("again in 4 s")
    assert after(REFUSED, at=115.0) == ""


@pytest.mark.parametrize("outcome", [Done(), Bury(why="gone: 404")])
def test_a_visit_that_ended_ends_the_news(outcome: Outcome) -> None:
    assert after(REFUSED, outcome) == ""


def test_a_hop_of_a_redirect_is_no_setback() -> None:
    assert after(Snooze(wait=0.0, why="moved")) == ""
    assert after(REFUSED, Snooze(wait=0.0, why="moved")) != ""


def page(number: int, parent: str) -> Lease:
    found = lease(number)
    return msgspec.structs.replace(found, task=msgspec.structs.replace(found.task, parent=parent, fingerprint=number))


def test_a_seed_that_waits_is_said_while_other_pages_are_read() -> None:
    status = RetryStatus()
    status.note(FinishedVisit(lease=page(1, ""), outcome=REFUSED), 100.0)
    status.note(FinishedVisit(lease=page(2, "http://h.test/"), outcome=Done()), 100.0)
    status.note(FinishedVisit(lease=page(3, "http://h.test/"), outcome=Retry(wait=5, why="broken: 503")), 100.0)

    assert status.text(100.0, idle=False) == "h.test: no connection: Connection refused, again in 14 s"
    status.note(FinishedVisit(lease=page(1, ""), outcome=Done()), 101.0)
    assert status.text(101.0, idle=False) == ""


def test_seeds_that_wait_are_remembered_within_bounds() -> None:
    status = RetryStatus()
    for number in range(MOST_SEEDS + 10):
        status.note(FinishedVisit(lease=page(number, ""), outcome=Retry(wait=1 + number, why="broken: 503")), 100.0)

    assert status.text(100.0, idle=False).endswith("again in 11 s"), "the oldest are forgotten"
