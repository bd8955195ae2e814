"""Which candidates of a proxy pool go out for the next starts of a lane, and what the others become."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment
from trotline.rules.member_choice import (
    AT_HEAD,
    IN_RING,
    OUT,
    Candidate,
    Choice,
    Limits,
    Move,
    Standing,
    faults_after,
    first_free,
    limited,
)
from trotline.rules.pace import NEVER
from trotline.rules.proxy_ring import FAULTS, MOST_WEIGHT, Identity, LaneRing

NOW = 1_750_000_000.0
LATEST = NOW + 2.0
FREE = Limits(weight=MOST_WEIGHT, down_until=0.0, next_start=0.0, running=0, uses=0, window_began=0.0)


def candidate(member: int, due: Moment = 0.0, weight: int = MOST_WEIGHT, **given: object) -> Candidate:
    places, place, limits = given.pop("places", True), given.pop("place", IN_RING), FREE._replace(**given)  # type: ignore[arg-type]
    return Candidate(Identity(member=member, due=due, weight=weight), limits, bool(places), place)  # type: ignore[arg-type]


def choose(
    candidates: list[Candidate],
    starts: list[Moment],
    rules: PoolRules = PoolRules(),  # noqa: B008 - frozen
    interval: float = 0.0,
    chance: Callable[[], float] = lambda: 0.5,
) -> list[Move]:
    choice = Choice(starts, interval, rules, LaneRing(), NOW, LATEST)
    moves = []
    for each in candidates:
        if choice.missing:
            moves.append(choice.offer(each, chance))
    return moves + list(choice.second_turns())


def sent(moves: list[Move]) -> list[tuple[int, Moment | None]]:
    return [(move.identity.member, move.start) for move in moves if move.start is not None]


def test_members_go_out_in_the_order_of_the_candidates_one_for_each_start() -> None:
    moves = choose([candidate(n) for n in range(1, 6)], [NOW, NOW + 0.5], PoolRules(interval=7.0))

    assert sent(moves) == [(1, NOW), (2, NOW + 0.5)]
    assert [move.place for move in moves] == [OUT, OUT]
    assert [move.identity.due for move in moves] == [NOW + 7, NOW + 7.5]


def test_a_start_waits_for_its_member_and_moves_those_behind_it() -> None:
    moves = choose([candidate(1, due=NOW + 1), candidate(2)], [NOW, NOW + 0.25], interval=0.25)

    assert sent(moves) == [(1, NOW + 1), (2, NOW + 1.25)]


def test_a_start_beyond_the_horizon_ends_the_choice_and_its_member_stays_where_it_is() -> None:
    moves = choose([candidate(1), candidate(2, place=AT_HEAD), candidate(3)], [NOW, NOW + 1], interval=3.0)

    assert sent(moves) == [(1, NOW)]
    assert [(move.identity.member, move.place) for move in moves] == [(1, OUT), (2, AT_HEAD)]


def test_a_member_at_its_concurrency_stays_and_one_that_rests_for_all_lanes_is_postponed() -> None:
    busy, down = candidate(1, places=False, place=AT_HEAD), candidate(2, down_until=NOW + 60)
    moves = choose([busy, down, candidate(3, next_start=NOW + 1)], [NOW])

    assert [(move.place, move.identity.due) for move in moves[:2]] == [(AT_HEAD, 0.0), (IN_RING, NOW + 60)]
    assert sent(moves) == [(3, NOW + 1)]


def test_a_member_whose_uses_of_the_window_are_spent_is_postponed() -> None:
    rules = PoolRules(member_uses=2, uses_window=100.0)
    [move] = choose([candidate(1, uses=2, window_began=NOW - 10)], [NOW], rules)

    assert (move.start, move.place, move.identity.due) == (None, IN_RING, NOW + 90)


def test_a_turn_is_lost_to_others_only() -> None:
    weak = candidate(1, weight=0)

    assert sent(choose([weak, candidate(2)], [NOW])) == [(2, NOW)]
    assert sent(choose([weak, candidate(2)], [NOW, NOW])) == [(2, NOW), (1, NOW)]
    assert sent(choose([weak], [NOW])) == [(1, NOW)]


def test_a_member_that_lost_its_turn_and_is_read_again_goes_out_once() -> None:
    choice = Choice([NOW, NOW + 0.1], 0.1, PoolRules(), LaneRing(), NOW, LATEST)
    [lost] = [choice.offer(candidate(1, weight=0, place=AT_HEAD), lambda: 0.5)]
    again = choice.offer(lost.candidate._replace(identity=lost.identity, place=IN_RING), lambda: 0.0)

    assert (again.start, again.place, again.identity) == (None, IN_RING, lost.identity)
    assert sent(list(choice.second_turns())) == [(1, NOW)]


@given(
    st.lists(st.tuples(st.floats(NOW - 5, NOW + 5), st.booleans(), st.floats(NOW - 5, NOW + 5)), max_size=12),
    st.integers(1, 6),
    st.floats(0, 3),
    st.floats(0, 1, exclude_max=True),
)
def test_no_member_goes_out_twice_too_early_or_beyond_the_horizon(
    given_members: list[tuple[float, bool, float]], count: int, interval: float, chance: float
) -> None:
    candidates = [
        candidate(number, due=due, places=places, next_start=next_start, weight=number * 20)
        for number, (due, places, next_start) in enumerate(given_members, 1)
    ]
    starts = [NOW + interval * number for number in range(count)]

    moves = choose(candidates, starts, interval=interval, chance=lambda: chance)

    out = [move for move in moves if move.start is not None]
    assert len({move.identity.member for move in out}) == len(out) <= count
    for number, move in enumerate(out):
        assert move.start is not None and move.candidate.places
        assert max(starts[number], move.candidate.identity.due, move.candidate.limits.next_start) <= move.start
        assert move.start <= LATEST
    for before, after in pairwise(out):
        assert before.start is not None and after.start is not None
        assert after.start >= before.start + interval


def test_limits_count_a_start_in_their_window() -> None:
    rules = PoolRules(member_interval=3.0, member_uses=5, uses_window=50.0)
    once = FREE.after(NOW, rules)

    assert once == FREE._replace(running=1, next_start=NOW + 3, uses=1, window_began=NOW)
    assert once.after(NOW + 10, rules)[3:] == (2, 2, NOW)
    assert once.after(NOW + 50, rules)[3:] == (2, 1, NOW + 50)
    assert [limited(each) for each in (PoolRules(), rules)] == [False, True]


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        ([], (NEVER, False)),
        ([Standing(NOW + 9, 0.0, False, 0.0)], (NOW + 7, False)),
        ([Standing(NOW + 9, NOW - 1, False, 0.0)], (NOW + 9, False)),
        ([Standing(NOW, 0.0, True, 0.0)], (NEVER, True)),
        ([Standing(NOW, 0.0, True, 0.0), Standing(NOW + 9, 0.0, True, 0.0)], (NOW + 7, True)),
        ([Standing(NOW, 0.0, False, NOW + 0.3)], (NOW + 0.3, False)),
    ],
)
def test_an_account_that_is_due_and_busy_is_waited_for(
    standings: list[Standing], expected: tuple[Moment, bool]
) -> None:
    assert first_free(standings, NOW, 2.0, waits_without_time=True) == expected


def test_a_proxy_that_is_due_and_busy_is_polled() -> None:
    assert first_free([Standing(NOW, 0.0, True, 0.0)], NOW, 2.0, waits_without_time=False) == (NOW - 2, False)


def test_faults_in_a_row_are_a_rest_and_one_good_visit_clears_them() -> None:
    assert faults_after(0, MemberResult.FAULT, NOW, 0.0) == (1, 0.0)
    assert faults_after(FAULTS - 1, MemberResult.FAULT, NOW, 0.0) == (FAULTS, NOW + 10)
    assert faults_after(FAULTS, MemberResult.GOOD, NOW, 0.0) == (0, 0.0)
    assert faults_after(0, MemberResult.GOOD, NOW, 0.0) is None
    assert faults_after(2, MemberResult.BLOCKED, NOW, 0.0) is None
