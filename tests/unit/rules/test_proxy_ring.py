"""The ring of a proxy pool: charges, quarantines, turns, and the difference between a ban and a site that blocks us."""

import random
from collections import Counter, deque

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.lease import LaneFeedback
from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.verdict import Kind
from trotline.rules import proxy_ring
from trotline.rules.proxy_ring import Identity, LaneRing, Place, Returned

NOW = 1_750_000_000.0
GOOD, BLOCKED, THROTTLED = MemberResult.GOOD, MemberResult.BLOCKED, MemberResult.THROTTLED
FAULT, UNUSED = MemberResult.FAULT, MemberResult.UNUSED
RULES = PoolRules()

chances = st.floats(0, 1, exclude_max=True)
moments = st.floats(NOW, NOW + 1e6)
results = st.sampled_from(MemberResult)
pool_rules = st.builds(
    PoolRules,
    rest=st.floats(1, 3600),
    longest_rest=st.floats(3600, 1e5),
    hold=st.integers(0, 50),
    interval=st.floats(0, 100),
)
identities = st.builds(
    Identity,
    member=st.just(1),
    due=moments,
    quality=st.integers(0, proxy_ring.BEST),
    uses=st.integers(0, 49),
    good=st.integers(0, proxy_ring.CLEARED),
    strikes=st.integers(0, proxy_ring.MOST_STRIKES),
    slow=st.integers(0, proxy_ring.MOST_SLOW),
    weight=st.integers(0, 255),
)
rings = st.builds(
    LaneRing,
    evidence=st.floats(0, proxy_ring.SUSPICION),
    share=st.floats(0, 1),
    suspected_at=st.sampled_from([0.0, NOW - 50]),
    blocked_at=st.sampled_from([0.0, NOW - 10]),
    gap=st.sampled_from([0.0, 2.0]),
)


def visited(result: MemberResult, identity: Identity | None = None, ring: LaneRing | None = None) -> Returned:
    return proxy_ring.returned(identity or Identity(member=1), ring or LaneRing(), result, NOW, RULES)


def after(*visits: MemberResult, ring: LaneRing | None = None) -> LaneRing:
    """The ring after visits through different members."""
    ring = ring or LaneRing()
    for result in visits:
        ring = visited(result, ring=ring).ring
    return ring


@given(identities, rings, results, moments, pool_rules, chances)
def test_every_value_stays_in_its_range(identity, ring, result, now, rules, chance):
    """So that an identity fits into a few bytes."""
    back = proxy_ring.returned(identity, ring, result, now, rules, chance=chance)

    assert 0 <= back.identity.quality <= proxy_ring.BEST
    assert 0 <= back.identity.good <= proxy_ring.CLEARED
    assert 0 <= back.identity.strikes <= proxy_ring.MOST_STRIKES
    assert 0 <= back.identity.slow <= proxy_ring.MOST_SLOW
    assert result is UNUSED or 0 <= back.identity.uses < (rules.hold or 2)
    assert 0 <= back.ring.evidence <= proxy_ring.SUSPICION
    assert 0 <= back.ring.share <= 1


def test_one_ban_is_forgotten_and_good_visits_change_the_ring_no_more():
    ring = after(BLOCKED)
    for _ in range(300):
        ring = after(GOOD, ring=ring)

    assert ring == LaneRing()


@given(identities, rings, results, moments, pool_rules, chances)
def test_no_visit_makes_a_member_due_earlier_and_a_ban_never_ends_early(identity, ring, result, now, rules, chance):
    after_visit = proxy_ring.returned(identity, ring, result, now, rules, chance=chance)
    back = after_visit.identity

    if result is BLOCKED:
        strikes = max(1, back.strikes)
        rest = min(rules.longest_rest, rules.rest * 2 ** (strikes - 1))
        least = min(rest, rules.probe) if after_visit.ring.site_blocked else rest
        assert back.due >= now + least - 0.001
        assert back.due <= max(identity.due, now + rest * (1 + proxy_ring.JITTER) + 0.011)
    assert back.due >= identity.due
    assert back.banned_at == (now if result is BLOCKED else identity.banned_at)


@given(identities, rings, results, moments, pool_rules, chances)
def test_who_is_due_late_stands_beside_the_ring(identity, ring, result, now, rules, chance):
    back = proxy_ring.returned(identity, ring, result, now, rules, chance=chance)

    # One that was slowed is due later than those behind it, however soon that is; an unused one goes back to its place.
    beside = 0.0 if back.identity.slow and result is not UNUSED else proxy_ring.PARKED
    late = back.identity.due > now + beside
    assert back.place is Place.RESTING if late else (result is BLOCKED or back.place is not Place.RESTING)


