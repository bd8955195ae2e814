"""When a lane may be asked: spacing, horizon, places, giving up, and retry credit."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.rules.pace_lanes import BROKEN, EXACT, FAILING, NOW, failing, lane, ok
from trotline.model.pace import Pace, Rate
from trotline.rules import adaptive_pace, pace
from trotline.rules.adaptive_pace import FIRST_REST
from trotline.rules.pace import BREAKER, NEVER, RETRY_ALLOWANCE, RETRY_DRIP

# Reserving


def test_a_new_lane_may_start_at_once():
    starts, _ = pace.reserve(lane(), NOW, wanted=1, running=0, horizon=1.0)

    assert starts == [NOW]


calls = st.lists(
    st.tuples(st.floats(0, 5), st.integers(0, 20), st.integers(0, 10), st.floats(0, 2)), min_size=1, max_size=40
)


@given(st.floats(0.001, 100), calls)
def test_starts_are_an_interval_apart_over_any_window(per_second, calls):
    """F13's arithmetic: in any window at most rate x window + 1 starts, whoever asks, whenever."""
    asked = pace.open_lane(pace.bounds_of(Pace(Rate(per_second), concurrency=8)), NOW)
    now, every = NOW, []
    for later, wanted, running, horizon in calls:
        now += later
        starts, asked = pace.reserve(asked, now, wanted, running, horizon)
        every += starts

    assert every == sorted(every)
    assert all(second - first >= asked.floor - EXACT for first, second in pairwise(every))


@given(calls)
def test_no_start_is_before_now_or_beyond_the_horizon(calls):
    asked, now = lane("3/s"), NOW
    for later, wanted, running, horizon in calls:
        now += later
        starts, asked = pace.reserve(asked, now, wanted, running, horizon)
        assert all(now <= start <= now + horizon for start in starts)
        assert len(starts) <= min(wanted, max(0, asked.concurrency - running))


def test_an_idle_lane_saves_up_no_starts():
    _, used = pace.reserve(lane(), NOW, 1, 0, 1.0)

    starts, _ = pace.reserve(used, NOW + 3600, wanted=8, running=0, horizon=1.0)

    assert starts == [NOW + 3600, NOW + 3601]


def test_a_lane_without_free_places_gives_no_start_and_spends_none():
    full = lane(concurrency=2)

    assert pace.reserve(full, NOW, wanted=5, running=2, horizon=1.0) == ([], full)
    assert pace.free_at(full, NOW, running=2, horizon=1.0) == NEVER


def test_a_resting_lane_starts_when_its_rest_is_over():
    resting = lane(rest_until=NOW + 30)

    assert pace.reserve(resting, NOW, 1, 0, 1.0)[0] == []
    assert pace.reserve(resting, NOW + 29.5, 1, 0, 1.0)[0] == [NOW + 30]
    assert pace.free_at(resting, NOW, running=0, horizon=1.0) == NOW + 30


@given(st.floats(0, 100), st.floats(0, 100), st.integers(0, 10))
def test_a_lane_that_says_it_is_free_gives_a_start(next_start, rest, running):
    asked = lane(next_start=NOW + next_start, rest_until=NOW + rest)
    free = pace.free_at(asked, NOW, running, horizon=1.0)

    if free != NEVER:
        assert pace.reserve(asked, max(NOW, free) + EXACT, 1, running, 1.0)[0]


# Giving up


def test_a_lane_that_only_fails_is_given_up_after_our_patience():
    failed = failing(lane(), BREAKER)

    assert not pace.given_up(failed, NOW + 1800, patience=1800)
    assert pace.given_up(failed, NOW + 1801, patience=1800)


def test_a_lane_that_answered_lately_is_not_given_up():
    healed = adaptive_pace.learn(failing(lane(), BREAKER), ok(), NOW + 1000, 0.0)

    assert not pace.given_up(failing(healed, BREAKER, at=NOW + 1001), NOW + 1801, patience=1800)


def test_a_lane_with_few_failures_is_never_given_up():
    assert not pace.given_up(failing(lane(), BREAKER - 1), NOW + 1e9, patience=1800)


