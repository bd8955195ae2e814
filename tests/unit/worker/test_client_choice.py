"""A page that is blocked for the default client is tried once with the browser-like one."""

import random

import msgspec
import pytest

from tests.unit.worker.fake_ports import HTML, DiaryFrontier, DiarySink, SlowFetcher, lease, tools
from trotline.model.answer import Answer
from trotline.model.lease import Lease
from trotline.model.outcome import Done, Retry, Snooze
from trotline.model.proxy import Proxy, Way
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.spider.page import Page
from trotline.spider.spider import Spider
from trotline.testing.virtual_time import run_virtual
from trotline.worker.client_choice import ESCALATE_AFTER, ClientChoice
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor

pytest.importorskip("wreq")
BLOCKED = Verdict(Kind.BLOCKED, "403")
CHANCE = random.Random(1)


class Home:
    pools = ("default",)

    def way(self, lane: str, member: int) -> Way | None:
        return Proxy(host="proxy.example", port=3128)


def spider(**options: object) -> Spider:
    made = Spider("s", robots=False, **{"when_blocked": "browser", **options})  # type: ignore[arg-type]

    @made.page(name="page")
    def page(page: Page) -> dict[str, str]:
        return {"url": page.url}

    return made


def visitor(made: Spider, passes: set[str]) -> tuple[Visitor, list[str]]:
    """A visitor of a site that answers these clients, and the clients that asked."""
    asked: list[str] = []

    def answer(task: Task) -> Answer:
        asked.append(task.client)
        status = 200 if task.client in passes else 403
        return Answer(url=task.url, status=status, headers=HTML, body=b"<p>x</p>")

    ports = tools(DiaryFrontier([]), DiarySink([]), SlowFetcher(0.1, answer), spider=made)
    return Visitor(made, msgspec.structs.replace(ports, ways=Home())), asked


def of(number: int, client: str = "", member: int = 7, route: str = "page") -> Lease:
    given = lease(number)
    task = msgspec.structs.replace(given.task, client=client, route=route)
    return msgspec.structs.replace(given, task=task, member=member)


def visited(visits: Visitor, given: Lease) -> FinishedVisit:
    return run_virtual(visits.visit(given))


def test_the_next_attempt_is_with_the_browser_like_client_and_neither_lane_nor_proxy_is_charged() -> None:
    visits, asked = visitor(spider(retries=0), {"browser"})
    first = visited(visits, of(1))
    assert isinstance(first.outcome, Snooze) and first.outcome.task is not None
    assert (first.outcome.task.client, first.outcome.task.attempt) == ("browser", 0)
    assert first.outcome.why == "blocked: 403; next with the browser-like client"
    assert (first.feedback, first.member) == (None, MemberResult.UNCLEAR)
    assert first.request.verdict == "blocked"
    second = visited(visits, msgspec.structs.replace(of(1), task=first.outcome.task))
    assert (second.outcome, second.member) == (Done(), MemberResult.GOOD)
    assert asked == ["", "browser"]


def test_blocked_for_both_is_charged_as_without_this_setting() -> None:
    visits, _ = visitor(spider(), set())
    second = visited(visits, of(1, "browser"))
    assert second.member is MemberResult.BLOCKED
    direct = run_virtual(visitor(spider(), set())[0]._ask(of(1, "browser", member=0), 0.0, None))
    assert isinstance(direct.outcome, Retry) and direct.feedback is not None


def test_the_spiders_own_check_for_blocks_counts_too() -> None:
    visits, _ = visitor(spider(blocked=lambda page: "captcha"), {"", "browser"})
    first = visited(visits, of(1))
    assert isinstance(first.outcome, Snooze) and first.outcome.task is not None
    assert first.outcome.task.client == "browser"


def test_a_lane_where_only_the_browser_passes_uses_it_at_once() -> None:
    visits, asked = visitor(spider(), {"browser"})
    for number in range(ESCALATE_AFTER):
        assert isinstance(visited(visits, of(number)).outcome, Snooze)
        assert visited(visits, of(number, "browser")).outcome == Done()
    asked.clear()
    assert visited(visits, of(99)).outcome == Done()
    assert asked == ["browser"]


def test_a_page_that_the_default_client_gets_starts_the_count_anew() -> None:
    choice = ClientChoice()
    for _ in range(ESCALATE_AFTER - 1):
        choice.passed(of(1, "browser"))
    choice.passed(of(1))
    choice.passed(of(1, "browser"))
    assert choice.chosen(of(2)).task.client == ""
    for _ in range(ESCALATE_AFTER):
        choice.passed(of(1, "browser"))
    assert choice.chosen(of(2)).task.client == "browser"
    # The site blocks the browser-like client, too: from now on both are tried again.
    assert choice.again(of(3, "browser"), BLOCKED, CHANCE) is None
    assert choice.chosen(of(2)).task.client == ""


def test_what_no_retry_helps_is_not_tried_again() -> None:
    choice = ClientChoice()
    assert choice.again(of(1), Verdict(Kind.BLOCKED, "401 to a POST", final=True), CHANCE) is None
    assert choice.again(of(1), Verdict(Kind.BROKEN, "500"), CHANCE) is None
    waits = choice.again(of(1), Verdict(Kind.BLOCKED, "403", retry_after=30.0), CHANCE)
    assert waits is not None and waits.wait == 30.0


def test_a_route_with_the_browser_like_client_has_nothing_to_escalate_to() -> None:
    made = spider()

    @made.page(client="browser")
    def shielded(page: Page) -> dict[str, str]:
        return {"url": page.url}

    visits, _ = visitor(made, set())
    assert visited(visits, of(1, route="shielded")).member is MemberResult.BLOCKED


def test_without_the_setting_a_block_is_a_retry() -> None:
    visits, _ = visitor(spider(when_blocked=None), {"browser"})
    outcome = run_virtual(visits._ask(of(1, member=0), 0.0, None)).outcome
    assert isinstance(outcome, Retry)