@given(moments)
def test_units_never_make_a_moment_earlier(moment):
    assert moment - 1e-6 <= proxy_ring.ceil_unit(moment) <= moment + 1 / proxy_ring.UNITS + 1e-6


@given(identities, moments, st.floats(0, 100))
def test_the_next_visit_is_an_interval_after_the_start(identity, start, wanted):
    assert proxy_ring.taken(identity, start, wanted).due >= start + wanted - 1e-6


# Charges: exactly one party pays


@given(identities, rings)
def test_an_unused_member_is_as_it_was(identity, ring):
    back = visited(UNUSED, identity, ring)

    assert (back.identity, back.ring, back.lift) == (identity, ring, proxy_ring.Lift.NONE)


@given(identities, rings)
def test_a_fault_or_a_429_is_no_ban_and_no_evidence(identity, ring):
    for result in (FAULT, THROTTLED):
        back = visited(result, identity, ring)
        assert back.ring == ring
        assert (back.identity.strikes, back.identity.banned_at) == (identity.strikes, identity.banned_at)


def test_a_fault_rests_the_member_in_its_lane_for_a_while():
    back = visited(FAULT)

    assert back.identity.due == NOW + proxy_ring.FIRST_DOWN
    assert back.identity.quality < proxy_ring.NEW


@pytest.mark.parametrize(("faults", "seconds"), [(1, 0), (2, 0), (3, 10), (4, 20), (5, 40), (20, 600), (10_000, 600)])
def test_faults_in_a_row_rest_a_member_for_all_lanes(faults, seconds):
    assert proxy_ring.down_for(faults, 0.0) == seconds


BAN = LaneFeedback(Kind.BLOCKED, took=1.0, interval=5.0, robots=True)
LANE_BLOCKED = LaneRing(evidence=7.0, suspected_at=NOW, blocked_at=NOW)


@pytest.mark.parametrize("result", [GOOD, UNUSED])
@pytest.mark.parametrize("ring", [LaneRing(), LANE_BLOCKED])
@pytest.mark.parametrize("news", [None, BAN, LaneFeedback(Kind.BROKEN)])
def test_a_lane_learns_what_is_not_its_members(result, ring, news):
    assert proxy_ring.lane_feedback(result, news, ring) == news


@pytest.mark.parametrize("result", [BLOCKED, THROTTLED, FAULT])
def test_a_lane_learns_nothing_from_bans_of_members_but_its_robots_txt(result):
    assert proxy_ring.lane_feedback(result, BAN, LaneRing()) == LaneFeedback(Kind.REFUSED, interval=5.0, robots=True)
    assert proxy_ring.lane_feedback(result, LaneFeedback(Kind.BLOCKED), LaneRing()) is None
    assert proxy_ring.lane_feedback(result, None, LaneRing()) is None


def test_a_block_by_the_site_is_the_lanes_failure():
    assert proxy_ring.lane_feedback(BLOCKED, BAN, LANE_BLOCKED) == BAN
    assert proxy_ring.lane_feedback(BLOCKED, None, LANE_BLOCKED) == LaneFeedback(Kind.BLOCKED)
    told = LaneFeedback(Kind.THROTTLED, rest=30)
    assert proxy_ring.lane_feedback(THROTTLED, told, LANE_BLOCKED) == LaneFeedback(Kind.BLOCKED, rest=30)
    assert proxy_ring.lane_feedback(FAULT, None, LANE_BLOCKED) is None


# Quarantine and probation


def test_quarantines_double_and_good_visits_clear_the_record():
    identity, rests = Identity(member=1), []
    for _ in range(8):
        identity = visited(BLOCKED, proxy_ring.taken(proxy_ring.back(identity), NOW, 0.0)).identity
        rests.append(identity.due - NOW)
    assert rests == [1800, 3600, 7200, 14400, 28800, 57600, 86400, 86400]

    identity = proxy_ring.taken(proxy_ring.back(identity), NOW, 0.0)
    for _ in range(proxy_ring.CLEARED):
        identity = visited(GOOD, identity).identity
    assert identity.strikes == 0
    assert visited(BLOCKED, identity).identity.due - NOW == 1800


def test_after_a_quarantine_the_probe_loses_no_turn_and_then_it_is_on_probation():
    banned = proxy_ring.back(visited(BLOCKED).identity)
    assert not proxy_ring.loses_turn(banned, 0.999)

    once = visited(GOOD, banned).identity
    assert proxy_ring.share_of_turns(once) == proxy_ring.PROBATION


# 429