def test_a_forgiven_lane_has_one_more_chance():
    forgiven = pace.forgiven(failing(lane(), BREAKER))

    assert not pace.given_up(forgiven, NOW + 1e9, patience=1800)
    again = adaptive_pace.learn(forgiven, BROKEN, NOW + 5000, 0.0)
    assert again.rest_until == NOW + 5000 + FIRST_REST
    assert not pace.given_up(again, NOW + 5001, patience=1800)


# Retry credit


def test_only_a_failing_lane_counts_its_retries():
    assert pace.credit(lane(), NOW) == pace.UNCAPPED
    assert pace.credit(lane(**FAILING), NOW) == RETRY_ALLOWANCE
    assert pace.spend(lane(), NOW, fresh=0, retries=100, share=0.2) == lane()


def test_a_lane_fails_when_most_of_its_visits_do_and_no_longer_when_they_do_not():
    shaky, now = lane(), NOW
    for number in range(40):
        shaky = adaptive_pace.learn(shaky, BROKEN if number % 3 == 0 else ok(), now + number, 0.0)
        assert not pace.failing(shaky), "a third of them"
    shaky = failing(shaky, 5, at=now + 50)
    assert pace.failing(shaky)
    spent = pace.spend(shaky, now + 50, fresh=0, retries=10, share=0.2)
    for number in range(5):
        spent = adaptive_pace.learn(spent, ok(), now + 51 + number, 0.0)

    assert not pace.failing(spent)
    assert spent.credit == RETRY_ALLOWANCE, "the next trouble is another one"


def test_retries_spend_credit_and_first_attempts_earn_their_share():
    spent = pace.spend(lane(**FAILING), NOW, fresh=0, retries=10, share=0.2)
    assert pace.credit(spent, NOW) == 0.0

    earned = pace.spend(spent, NOW, fresh=10, retries=0, share=0.2)
    assert pace.credit(earned, NOW) == pytest.approx(2.0)


def test_a_lane_that_is_well_is_not_written_for_first_attempts():
    full = lane()

    assert pace.spend(full, NOW + 100, fresh=8, retries=0, share=0.2) is full


def test_a_lane_with_nothing_but_retries_left_still_ends():
    empty = pace.spend(lane(**FAILING), NOW, fresh=0, retries=10, share=0.2)

    due = pace.credit_at(empty, NOW)

    assert due == pytest.approx(NOW + 1 / RETRY_DRIP)
    assert pace.credit(empty, due + EXACT) >= 1.0 - EXACT


def test_a_lane_with_credit_may_retry_now():
    assert pace.credit_at(lane(), NOW) == NOW


def test_dripped_credit_cannot_be_spent_twice():
    """Ten seconds drip one retry; spending just that one leaves the same number, but at a later moment."""
    half = pace.spend(lane(**FAILING), NOW, fresh=0, retries=5, share=0.2)

    for _ in range(20):
        half = pace.spend(half, NOW + 10, fresh=0, retries=1, share=0.2)

    assert pace.credit(half, NOW + 10) == pytest.approx(5 + 1 - 20)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50)), max_size=60), st.floats(0, 1))
def test_retries_never_exceed_their_share_of_the_traffic(handed_out, share):
    """F16's arithmetic, for a caller that retries whenever it can."""
    used, now, fresh_total, retries_total = lane(**FAILING), NOW, 0, 0
    for later, fresh in handed_out:
        now += later
        retries = max(0, int(pace.credit(used, now)))
        used = pace.spend(used, now, fresh=fresh, retries=retries, share=share)
        fresh_total += fresh
        retries_total += retries

    allowed = RETRY_ALLOWANCE + share * fresh_total + RETRY_DRIP * (now - NOW)
    assert retries_total <= allowed + 1e-3


# Bounds


def test_a_rate_per_proxy_is_the_lanes_own_only_without_a_pool():
    asked = Pace(rate=Rate(0.5), slowest=Rate(0.1), per_proxy=True)

    assert pace.bounds_of(asked) == pace.Bounds(2.0, 10.0, 8)
    through = pace.bounds_of(asked, "residential")
    assert (through.floor < 0.001, through.ceiling, through.concurrency) == (True, 10.0, pace.MANY)
    assert pace.bounds_of(Pace(rate=Rate(0.5)), "residential") == pace.bounds_of(Pace(rate=Rate(0.5)))


def test_a_concurrency_that_was_set_holds_with_a_rate_per_proxy():
    assert pace.bounds_of(Pace(concurrency=3, per_proxy=True), "residential").concurrency == 3
