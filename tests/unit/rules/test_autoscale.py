"""Up soon, down slowly, within what the operator allows, and never on a guess."""

from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.autoscale import ScaleRules, ScaleState, decide

RULES = ScaleRules(least=1, most=16)


def run(wanted: list[int | None], running: int = 1, rules: ScaleRules = RULES, every: float = 5.0) -> list[int]:
    """How many run after each look."""
    state, found = ScaleState(), []
    for place, each in enumerate(wanted):
        state, running = decide(state, rules, place * every, running, each)
        found.append(running)
    return found


def test_more_start_after_half_a_minute_and_at_most_twice_as_many():
    assert run([10] * 8) == [1] * 6 + [2, 2]
    assert run([10] * 30)[-1] == 10


def test_a_peak_starts_nobody():
    assert run([10, 10, 10, 1] * 10) == [1] * 40


def test_as_many_as_were_wanted_all_the_time():
    assert run([8, 8, 3, 8, 8, 8, 8], running=2)[-1] == 3


def test_fewer_run_after_five_minutes_and_then_one_a_minute():
    found = run([1] * 100, running=5)

    assert found.index(4) == 60
    assert found.index(3) - found.index(4) == 12
    assert found[-1] == 1 or min(found) >= 1


def test_a_small_difference_is_none():
    assert run([21] * 20, running=20, rules=ScaleRules(most=50)) == [20] * 20
    assert run([19] * 90, running=20, rules=ScaleRules(most=50)) == [20] * 90


def test_unknown_keeps_what_runs_and_begins_the_wait_anew():
    assert run([None] * 100, running=7) == [7] * 100
    assert run([9, 9, 9, 9, 9, None, 9, 9, 9, 9, 9], running=3) == [3] * 11


def test_what_the_operator_allows_holds_at_once():
    assert decide(ScaleState(), ScaleRules(least=4, most=8), 0.0, 1, None)[1] == 4
    assert decide(ScaleState(), ScaleRules(least=1, most=2), 0.0, 6, 6)[1] == 2


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), max_size=200), st.integers(1, 30))
def test_the_number_stays_within_its_bounds_and_never_jumps(wanted: list[int | None], running: int):
    rules = ScaleRules(least=2, most=20)
    before = min(20, max(2, running))
    for now in run(wanted, running, rules):
        assert 2 <= now <= 20
        assert before - 1 <= now <= 2 * before
        before = now
