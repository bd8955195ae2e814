"""Every visit has a line for the ledger, stored with the records of its batch."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.unit.worker.fake_ports import (
    HTML,
    DiaryFrontier,
    DiarySink,
    SlowFetcher,
    lease,
    one_page_spider,
    tools,
    visit,
)
from trotline.errors import SinkUnreachable
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.lease import Lease
from trotline.model.record import Record
from trotline.model.visit_row import VisitRow
from trotline.ports.robots import UNMARKED, Marked, Permission
from trotline.testing.virtual_time import run_virtual
from trotline.worker.commit import Committer
from trotline.worker.finished_visit import MISSED_START, returned
from trotline.worker.visit import Visitor
from trotline.worker.worker_settings import WorkerPolicy

_POLICY = WorkerPolicy(batch=4)


class LedgerSink(DiarySink):
    keeps_visits = True

    def __init__(self, **more: Any) -> None:
        super().__init__([], **more)
        self.lines: dict[int, VisitRow] = {}

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        await super().write(batch)
        self.lines |= {visit.token: visit for visit in visits}


class Robots:
    def __init__(self, permission: Permission) -> None:
        self.permission = permission

    async def ask(self, url: str, marked: Marked = UNMARKED, way: object = None) -> Permission:
        return self.permission


def line(answer: Any = None, *, one: Lease | None = None, robots: Permission | None = None, blocked: str = ""):
    spider = one_page_spider()
    if blocked:
        spider.blocked = (lambda page: blocked in page.text,)
    ports = tools(
        DiaryFrontier([]),
        DiarySink([]),
        SlowFetcher(0.25, answer),
        spider=spider,
        robots=Robots(robots) if robots else None,
    )
    return run_virtual(Visitor(spider, ports).visit(one or lease(3))).line("shop-1", "w1")


def says(status: int, *headers: tuple[str, str], body: bytes = b"<h1>tea</h1>"):
    return lambda task: Answer(url=task.url, status=status, headers=(*HTML, *headers), body=body)


def test_a_page_that_was_read_tells_all_there_is_to_tell():
    task = msgspec.structs.replace(lease(3).task, parent="http://h.test/", depth=2, created_at=900.0, attempt=1)
    body = b"<h1>tea</h1><a href=/a>a</a><a href=/b>b</a>"
    got = line(says(200, body=body), one=msgspec.structs.replace(lease(3), task=task))

    assert got == VisitRow(
        job="shop-1",
        token=3,
        site="s",
        url="http://h.test/3",
        fingerprint=3,
        route="page",
        lane="h.test",
        worker="w1",
        leased_at=1000.0,
        attempt=1,
        depth=2,
        parent="http://h.test/",
        found_at=900.0,
        status=200,
        took=pytest.approx(0.25, abs=0.001),
        size=len(body),
        verdict="ok",
        outcome="done",
        records=1,
        children=2,
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (says(404), ("done", 404, "gone", "gone: 404")),
        (says(503), ("retry", 503, "broken", "broken: 503")),
        (says(429), ("snooze", 429, "throttled", "throttled: 429")),
        (
            lambda task: Failure(url=task.url, trouble=FailureKind.NO_SUCH_HOST, why="no such host"),
            ("bury", 0, "unreachable", "unreachable: no such host"),
        ),
    ],
)
def test_a_page_that_failed_says_how_and_what_becomes_of_it(answer, told):
    got = line(answer)

    assert (got.outcome, got.status, got.verdict, got.why) == told
    assert (got.records, got.children) == (0, 0)


def test_a_redirect_says_where_to():
    got = line(says(301, ("location", "/new?sid=5ecret5ecret")))

    assert (got.outcome, got.verdict, got.why) == ("snooze", "moved", "moved")
    assert got.moved_to == "http://h.test/new?sid=(hidden)"


def test_a_redirect_out_of_scope_says_so():
    got = line(says(302, ("location", "https://elsewhere.test/")))

    assert (got.outcome, got.why) == ("done", "moved out of scope: host")
    assert got.moved_to == "https://elsewhere.test/"


def test_the_word_of_the_spider_weighs_more_than_the_status():
    got = line(says(200, body=b"<h1>are you human?</h1>"), blocked="human")

    assert (got.status, got.verdict, got.outcome) == (200, "blocked", "retry")


def test_a_page_that_robots_txt_forbids_is_a_visit_without_a_request():
    got = line(robots=Permission(allowed=False))

    assert (got.outcome, got.verdict, got.why) == ("done", "refused", "refused: robots.txt")
    assert (got.status, got.took, got.size) == (0, 0.0, 0)


def test_a_visit_that_missed_its_start_time_is_a_row_too():
    got = returned(lease(4), MISSED_START).line("shop-1", "w1")

    assert (got.token, got.outcome, got.verdict, got.why) == (4, "snooze", "", "missed its start time")


def test_secrets_of_a_url_are_not_in_its_line():
    task = msgspec.structs.replace(
        lease(3).task,
        url="http://h.test/?token=5ecret5ecret&a=1",
        parent="http://u:5ecret5ecret@h.test/?sid=5ecret5ecret",
    )
    got = line(says(500), one=msgspec.structs.replace(lease(3), task=task))

    assert "5ecret5ecret" not in repr(got)
    assert got.url == "http://h.test/?token=(hidden)&a=1"


# The committer


def commit(sink: Any, *visits: Any, policy: WorkerPolicy = _POLICY) -> DiaryFrontier:
    frontier = DiaryFrontier([])

    async def story() -> None:
        committer = Committer("w1", tools(frontier, sink, job="shop-1"), policy, set())
        running = asyncio.create_task(committer.run())
        for one in visits:
            committer.add(one)
        committer.close()
        await running

    run_virtual(story())
    return frontier


def test_every_visit_of_a_batch_is_stored_with_or_without_records():
    sink = LedgerSink()

    commit(sink, visit(1, records=["a"]), visit(2), visit(3))

    assert {1, 2, 3} == sink.lines.keys()
    assert {("shop-1", "w1")} == {(line.job, line.worker) for line in sink.lines.values()}
    assert sink.rows == {"a"}


def test_a_batch_that_could_not_be_stored_is_tried_again_with_its_visits():
    sink = LedgerSink(away=2)

    frontier = commit(sink, visit(1), visit(2, records=["a"]))

    assert {1, 2} == sink.lines.keys() == frontier.settled.keys()


def test_lines_are_stored_before_the_leases_are_settled():
    class Refusing(LedgerSink):
        async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
            if not self.lines:
                self.lines = {visit.token: visit for visit in visits}
                assert frontier.settled == {}
                raise SinkUnreachable("disk full")

    sink, frontier = Refusing(), DiaryFrontier([])
    frontier = commit(sink, visit(1))

    assert {1} == frontier.settled.keys()


def test_a_sink_that_knows_nothing_of_visits_is_handed_none():
    sink = DiarySink([])

    commit(sink, visit(1, records=["a"]), visit(2))

    assert sink.rows == {"a"}


def test_a_policy_without_visits_leaves_the_ledger_alone():
    sink = LedgerSink()

    commit(sink, visit(1, records=["a"]), visit(2), policy=WorkerPolicy(batch=4, visits=False))

    assert sink.lines == {}
    assert sink.rows == {"a"}


def test_a_sink_that_wants_no_visits_is_not_written_to_without_records():
    sink = LedgerSink()
    sink.keeps_visits = False

    commit(sink, visit(1))

    assert sink.lines == {}
    assert sink._diary == []


def test_a_retry_counts_its_route_and_names_a_page_of_each_reason_once():
    spider = one_page_spider()
    ports = tools(DiaryFrontier([]), DiarySink([]), SlowFetcher(0.25, says(503)), spider=spider, robots=None)
    failed = run_virtual(Visitor(spider, ports).visit(lease(3)))
    named: set[str] = set()

    first, second = failed.settlement(named), failed.settlement(named)

    assert first.tallies[f"retried route: {failed.lease.task.route}"] == 1
    assert first.examples == {"retry: broken: 503": failed.lease.task.url}
    assert (second.examples, second.tallies) == ({}, first.tallies)
