"""A Scrapy process calls the frontier seldom, and has enough to do."""

from trotline.bridges.scrapy.lease_demand import (
    ANSWERED_WITHIN,
    BUSY,
    GATHER,
    GATHER_BUSY,
    HAD_NO_MORE,
    LeaseDemand,
)

SLOTS = 16
IDLE, SHORT_OF_CPU = 0.0, 2 * BUSY


def demand(under_way: int, *, lag: float = IDLE, usual: int = SLOTS) -> LeaseDemand:
    """Of a process that had `usual` requests under way in the last interval."""
    made = LeaseDemand(SLOTS, lambda: lag)
    made.popped = usual
    made.measure(60.0)
    made.settled = usual - under_way
    made.asked(0.0)
    made.answered(SLOTS, SLOTS, 0.0)
    return made


def asks(demand: LeaseDemand, *, downloads: int, here: int = 0, now: float = 60.0) -> bool:
    return demand.wants_more(demand.room(downloads, here), here, now)


def test_the_first_call_is_at_once() -> None:
    assert asks(LeaseDemand(SLOTS, lambda: IDLE), downloads=0, now=0.0)


def test_a_process_that_waits_for_sites_asks_when_half_of_its_requests_are_left() -> None:
    assert asks(demand(8), downloads=8)
    assert not asks(demand(9), downloads=9)


def test_one_that_is_short_of_cpu_asks_when_a_quarter_is_left() -> None:
    assert asks(demand(4, lag=SHORT_OF_CPU), downloads=0)
    assert not asks(demand(5, lag=SHORT_OF_CPU), downloads=0)


def test_leases_that_have_arrived_are_not_asked_for_again() -> None:
    assert asks(demand(2), downloads=2, here=6)
    assert not asks(demand(2), downloads=2, here=7)
    assert not asks(demand(0), downloads=SLOTS)


def test_pages_in_slow_pipelines_stop_no_downloads() -> None:
    slow = demand(SLOTS)
    assert not asks(slow, downloads=0, now=GATHER - 0.01)
    assert asks(slow, downloads=0, now=GATHER)


def test_a_frontier_that_had_no_more_is_not_asked_again_at_once() -> None:
    slow = demand(SLOTS)
    slow.answered(SLOTS, SLOTS - 1, 0.0)
    assert not asks(slow, downloads=0, now=HAD_NO_MORE - 0.01)
    assert asks(slow, downloads=0, now=HAD_NO_MORE)


def test_after_results_it_is_asked_as_usual() -> None:
    slow = demand(SLOTS)
    slow.answered(SLOTS, SLOTS - 1, 0.0)
    slow.sent()
    assert not asks(slow, downloads=0, now=GATHER - 0.01)
    assert asks(slow, downloads=0, now=GATHER)


def test_a_process_with_little_left_asks_a_frontier_that_had_no_more() -> None:
    starving = demand(8)
    starving.answered(SLOTS, 1, 0.0)
    assert asks(starving, downloads=8, now=0.0)


def test_results_of_a_starving_process_are_sent_at_once_but_not_while_leases_are_on_their_way() -> None:
    starving = demand(0)
    assert not starving.has_to_send(0, ANSWERED_WITHIN / 2)
    assert starving.has_to_send(0, ANSWERED_WITHIN)
    assert not demand(SLOTS).has_to_send(0, 60.0)


def test_results_wait_longer_in_a_process_that_is_short_of_cpu() -> None:
    assert demand(0).gather_for == GATHER
    assert demand(0, lag=SHORT_OF_CPU).gather_for == GATHER_BUSY
