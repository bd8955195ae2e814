"""A lane that several jobs use: whose bounds hold, whose turn it is, and what a new pace changes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.rules.pace_lanes import EXACT, NOW, lane
from trotline.model.lease import LaneFeedback
from trotline.model.verdict import Kind
from trotline.ports.frontier import HORIZON
from trotline.rules import adaptive_pace, lane_sharing, pace
from trotline.rules.lane_sharing import FORGETS, IN_FORCE, YIELD
from trotline.rules.pace import NEVER, Bounds, Lane

QUICK, SLOW = Bounds(0.1, 60.0, 8), Bounds(2.0, 120.0, 2)


def quick_lane() -> Lane:
    return pace.open_lane(QUICK, NOW)


def start(known: Lane, job: str, bounds: Bounds, now: float, running: int = 0) -> tuple[list[float], Lane]:
    known = lane_sharing.claimed(known, job, bounds, now, HORIZON)
    starts, known = pace.reserve(known, now, 1, running, HORIZON)
    return starts, lane_sharing.used(known, job, now) if starts else known


def in_force(known: Lane) -> Bounds:
    return Bounds(known.floor, known.ceiling, known.concurrency)


def test_the_slowest_of_the_paces_in_force_wins():
    _, known = start(quick_lane(), "a", QUICK, NOW)
    _, known = start(known, "b", SLOW, NOW)

    assert in_force(known) == SLOW
    assert in_force(lane_sharing.claimed(known, "a", QUICK, NOW + 5, HORIZON)) == SLOW


def test_bounds_are_mixed_of_the_slowest_of_each():
    _, known = start(quick_lane(), "a", Bounds(1.0, 10.0, 1), NOW)
    _, known = start(known, "b", Bounds(0.5, 60.0, 4), NOW)

    assert in_force(known) == Bounds(1.0, 60.0, 1)


def test_the_next_start_keeps_the_new_interval_to_the_last_one():
    [first], known = start(quick_lane(), "a", QUICK, NOW)

    known = lane_sharing.claimed(known, "b", SLOW, NOW, HORIZON)

    assert known.next_start >= first + SLOW.floor


def test_a_pace_is_in_force_until_its_job_has_had_no_start_for_a_while():
    _, known = start(quick_lane(), "b", SLOW, NOW)

    assert in_force(lane_sharing.claimed(known, "a", QUICK, NOW + IN_FORCE - 1, HORIZON)) == SLOW
    assert in_force(lane_sharing.claimed(known, "a", QUICK, NOW + IN_FORCE + 1, HORIZON)) == QUICK


def test_a_slow_pace_is_in_force_for_two_of_its_intervals():
    hourly = Bounds(3600.0, 3600.0, 1)
    _, known = start(quick_lane(), "b", hourly, NOW)

    later = lane_sharing.claimed(known, "a", QUICK, NOW + 7100, HORIZON)
    assert in_force(later) == hourly
    free = lane_sharing.claimed(known, "a", QUICK, NOW + 7300, HORIZON)
    assert in_force(free) == QUICK
    assert free.next_start <= NOW + 7300 + HORIZON + QUICK.floor, "nobody waits for an interval that is gone"


def test_the_pace_of_a_job_that_ended_is_in_force_no_more():
    _, known = start(quick_lane(), "b", SLOW, NOW)

    known = lane_sharing.claimed(known, "a", QUICK, NOW + 1, HORIZON, frozenset({"a"}))

    assert in_force(known) == QUICK
    assert known.interval == QUICK.floor
    assert [claim.job for claim in known.claims] == ["a"]


def test_what_a_lane_has_learnt_outlives_another_pace():
    _, known = start(quick_lane(), "a", QUICK, NOW)
    known = adaptive_pace.learn(known, LaneFeedback(Kind.BROKEN), NOW, 0.0)
    slowed = known.interval

    assert lane_sharing.claimed(known, "b", QUICK, NOW + 1, HORIZON).interval == slowed > QUICK.floor


def test_the_operators_word_beats_all_until_it_is_taken_back():
    _, known = start(quick_lane(), "b", SLOW, NOW)
    word = Bounds(0.5, 0.5, 3)

    known = lane_sharing.ordered(known, word, NOW, HORIZON)
    assert in_force(lane_sharing.claimed(known, "a", QUICK, NOW, HORIZON)) == word
    assert in_force(lane_sharing.claimed(known, "b", SLOW, NOW, HORIZON)) == word

    assert in_force(lane_sharing.ordered(known, None, NOW, HORIZON)) == SLOW


def test_a_crawl_delay_holds_whatever_the_operator_says():
    known = adaptive_pace.learn(quick_lane(), LaneFeedback(Kind.OK, interval=5.0), NOW, 0.0)

    assert lane_sharing.ordered(known, QUICK, NOW, HORIZON).interval == 5.0


def test_a_lane_that_nobody_used_for_long_forgets_what_it_learnt_but_not_what_it_was_told():
    _, known = start(quick_lane(), "a", QUICK, NOW)
    known = adaptive_pace.learn(known, LaneFeedback(Kind.BROKEN, interval=3.0), NOW, 0.0)
    known = lane_sharing.ordered(known, SLOW, NOW, HORIZON)

    later = lane_sharing.claimed(known, "b", QUICK, NOW + FORGETS + 60, HORIZON)

    assert (later.failures, later.asked, later.ordered) == (0, 3.0, SLOW)


def test_who_had_the_last_turn_lets_another_go_first_for_a_moment():
    _, known = start(quick_lane(), "a", QUICK, NOW - 1)
    known = lane_sharing.claimed(known, "b", QUICK, NOW - 0.9, HORIZON)
    _, known = start(known, "a", QUICK, NOW - 0.5)
    known = lane_sharing.waits(known, "b", QUICK, NOW)

    assert lane_sharing.yields_until(known, "a", NOW) == NOW + YIELD
    assert lane_sharing.yields_until(known, "b", NOW) == 0
    assert lane_sharing.yields_until(known, "a", NOW + YIELD) == 0, "who does not come is not waited for"
    _, known = start(known, "b", QUICK, NOW)
    assert lane_sharing.yields_until(known, "a", NOW) == 0


def test_who_waits_for_a_place_may_have_it_when_one_is_given_back():
    known = lane_sharing.waits(start(quick_lane(), "a", QUICK, NOW)[1], "b", QUICK, NEVER)

    assert lane_sharing.freed(known, "b", NOW + 9) is known, "its own places are no news to it"
    known = lane_sharing.freed(known, "a", NOW + 9)

    assert lane_sharing.claim_of(known, "b").wants_at == NOW + 9
    assert lane_sharing.freed(known, "a", NOW + 10) is known


def test_a_job_that_is_alone_takes_all_it_wants_and_leaves_no_trace_of_waiting():
    _, known = start(quick_lane(), "a", QUICK, NOW)

    assert lane_sharing.portion(known, "a", 64) == 64
    assert lane_sharing.waits(known, "a", QUICK, NOW + 5) is known
    _, shared = start(known, "b", QUICK, NOW)
    assert lane_sharing.portion(shared, "a", 64) == 1


asks = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.0, 3.0)), max_size=60)
many_bounds = st.builds(
    lambda floor, more, places: Bounds(floor, floor * more, places),
    st.floats(0.01, 30.0),
    st.floats(1.0, 10.0),
    st.integers(1, 8),
)


@given(st.fixed_dictionaries({"a": many_bounds, "b": many_bounds, "c": many_bounds}), asks)
def test_starts_of_all_jobs_keep_the_floor_of_whoever_is_in_force(bounds, asks):
    """F13's arithmetic over jobs: no start is closer to the one before than the floor of its own job."""
    known, now, last = quick_lane(), NOW, None
    for job, later in asks:
        now += later
        starts, known = start(known, job, bounds[job], now)
        for moment in starts:
            if last is not None:
                assert moment - last >= bounds[job].floor - EXACT
            last = moment


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
