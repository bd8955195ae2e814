"""A proxy's trouble is neither the task's nor the lane's; the ledger knows which proxy it was."""

from tests.unit.worker.fake_ports import HTML, DiaryFrontier, DiarySink, SlowFetcher, lease, one_page_spider, tools
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.outcome import Bury, Done, Snooze
from trotline.testing.virtual_time import run_virtual
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.visit import Visitor

PROXY = "proxy.example:3128"


def visited(answer: Answer | Failure) -> FinishedVisit:
    spider = one_page_spider()
    ports = tools(DiaryFrontier([]), DiarySink([]), SlowFetcher(0.1, lambda _: answer), spider=spider)
    return run_virtual(Visitor(spider, ports).visit(lease(3)))


def failure(trouble: FailureKind) -> Failure:
    return Failure(url="http://h.test/3", trouble=trouble, why=f"proxy {PROXY} says no", proxy=PROXY)


def test_f50_a_proxy_in_trouble_costs_no_attempt_and_the_lane_hears_nothing() -> None:
    visit = visited(failure(FailureKind.PROXY))
    assert isinstance(visit.outcome, Snooze)
    assert visit.outcome.wait > 0
    assert visit.outcome.why == f"unreachable: proxy {PROXY} says no"
    assert visit.feedback is None
    assert visit.line("shop-1", "w").proxy == PROXY


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
