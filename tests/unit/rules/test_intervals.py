"""95 % intervals hold the truth in about 95 of 100 measurements, also where requests of one proxy are alike."""

import random
from math import exp, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.intervals import Group, effective_number, quantile, ratio, share, student, wilson

RUNS = 600
GROUPS = st.lists(st.integers(1, 30).flatmap(lambda of: st.builds(Group, st.integers(0, of), st.just(of))), min_size=1)


def hits(chance: random.Random, of: int, part: float) -> int:
    return sum(chance.random() < part for _ in range(of))


@given(st.integers(1, 10_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_share_is_in_its_interval_and_its_mirror_in_the_mirrored_one(pair: tuple[int, int]) -> None:
    number, of = pair
    found, mirror = wilson(number, of), wilson(of - number, of)
    assert 0 <= found.low <= number / of <= found.high <= 1
    assert found.low == pytest.approx(1 - mirror.high, abs=1e-9)
    assert found.low < found.high


def test_known_values_of_wilson() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(10, 10) == (pytest.approx(0.7225, abs=1e-4), 1.0)
    assert wilson(81, 263) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, abs=1e-4))


@given(st.integers(0, 20), st.integers(1, 20), st.integers(2, 20))
def test_more_requests_with_the_same_share_never_say_less(number: int, more: int, times: int) -> None:
    few, many = wilson(number, number + more), wilson(number * times, (number + more) * times)
    assert many.high - many.low < few.high - few.low


@given(GROUPS)
def test_alike_requests_never_count_for_more_than_their_number(groups: list[Group]) -> None:
    assert 1 <= effective_number(groups) <= sum(group.of for group in groups)
    narrow, wide = share(groups), share(groups, sampled=True)
    part = sum(group.hits for group in groups) / sum(group.of for group in groups)
    for found in (narrow, wide):
        assert 0 <= found.low <= part + 1e-9 and part - 1e-9 <= found.high <= 1
    assert wide.high - wide.low >= narrow.high - narrow.low - 1e-9


def test_groups_that_never_differ_within_count_once_each() -> None:
    banned_or_not = [Group(10, 10)] * 12 + [Group(0, 10)] * 8
    assert effective_number(banned_or_not) <= 20
    assert effective_number([Group(5, 5)] * 10) == 10
    assert effective_number([Group(5, 10)] * 10) == 100


@pytest.mark.parametrize(("freedom", "value"), [(4, 2.776), (9, 2.262), (19, 2.093), (99, 1.984)])
def test_student_as_in_the_tables(freedom: int, value: float) -> None:
    assert student(freedom) == pytest.approx(value, rel=0.01)


@pytest.mark.parametrize("part", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("of", [20, 50, 200])
def test_coverage_of_independent_requests(part: float, of: int) -> None:
    chance = random.Random(f"{part} {of}")
    inside = sum(_holds(wilson(hits(chance, of, part), of), part) for _ in range(RUNS))
    assert 0.90 <= inside / RUNS


@pytest.mark.parametrize("parts", [[0.0, 1.0, 1.0, 0.9, 0.8], [0.9] * 10, [0.2, 0.5, 0.9] * 5])
def test_coverage_where_every_proxy_of_a_pool_was_measured(parts: list[float]) -> None:
    """Different proxies: the share is that of exactly these."""
    chance, truth = random.Random(7), sum(parts) / len(parts)
    inside = 0
    for _ in range(RUNS):
        inside += _holds(share([Group(hits(chance, 10, part), 10) for part in parts]), truth)
    assert 0.93 <= inside / RUNS


@pytest.mark.parametrize(("good", "bad"), [(0.8, 0.2), (4.0, 1.0), (40.0, 10.0), (0.1, 0.1)])
@pytest.mark.parametrize("number", [10, 20, 50])
def test_coverage_where_some_proxies_stand_for_many(good: float, bad: float, number: int) -> None:
    """From proxies that nearly always work or nearly never do (0.1, 0.1) to proxies that are all alike (40, 10)."""
    chance, truth = random.Random(f"{good} {number}"), good / (good + bad)
    inside = plain = 0
    for _ in range(RUNS):
        groups = [Group(hits(chance, 5, chance.betavariate(good, bad)), 5) for _ in range(number)]
        inside += _holds(share(groups, sampled=True), truth)
        plain += _holds(share(groups), truth)
    assert 0.92 <= inside / RUNS
    if good < 1:
        assert plain / RUNS < 0.85, "to count each request would be false precision"


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("part", [0.5, 0.9])
def test_coverage_of_a_cost(part: float, sampled: bool) -> None:
    """Bytes per good page, where failed ones cost a little, too."""
    chance = random.Random(f"{part} {sampled}")
    truth = (part * exp(3 + 0.125) + (1 - part)) / part
    inside, runs = 0, 200
    for _ in range(runs):
        groups = [
            [(chance.lognormvariate(3, 0.5), 1.0) if chance.random() < own else (1.0, 0.0) for _ in range(5)]
            for own in (chance.betavariate(8 * part, 8 * (1 - part)) if sampled else part for _ in range(16))
        ]
        inside += _holds(ratio(groups, chance, sampled=sampled, rounds=200), truth)
    assert 0.86 <= inside / runs


def test_a_cost_without_good_pages_has_no_bound() -> None:
    chance = random.Random(1)
    assert ratio([[(1.0, 0.0)] * 5], chance) == (inf, inf)
    assert ratio([], chance) == (0.0, inf)
    assert ratio([[(1.0, 1.0)]], chance) == (0.0, inf), "one request says nothing about the next"
    mixed = ratio([[(1.0, 1.0)] + [(1.0, 0.0)] * 4], chance)
    assert mixed.low < 5 and mixed.high == inf


def test_the_same_seed_gives_the_same_interval() -> None:
    groups = [[(float(n), float(n % 2)) for n in range(10)]]
    assert ratio(groups, random.Random(3)) == ratio(groups, random.Random(3))


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0, 1))
def test_a_quantile_is_between_the_ends(values: list[float], part: float) -> None:
    values.sort()
    assert values[0] - 1e-9 <= quantile(values, part) <= values[-1] + 1e-9
    assert (quantile(values, 0.0), quantile(values, 1.0)) == (values[0], values[-1])


def test_a_quantile_of_endless_values() -> None:
    assert quantile([1.0, inf, inf], 0.0) == 1.0
    assert quantile([1.0, inf, inf], 0.25) == quantile([1.0, inf, inf], 0.5) == inf


def _holds(found: tuple[float, float], truth: float) -> bool:
    return found[0] <= truth <= found[1]
