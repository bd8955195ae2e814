"""When a lane may be asked: spacing, horizon, places, and what its answers change."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.lease import LaneFeedback
from trotline.model.pace import Pace, Rate
from trotline.model.verdict import Kind
from trotline.ports.frontier import HORIZON
from trotline.rules import adaptive_pace, lane_sharing, pace
from trotline.rules.adaptive_pace import FIRST_REST, LONGEST_REST, THROTTLE_REST
from trotline.rules.pace import BREAKER, NEVER, RETRY_ALLOWANCE, RETRY_DRIP, Bounds, Lane

NOW = 1_750_000_000.0
EXACT = 1e-6
"""Moments are floats around 1.75e9: neighbours are 2.4e-7 apart."""


def lane(rate: str = "1/s", *, slowest: str = "1/m", concurrency: int = 8, **state: float) -> Lane:
    opened = pace.open_lane(pace.bounds_of(Pace(Rate.parse(rate), concurrency, Rate.parse(slowest))), NOW)
    return msgspec.structs.replace(opened, **state) if state else opened


def ok(took: float = 0.1, **more: float) -> LaneFeedback:
    return LaneFeedback(Kind.OK, took, **more)


BROKEN = LaneFeedback(Kind.BROKEN, 0.1)


FAILING = {"trouble": 1.0}
"""Every visit of late was a failure."""


def failing(fresh: Lane, times: int, *, at: float = NOW) -> Lane:
    for _ in range(times):
        fresh = adaptive_pace.learn(fresh, BROKEN, at, 0.0)
    return fresh


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


# Learning: good answers


def test_good_answers_at_full_pace_change_no_interval():
    steady = adaptive_pace.learn(lane(), ok(), NOW, 0.0)

    assert steady.interval == 1.0
    assert adaptive_pace.learn(steady, ok(), NOW + 1, 0.0) is steady, "and nothing is written for them"


def test_a_slowed_lane_comes_back_up_slowly_and_never_above_the_spiders_pace():
    slowed = lane(interval=30.0)
    seen = []
    for _ in range(300):
        slowed = adaptive_pace.learn(slowed, ok(), NOW, 0.0)
        seen.append(slowed.interval)

    assert all(later <= before for before, later in pairwise(seen))
    assert seen[0] > 29, "not at once"
    assert seen[-1] == slowed.floor == 1.0


def test_rising_latency_slows_down_before_anything_fails():
    steady = lane()
    for number in range(50):
        steady = adaptive_pace.learn(steady, ok(0.1), NOW + number, 0.0)
    for number in range(20):
        steady = adaptive_pace.learn(steady, ok(3.0), NOW + 50 + 2 * number, 0.0)

    assert steady.interval > 1.5


def test_a_site_that_is_always_slow_is_not_slowed_down_for_it():
    slow = lane()
    for number in range(100):
        slow = adaptive_pace.learn(slow, ok(8.0), NOW + number, 0.0)

    assert slow.interval == 1.0


@pytest.mark.parametrize("kind", [Kind.OK, Kind.GONE, Kind.MOVED, Kind.UNCHANGED])
def test_any_answer_heals_a_failing_lane(kind):
    healed = adaptive_pace.learn(failing(lane(), BREAKER), LaneFeedback(kind, 0.1), NOW + 10, 0.0)

    assert (healed.failures, healed.failing_since, healed.rests, healed.rest_why) == (0, 0.0, 0, "")
    assert pace.allowed(healed, NOW) == 8


def test_what_we_refused_ourselves_says_nothing_about_the_lane():
    shy = failing(lane(), 3)

    assert adaptive_pace.learn(shy, LaneFeedback(Kind.REFUSED), NOW, 0.0) is shy


# Learning: throttled


def test_a_throttled_lane_slows_down_and_rests():
    told = adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED), NOW, 0.5)

    assert 1.9 < told.interval < 2.1
    assert NOW + THROTTLE_REST <= told.rest_until <= NOW + 2 * THROTTLE_REST
    assert told.rest_why == "rate limited"
    assert told.failures == 0


def test_a_lane_rests_as_long_as_it_was_asked_to():
    told = adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED, rest=120), NOW, 0.9)

    assert told.rest_until == NOW + 120
    assert told.rest_why == "rate limited: Retry-After 120 s"


def test_a_later_shorter_rest_does_not_end_a_longer_one():
    told = adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED, rest=120), NOW, 0.0)

    assert adaptive_pace.learn(told, LaneFeedback(Kind.THROTTLED, rest=1), NOW + 5, 0.0).rest_until == NOW + 120


def test_the_same_bad_news_from_many_visits_in_flight_slows_once():
    told = lane()
    for number in range(50):
        told = adaptive_pace.learn(told, LaneFeedback(Kind.THROTTLED), NOW + number / 100, 0.0)

    assert told == adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED), NOW, 0.0)


def test_a_lane_with_no_noticeable_interval_slows_noticeably():
    told = adaptive_pace.learn(lane("100000/s"), LaneFeedback(Kind.THROTTLED), NOW, 0.0)

    assert told.interval >= adaptive_pace.SLOWEST_STEP


def test_after_a_throttle_one_probe_at_a_time():
    told = adaptive_pace.learn(lane("10/s"), LaneFeedback(Kind.THROTTLED, rest=3), NOW, 0.0)

    starts, probed = pace.reserve(told, NOW + 3, wanted=8, running=0, horizon=1.0)

    assert starts == [NOW + 3]
    assert pace.free_at(probed, NOW + 3, running=1, horizon=1.0) == NEVER
    healed = adaptive_pace.learn(probed, ok(), NOW + 3.1, 0.0)
    assert pace.allowed(healed, NOW + 3.1) == 8


def test_what_was_asked_before_the_rest_proves_nothing():
    told = adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED, rest=3), NOW, 0.0)

    assert pace.allowed(adaptive_pace.learn(told, ok(), NOW + 1, 0.0), NOW + 3) == 1


def test_probes_that_are_told_too_fast_again_make_the_rests_longer_and_not_the_interval():
    told, now, rests = adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED, rest=1), NOW, 0.0), NOW, []
    interval = told.interval
    for _ in range(12):
        rests.append(told.rest_until - now)
        now = told.rest_until
        told = adaptive_pace.learn(told, LaneFeedback(Kind.THROTTLED, rest=1), now, 0.0)

    assert rests[:4] == pytest.approx([1, 4, 8, 16])
    assert max(rests) == pytest.approx(LONGEST_REST)
    assert told.interval == interval, "one visit alone cannot have been too fast"


def test_a_lane_that_only_says_too_fast_is_given_up_with_a_reason_of_its_own():
    told, now = adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED), NOW, 0.0), NOW
    for _ in range(BREAKER):
        assert pace.given_up(told, now, patience=1800) == ""
        now = told.rest_until
        told = adaptive_pace.learn(told, LaneFeedback(Kind.THROTTLED), now, 0.0)

    assert pace.given_up(told, NOW + 1801, patience=1800).startswith("throttled: lane given up after 1800 s")


# Learning: failures


@pytest.mark.parametrize("kind", [Kind.BROKEN, Kind.UNREACHABLE, Kind.BLOCKED])
def test_failures_in_a_row_open_the_breaker(kind):
    failed = lane()
    for _ in range(BREAKER - 1):
        failed = adaptive_pace.learn(failed, LaneFeedback(kind, 0.1), NOW, 0.0)
    assert failed.rest_until == 0.0
    assert pace.allowed(failed, NOW) == 8

    failed = adaptive_pace.learn(failed, LaneFeedback(kind, 0.1), NOW, 0.0)

    assert failed.rest_until == NOW + FIRST_REST
    assert failed.rest_why == f"{BREAKER} failures in a row"
    assert pace.allowed(failed, NOW) == 1, "one probe at a time"


def test_one_good_answer_between_failures_keeps_the_breaker_closed():
    mixed = adaptive_pace.learn(failing(lane(), BREAKER - 1), ok(), NOW, 0.0)

    assert failing(mixed, BREAKER - 1).rest_until == 0.0


def test_a_failing_lane_is_probed_by_one_visit():
    probed = failing(lane("10/s"), BREAKER)

    starts, probed = pace.reserve(probed, NOW + 60, wanted=8, running=0, horizon=1.0)

    assert len(starts) == 1
    assert pace.reserve(probed, NOW + 61, wanted=8, running=1, horizon=1.0)[0] == []


def test_failures_of_visits_in_flight_do_not_lengthen_a_rest():
    resting = failing(lane(), BREAKER)

    assert failing(resting, 5).rest_until == resting.rest_until
    assert failing(resting, 5).rests == 1


def test_every_rest_is_longer_up_to_the_longest():
    failed, now, rests = failing(lane(), BREAKER - 1), NOW, []
    for _ in range(3000):
        failed = adaptive_pace.learn(failed, BROKEN, now, 0.0)
        rests.append(failed.rest_until - now)
        now = failed.rest_until

    assert rests[:4] == [5, 10, 20, 40]
    assert max(rests) == rests[-1] == LONGEST_REST


def test_the_ends_of_rests_are_spread_by_chance():
    early, late = (adaptive_pace.learn(failing(lane(), BREAKER - 1), BROKEN, NOW, chance) for chance in (0.0, 0.99))

    assert FIRST_REST <= early.rest_until - NOW < late.rest_until - NOW <= FIRST_REST * 1.25


def test_a_broken_answer_that_asks_for_quiet_gets_it_when_the_breaker_opens():
    asked = adaptive_pace.learn(failing(lane(), BREAKER - 1), LaneFeedback(Kind.BROKEN, rest=300), NOW, 0.0)

    assert asked.rest_until == NOW + 300


news = st.builds(
    LaneFeedback,
    st.sampled_from(list(Kind)),
    st.floats(0, 60),
    st.one_of(st.just(0.0), st.floats(0, 3600)),
    st.one_of(st.just(0.0), st.floats(0, 1000)),
)


@given(st.lists(st.tuples(news, st.floats(0, 30), st.floats(0, 0.999)), max_size=60))
def test_whatever_a_lane_hears_its_interval_stays_between_its_bounds(heard):
    known, now = lane("2/s", slowest="6/m"), NOW
    for one, later, chance in heard:
        now += later
        before, known = known, adaptive_pace.learn(known, one, now, chance)
        assert 0.5 <= pace.shortest(known) <= known.interval <= known.ceiling == 10
        assert known.rest_until >= before.rest_until, "a rest is never cut short by news"
        assert known.failures >= 0
        assert (known.failures > 0 or known.rests > 0) == (known.failing_since > 0)


# Crawl-delay


def test_a_crawl_delay_raises_the_floor():
    asked = adaptive_pace.learn(lane("2/s"), ok(interval=5.0), NOW, 0.0)

    assert (pace.shortest(asked), asked.interval) == (5.0, 5.0)
    assert pace.reserve(asked, NOW, 3, 0, 11.0)[0] == [NOW + 5, NOW + 10], "counted from the news"


def test_a_crawl_delay_never_makes_a_lane_faster_nor_slower_than_the_slowest_pace():
    assert adaptive_pace.learn(lane("6/m"), ok(interval=1.0), NOW, 0.0).interval == 10.0
    assert adaptive_pace.learn(lane(slowest="1/m"), ok(interval=86400.0), NOW, 0.0).interval == 60.0


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


# A new pace


@given(
    old=st.floats(1e-4, 100.0),
    new=st.floats(1e-4, 100.0),
    slowed=st.floats(1.0, 50.0),
    wanted=st.integers(1, 30),
    later=st.floats(0.0, 5.0),
)
def test_a_new_pace_keeps_its_interval_to_what_is_reserved_and_waits_no_longer(old, new, slowed, wanted, later):
    before, reserved = pace.reserve(lane("1/s", concurrency=10**6, interval=old), NOW, wanted, 0, HORIZON)
    grown = msgspec.structs.replace(reserved, interval=old * slowed)

    repaced = lane_sharing.ordered(grown, Bounds(new, new, 10**6), NOW + later, HORIZON)
    first = max(NOW + later, repaced.next_start)

    assert first >= before[-1] + min(old, new) - EXACT
    assert first <= NOW + later + HORIZON + new + EXACT
    assert (repaced.interval, repaced.floor, repaced.ceiling) == pytest.approx((new, new, new))


def test_a_new_pace_does_not_end_a_rest_that_a_site_asked_for():
    resting = adaptive_pace.learn(lane(), LaneFeedback(Kind.THROTTLED, rest=30.0), NOW, 0.0)

    repaced = lane_sharing.ordered(resting, Bounds(0.01, 60.0, 8), NOW, HORIZON)

    assert pace.free_at(repaced, NOW, 0, HORIZON) == NOW + 30.0


def test_a_rate_per_proxy_is_the_lanes_own_only_without_a_pool():
    asked = Pace(rate=Rate(0.5), slowest=Rate(0.1), per_proxy=True)

    assert pace.bounds_of(asked) == pace.Bounds(2.0, 10.0, 8)
    through = pace.bounds_of(asked, "residential")
    assert (through.floor < 0.001, through.ceiling, through.concurrency) == (True, 10.0, pace.MANY)
    assert pace.bounds_of(Pace(rate=Rate(0.5)), "residential") == pace.bounds_of(Pace(rate=Rate(0.5)))


def test_a_concurrency_that_was_set_holds_with_a_rate_per_proxy():
    assert pace.bounds_of(Pace(concurrency=3, per_proxy=True), "residential").concurrency == 3


def test_a_site_that_blocks_all_members_opens_the_breaker_with_the_next_failure():
    suspected = pace.suspected(pace.open_lane(pace.Bounds(1.0, 60.0, 8), NOW))

    closed = adaptive_pace.learn(suspected, LaneFeedback(Kind.BLOCKED), NOW, 0.0)

    assert closed.rest_until > NOW
    assert pace.allowed(closed, NOW) == 1