def test_a_429_doubles_the_interval_and_good_visits_halve_it_again():
    identity = visited(THROTTLED).identity
    assert proxy_ring.interval(identity, 3.0) == 6.0
    assert identity.due == NOW + 2 * proxy_ring.SLOW_BASE
    for _ in range(proxy_ring.SLOWER):
        identity = visited(GOOD, identity).identity

    assert proxy_ring.interval(identity, 3.0) == 3.0


def test_a_429_waits_for_retry_after_and_for_the_interval_that_a_job_wants():
    told = proxy_ring.returned(Identity(member=1), LaneRing(), THROTTLED, NOW, RULES, retry_after=77)
    assert (told.identity.due, told.place) == (NOW + 77, Place.RESTING)

    slow = proxy_ring.returned(Identity(member=1), LaneRing(gap=4.0), THROTTLED, NOW, RULES)
    assert slow.identity.due == NOW + 8


# Turns


@given(identities)
def test_the_floor_never_starves(identity):
    share = proxy_ring.share_of_turns(identity)

    assert proxy_ring.LEAST_SHARE <= share <= 1
    assert sum(not proxy_ring.loses_turn(identity, n / 1000) for n in range(1000)) >= 1000 * proxy_ring.LEAST_SHARE


@given(identities, moments, st.floats(0, 100))
def test_who_loses_a_turn_is_due_again_soon(identity, now, wanted):
    passed = proxy_ring.passed_over(identity, now, wanted)

    turn = max(proxy_ring.LOST_TURN, proxy_ring.interval(identity, wanted))
    assert passed.due <= max(identity.due, now + turn + 0.011)
    assert passed.due >= now + turn - 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_equal_history_is_equal_turns(seed):
    """Every member meets the same results, one after another; some of them cost turns, which are drawn by lot."""
    chance, turns = random.Random(seed), Counter[int]()
    history = [*[GOOD] * 4, FAULT, FAULT, GOOD, FAULT, *[GOOD] * 30]
    members = [Identity(member=n) for n in range(8)]
    now = NOW
    for _ in range(40_000):
        now += 0.1
        members.sort(key=lambda each: each.due)
        if members[0].due > now:
            continue
        identity = proxy_ring.back(members.pop(0))
        if proxy_ring.loses_turn(identity, chance.random()):
            members.append(proxy_ring.passed_over(identity, now, 0.1))
            continue
        result = history[turns[identity.member] % len(history)]
        turns[identity.member] += 1
        out = proxy_ring.taken(identity, now, 0.1)
        rules = PoolRules(rest=30.0)
        members.append(proxy_ring.returned(out, LaneRing(), result, now, rules, chance=chance.random()).identity)

    assert min(turns.values()) > 200
    assert max(turns.values()) <= 1.1 * min(turns.values()), turns


def test_a_ring_gives_equal_turns_and_weight_is_a_share_of_them():
    chance, turns = random.Random(8), Counter[int]()
    ring = deque(Identity(member=n, weight=255 if n < 8 else 64) for n in range(10))
    now = NOW
    while sum(turns.values()) < 20_000:
        identity = ring.popleft()
        now += 0.01
        if proxy_ring.loses_turn(identity, chance.random()):
            ring.append(proxy_ring.passed_over(identity, now, 0.0))
            continue
        turns[identity.member] += 1
        back = proxy_ring.returned(identity, LaneRing(), GOOD, now, RULES)
        assert back.place is Place.TAIL
        ring.append(back.identity)

    full, quarter = [turns[n] for n in range(8)], [turns[n] for n in (8, 9)]
    assert max(full) - min(full) <= 1
    assert all(0.2 < each / full[0] < 0.3 for each in quarter)


def test_hold_keeps_the_member_at_the_head():
    rules, identity, places = PoolRules(hold=3), Identity(member=1), []
    for _ in range(6):
        back = proxy_ring.returned(identity, LaneRing(), GOOD, NOW, rules)
        identity = back.identity
        places.append(back.place)

    assert places == [Place.HEAD, Place.HEAD, Place.TAIL] * 2


# The site, or single members?


def test_five_blocked_in_a_row_are_a_block_by_the_site():
    assert not after(*[BLOCKED] * 4).site_blocked
    ring = after(*[BLOCKED] * 5)
    assert ring.site_blocked
    assert (ring.suspected_at, ring.blocked_at) == (NOW, NOW)
    assert after(*[BLOCKED] * 50, ring=ring).site_blocked


def test_one_answer_ends_the_block_by_the_site():
    back = visited(GOOD, ring=after(*[BLOCKED] * 9))

    assert back.lift is proxy_ring.Lift.ONE
    assert not back.ring.site_blocked
    assert (back.ring.evidence, back.ring.suspected_at) == (0, 0)


