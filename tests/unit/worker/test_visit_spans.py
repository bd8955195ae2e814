import msgspec

from tests.unit.worker.fake_ports import lease, visit
from trotline.model.outcome import Retry
from trotline.model.task import Task
from trotline.worker.finished_visit import FinishedVisit, Request
from trotline.worker.visit_spans import visit_span


def test_a_visit_without_a_request_has_no_span():
    assert visit_span(visit(1), "shop-1", "w", 1.0, 2.0, 3.0) is None


def test_the_parts_follow_each_other():
    request = Request(verdict="ok", status=200, took=0.5, parse=0.25, answered_at=10.0, size=99)
    done = msgspec.structs.replace(visit(1, records=["a"]), request=request)
    span = visit_span(done, "shop-1", "w", 11.0, 12.0, 12.5)
    assert span is not None and [part.name for part in span.parts] == ["fetch", "parse", "commit"]
    fetch, parse, commit = span.parts
    assert (round(fetch.ended - fetch.began, 6), round(parse.ended - parse.began, 6)) == (0.5, 0.25)
    assert fetch.ended == parse.began and round(commit.began - fetch.ended, 6) == 1.0
    assert span.began == fetch.began and span.ended == commit.ended and not span.error


def test_a_retry_is_an_error_and_secrets_are_hidden():
    task = Task(url="http://u:pw@h.test/?token=canary-canary", route="page", lane="h.test", fingerprint=7)
    leased = msgspec.structs.replace(lease(1), task=task)
    failed = FinishedVisit(
        lease=leased,
        outcome=Retry(wait=1.0, why="503 for canary-canary"),
        request=Request(verdict="broken", status=503, took=0.5, answered_at=10.0),
    )
    span = visit_span(failed, "shop-1", "w", 11.0, 12.0, 12.5)
    assert span is not None and span.error.startswith("503") and len(span.parts) == 2
    assert "canary-canary" not in repr(span) and "pw@" not in repr(span)
