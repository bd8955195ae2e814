"""What a lane learns from its answers: its interval, its rests, and the breaker."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.rules.pace_lanes import BROKEN, NOW, failing, lane, ok
from trotline.model.lease import LaneFeedback
from trotline.model.verdict import Kind
from trotline.rules import adaptive_pace, pace
from trotline.rules.adaptive_pace import FIRST_REST, LONGEST_REST, THROTTLE_REST
from trotline.rules.pace import BREAKER, NEVER

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
    why = "blocked by the site" if kind is Kind.BLOCKED else f"{BREAKER} failures in a row"
    assert failed.rest_why == why
    assert pace.allowed(failed, NOW) == 1, "one probe at a time"


def test_a_site_that_blocks_a_whole_pool_has_no_failures_that_were_not_counted():
    failed = adaptive_pace.learn(pace.suspected(lane()), LaneFeedback(Kind.BLOCKED, 0.1), NOW, 0.0)
    assert failed.rest_until > NOW
    assert failed.rest_why == "blocked by the site"


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


# Proxies


def test_a_site_that_blocks_all_members_opens_the_breaker_with_the_next_failure():
    suspected = pace.suspected(pace.open_lane(pace.Bounds(1.0, 60.0, 8), NOW))

    closed = adaptive_pace.learn(suspected, LaneFeedback(Kind.BLOCKED), NOW, 0.0)

    assert closed.rest_until > NOW
    assert pace.allowed(closed, NOW) == 1
