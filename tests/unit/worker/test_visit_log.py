"""The log lines of visits: errors of handlers at info, once a minute for each line of code that fails."""

import logging

import pytest

from tests.unit.worker.fake_ports import lease
from trotline.model.outcome import Bury, Done, Outcome
from trotline.worker import visit_log
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit_log import AGAIN_AFTER, VisitLog

FAILED = Bury(why="handler: ValueError at site.py:7", detail="Traceback ...\nValueError: no price")


def visits(*outcomes: Outcome) -> list[FinishedVisit]:
    return [FinishedVisit(lease=lease(number), outcome=outcome) for number, outcome in enumerate(outcomes, 1)]


def test_the_same_error_is_logged_again_after_a_minute_with_its_pages(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = VisitLog("j", "w", lambda: now)
    with caplog.at_level(logging.INFO, logger="trotline.commit"):
        log.settled(visits(FAILED, Done(), FAILED, Bury(why="404")))
        log.settled(visits(FAILED))
        now = AGAIN_AFTER
        log.settled(visits(FAILED, Bury(why="handler: KeyError at site.py:9")))
    said = [record.fields for record in caplog.records]
    assert [facts["pages"] for facts in said] == [1, 3, 1]
    assert [facts["error"] for facts in said] == [FAILED.detail, FAILED.detail, "handler: KeyError at site.py:9"]


def test_errors_without_end_are_not_logged_without_end(caplog: pytest.LogCaptureFixture) -> None:
    log = VisitLog("j", "w", lambda: 0.0)
    with caplog.at_level(logging.INFO, logger="trotline.commit"):
        log.settled(visits(*(Bury(why=f"handler: {number}") for number in range(visit_log.MOST_ERRORS + 5))))
    assert len(caplog.records) == visit_log.MOST_ERRORS