@pytest.mark.parametrize("seed", range(40))
def test_a_lane_that_bans_two_of_a_hundred_never_alarms(seed):
    chance, ring = random.Random(seed), LaneRing()
    for _ in range(1000):
        ring = after(BLOCKED if chance.random() < 0.02 else GOOD, ring=ring)
        assert not ring.site_blocked


def test_a_lane_that_always_bans_a_third_seldom_alarms_and_an_outage_there_is_found():
    chance, alarms, ring = random.Random(5), 0, LaneRing()
    for _ in range(5000):
        before, ring = ring, after(BLOCKED if chance.random() < 0.33 else GOOD, ring=ring)
        alarms += ring.site_blocked and not before.site_blocked
    assert alarms <= 10

    assert after(*[BLOCKED] * 20, ring=ring).site_blocked


@pytest.mark.parametrize("probe", [30.0, 0.0])
def test_members_that_show_whether_the_site_still_blocks_all_rest_for_a_short_time(probe):
    rules = PoolRules(probe=probe)
    before = after(*[BLOCKED] * 4)

    def rest(started, ring):
        went = proxy_ring.taken(Identity(member=1), started, 2.0)
        rested = proxy_ring.returned(went, ring, BLOCKED, NOW + 60, rules).identity
        return rested.due - NOW - 60

    alarmed = after(BLOCKED, ring=before)
    gap = msgspec.structs.replace(alarmed, gap=2.0)
    usual, short = rules.rest, probe or rules.rest
    assert rest(NOW, LaneRing()) == usual, "no alarm"
    assert rest(NOW - 9, before) == short, "it raises the alarm"
    assert rest(NOW - 9, gap) == usual, "it was under way: the ban may be its own"
    assert rest(NOW + 30, gap) == short, "a probe"


def test_bans_while_the_site_blocks_us_count_no_strike_and_a_lift_takes_back_what_was_counted():
    twice = Identity(member=1, strikes=2)
    ring = after(*[BLOCKED] * 4)
    last = proxy_ring.returned(twice, ring, BLOCKED, NOW, RULES)
    probe = proxy_ring.returned(twice, last.ring, BLOCKED, NOW + 5, RULES)

    assert (last.identity.strikes, probe.identity.strikes) == (3, 2)
    for banned in (last.identity, probe.identity):
        free = proxy_ring.lifted(banned, NOW + 9, 0.0, probe.ring.blocked_at)
        assert (free.strikes, free.banned_at, free.due) == (2, 0, NOW + 9)


def test_a_lift_keeps_the_interval():
    banned = visited(BLOCKED).identity

    assert proxy_ring.lifted(banned, NOW + 1, 20.0).due == NOW + 20
    assert proxy_ring.lifted(banned, NOW + 30, 20.0).due == NOW + 30


def test_a_page_may_lift_bans_only_while_others_are_answered():
    assert proxy_ring.may_lift(LaneRing())
    assert not proxy_ring.may_lift(after(BLOCKED))
    assert proxy_ring.may_lift(after(BLOCKED, GOOD))
    assert not proxy_ring.may_lift(LANE_BLOCKED)


# The interval that jobs want


def test_the_longest_interval_of_the_jobs_holds_while_it_is_asked_for():
    ring = proxy_ring.wanted_gap(LaneRing(), 5.0, NOW)
    assert (ring.gap, proxy_ring.wanted_interval(PoolRules(interval=2.0), ring)) == (5.0, 5.0)
    assert proxy_ring.wanted_gap(ring, 1.0, NOW + 59).gap == 5.0
    assert proxy_ring.wanted_gap(ring, 1.0, NOW + 61).gap == 1.0
    assert proxy_ring.wanted_gap(ring, 0.0, NOW + 61).gap == 0.0
    assert proxy_ring.wanted_gap(ring, 9.0, NOW + 1).gap == 9.0

    hour = proxy_ring.wanted_gap(LaneRing(), 3600.0, NOW)
    assert proxy_ring.wanted_gap(hour, 1.0, NOW + 7000).gap == 3600.0, "it asks only now and then"


def test_a_ring_that_nobody_changes_is_not_written():
    assert proxy_ring.wanted_gap(LaneRing(), 0.0, NOW) == LaneRing()
    ring = proxy_ring.wanted_gap(LaneRing(), 5.0, NOW)
    assert proxy_ring.wanted_gap(ring, 5.0, NOW + 0.5) is ring
    assert proxy_ring.wanted_gap(ring, 5.0, NOW + 2).gap_at == NOW + 2


def test_postponed_is_not_before_that_moment_and_never_earlier():
    early, late = Identity(member=1, due=NOW), Identity(member=1, due=NOW + 100)

    assert proxy_ring.postponed(early, NOW + 7).due == NOW + 7
    assert proxy_ring.postponed(late, NOW + 7).due == NOW + 100
