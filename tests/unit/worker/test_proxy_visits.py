"""A proxy's trouble is neither the task's nor the lane's; the ledger knows which proxy it was."""

import msgspec

from tests.unit.worker.fake_ports import HTML, DiaryFrontier, DiarySink, SlowFetcher, lease, one_page_spider, tools
from trotline.config.components import open_gate
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.outcome import Bury, Done, Snooze
from trotline.model.proxy import Proxy, Way
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.testing.virtual_time import run_virtual
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor

PROXY = "proxy.example:3128"


def visited(answer: Answer | Failure) -> FinishedVisit:
    spider = one_page_spider()
    ports = tools(DiaryFrontier([]), DiarySink([]), SlowFetcher(0.1, lambda _: answer), spider=spider)
    return run_virtual(Visitor(spider, ports).visit(lease(3)))


class Home:
    """The ways out of a worker with one proxy."""

    pools = ("", "default")
    proxied = True

    def account(self, lane: str, member: int) -> None:
        return None

    def proxy_id(self, account: object, moves: int, kept: int) -> int:
        return 0

    def proxy_of(self, account: object, moves: int, proxy: int = 0) -> None:
        return None

    def size(self, lane: str) -> int:
        return 1

    def way(self, lane: str, member: int) -> Way | None:
        return Proxy(host="proxy.example", port=3128) if lane.endswith(" via default") and member == 7 else None


def unnamed(pools: tuple[str, ...], *, spider_pool: str = "", task_pool: str = "") -> tuple[FinishedVisit, list[str]]:
    """A task without a member, at a worker with proxies; what was fetched."""
    spider = one_page_spider()
    spider.pool = spider_pool
    fetched = list[str]()

    def answer(task: Task) -> Answer:
        fetched.append(task.url)
        return Answer(url=task.url, status=200, headers=HTML, body=b"<p>x</p>")

    ports = tools(DiaryFrontier([]), DiarySink([]), SlowFetcher(0.1, answer), spider=spider)
    ports = msgspec.structs.replace(ports, ways=Home(), gate=open_gate(spider, pools))
    given = lease(3)
    given = msgspec.structs.replace(given, task=msgspec.structs.replace(given.task, pool=task_pool))
    return run_virtual(Visitor(spider, ports).visit(given)), fetched


def test_a_task_without_a_pool_moves_to_its_pool_where_proxies_are_set() -> None:
    visit, fetched = unnamed(("default",))
    assert fetched == []
    assert isinstance(visit.outcome, Snooze)
    assert visit.outcome.task is not None
    assert (visit.outcome.task.pool, visit.outcome.task.lane) == ("default", "h.test via default")
    visit, fetched = unnamed(("home",))
    assert (fetched, isinstance(visit.outcome, Snooze)) == ([], True), "no pool for it: it waits"


def test_pages_without_a_proxy_on_purpose_are_fetched() -> None:
    assert unnamed(("home",), task_pool="direct")[1] == ["http://h.test/3"]
    assert unnamed(("home",), spider_pool="direct")[1] == ["http://h.test/3"]


def failure(trouble: FailureKind) -> Failure:
    return Failure(url="http://h.test/3", trouble=trouble, why=f"proxy {PROXY} says no", proxy=PROXY)


def test_f50_a_proxy_in_trouble_costs_no_attempt_and_the_lane_hears_nothing() -> None:
    visit = visited(failure(FailureKind.PROXY))
    assert isinstance(visit.outcome, Snooze)
    assert visit.outcome.wait > 0
    assert visit.outcome.why == f"unreachable: proxy {PROXY} says no"
    assert visit.feedback is None
    assert visit.line("shop-1", "w").proxy == PROXY


def test_through_a_pool_a_page_whose_proxy_fails_is_soon_visited_through_another() -> None:
    spider = one_page_spider()
    ports = tools(
        DiaryFrontier([]), DiarySink([]), SlowFetcher(0.1, lambda _: failure(FailureKind.PROXY)), spider=spider
    )
    ports = msgspec.structs.replace(ports, ways=Home(), gate=open_gate(spider, ("default",)))
    given = lease(3)
    task = msgspec.structs.replace(given.task, pool="default", lane="h.test via default")
    visit = run_virtual(Visitor(spider, ports).visit(msgspec.structs.replace(given, task=task, member=7)))
    assert isinstance(visit.outcome, Snooze)
    assert 1.0 <= visit.outcome.wait <= 2.0
    assert visit.member is MemberResult.FAULT
    assert visit.settlement().tallies == {"proxy fault: default": 1}


def test_a_target_that_the_proxy_refuses_costs_an_attempt_and_the_lane_hears_nothing() -> None:
    visit = visited(failure(FailureKind.PROXY_REFUSED))
    assert not isinstance(visit.outcome, Snooze | Done)
    assert visit.feedback is None


def test_a_target_that_the_proxy_cannot_reach_is_told_to_the_lane() -> None:
    visit = visited(failure(FailureKind.CONNECT))
    assert not isinstance(visit.outcome, Snooze | Done)
    assert visit.feedback is not None


def test_the_ledger_knows_the_proxy_of_a_page() -> None:
    page = Answer(url="http://h.test/3", status=200, headers=HTML, body=b"<p>x</p>", proxy=PROXY)
    visit = visited(page)
    assert not isinstance(visit.outcome, Bury)
    assert visit.line("shop-1", "w").proxy == PROXY
