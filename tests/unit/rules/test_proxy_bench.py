"""Measured requests in numbers: shares that add up, cost, no false precision, and weights."""

import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.verdict import Kind, Verdict
from trotline.rules.proxy_bench import (
    LEAST,
    LEAST_OF_MEMBER,
    LEAST_WEIGHT,
    Prices,
    Result,
    Row,
    Sample,
    members,
    result_of,
    rows,
    weights,
)

SAMPLES = st.lists(
    st.builds(
        Sample,
        pool=st.sampled_from(["home", "dc"]),
        host=st.sampled_from(["a.example", "b.example"]),
        member=st.integers(1, 6),
        result=st.sampled_from(Result),
        why=st.just("403"),
        took=st.floats(0.01, 5.0),
        bytes=st.integers(0, 10_000),
    ),
    max_size=150,
)


def some(result: Result, number: int, member: int = 1, **facts: object) -> list[Sample]:
    return [Sample(pool="home", host="a.example", member=member, result=result, **facts)] * number  # type: ignore[arg-type]


def table(samples: list[Sample], prices: Prices | None = None, *, sampled: bool = False) -> list[Row]:
    return rows(samples, lambda _: prices or Prices(), lambda _: sampled, lambda: random.Random(1))


@pytest.mark.parametrize(
    ("verdict", "result"),
    [
        (Verdict(Kind.OK), Result.GOOD),
        (Verdict(Kind.BLOCKED, "403"), Result.BLOCKED),
        (Verdict(Kind.THROTTLED, "429"), Result.BLOCKED),
        (Verdict(Kind.UNREACHABLE, "refused", of_proxy=True), Result.FAULT),
        (Verdict(Kind.UNREACHABLE, "timed out"), Result.FAULT),
        (Verdict(Kind.GONE, "404"), Result.OTHER),
        (Verdict(Kind.BROKEN, "500"), Result.OTHER),
        (Verdict(Kind.MOVED, "302"), Result.OTHER),
        (Verdict(Kind.REFUSED, "a private address"), Result.OTHER),
    ],
)
def test_a_result_is_the_judgement_of_a_crawl(verdict: Verdict, result: Result) -> None:
    assert result_of(verdict) is result


def test_every_verdict_has_a_result() -> None:
    for kind in Kind:
        for of_proxy in (False, True):
            assert result_of(Verdict(kind, of_proxy=of_proxy)) in Result


@given(SAMPLES)
def test_rows_account_for_every_request(samples: list[Sample]) -> None:
    found = table(samples, Prices(per_gb=1.0, per_request=0.01))
    assert sum(row.pages for row in found) == len(samples)
    assert sum(row.bytes for row in found) == sum(sample.bytes for sample in samples)
    for row in found:
        bad = sum(sum(why.values()) for why in row.reasons.values())
        assert row.good + bad == row.pages
        assert (row.shares is None) == (row.pages < LEAST)
        if row.shares is not None:
            assert sum(share.value for share in row.shares.values()) == pytest.approx(1)
            assert all(share.low <= share.value <= share.high for share in row.shares.values())
        if row.cost is not None and row.cost_interval is not None:
            assert 0 < row.cost_interval.low <= row.cost_interval.high


def test_cost_counts_what_failed_too() -> None:
    samples = some(Result.GOOD, 20, bytes=50_000) + some(Result.BLOCKED, 20, bytes=10_000, why="403")
    [row] = table(samples, Prices(per_gb=10.0, per_request=0.001))
    # 1.2 MB and 40 requests for 20 pages.
    assert row.cost == pytest.approx(1000 * (0.0012 * 10 + 0.04) / 20)
    assert row.cost_interval is not None and row.cost_interval.low < row.cost < row.cost_interval.high < inf
    [free] = table(samples)
    assert (free.cost, free.cost_interval) == (None, None)


def test_a_redirect_is_a_request_that_costs() -> None:
    [row] = table(some(Result.GOOD, 20, requests=2), Prices(per_request=1.0))
    assert (row.pages, row.requests, row.cost) == (20, 40, 2000.0)


def test_few_requests_give_no_shares_no_latency_and_no_cost() -> None:
    [row] = table(some(Result.GOOD, LEAST - 1, took=1.0), Prices(per_request=1.0))
    assert (row.shares, row.p95, row.cost) == (None, None, None)
    assert row.p50 == 1.0
    [row] = table(some(Result.BLOCKED, LEAST), Prices(per_request=1.0))
    assert row.shares is not None and row.shares[Result.BLOCKED].low > 0.8
    assert (row.p50, row.cost) == (None, None)


def test_a_few_proxies_of_many_are_too_few_however_often_they_are_asked() -> None:
    few = [sample for member in range(5) for sample in some(Result.GOOD, 50, member)]
    assert table(few)[0].shares is not None
    assert table(few, sampled=True)[0].shares is None


def test_a_row_does_not_depend_on_the_other_rows() -> None:
    mine = [*some(Result.GOOD, 30, bytes=100), *some(Result.BLOCKED, 10, bytes=5)]
    other = [Sample(pool="dc", host="a.example", member=9, result=Result.GOOD, bytes=7)] * 40
    prices = Prices(per_gb=1.0)
    assert table(mine, prices)[0] == next(row for row in table(other + mine, prices) if row.pool == "home")


def test_reasons_are_counted_the_most_frequent_first() -> None:
    samples = (
        some(Result.BLOCKED, 1, why="429") + some(Result.BLOCKED, 3, why="403") + some(Result.FAULT, 2, why="down")
    )
    assert list(table(samples)[0].reasons[Result.BLOCKED].items()) == [("403", 3), ("429", 1)]
    assert table(samples)[0].reasons[Result.FAULT] == {"down": 2}


@given(SAMPLES)
def test_weights_are_in_range_and_the_best_has_one(samples: list[Sample]) -> None:
    found = members(samples)
    made = weights(found)
    for pool, given_weights in made.items():
        assert max(given_weights.values()) == 1.0
        assert all(LEAST_WEIGHT <= weight <= 1.0 for weight in given_weights.values())
        known = {each.member: each for each in found if each.pool == pool}
        assert all(known[member].pages >= LEAST_OF_MEMBER for member in given_weights)
        order = sorted(given_weights, key=lambda member: known[member].low)
        assert [given_weights[member] for member in order] == sorted(given_weights.values())


def test_a_blocked_proxy_gets_the_least_weight_and_a_pool_that_never_works_none() -> None:
    good, bad = some(Result.GOOD, 20, member=1), some(Result.BLOCKED, 20, member=2)
    assert weights(members(good + bad)) == {"home": {1: 1.0, 2: LEAST_WEIGHT}}
    assert weights(members(bad)) == {}
    assert weights(members(some(Result.GOOD, LEAST_OF_MEMBER - 1))) == {}


def test_one_good_answer_is_less_than_twenty() -> None:
    often, once = some(Result.GOOD, 20, member=1), some(Result.GOOD, 5, member=2)
    made = weights(members(often + once))["home"]
    assert made[1] == 1.0 and 0.5 < made[2] < 0.9


def test_the_best_member_is_first() -> None:
    samples = some(Result.GOOD, 9, member=1, took=2.0) + some(Result.GOOD, 9, member=2, took=1.0)
    samples += some(Result.FAULT, 9, member=3)
    assert [each.member for each in members(samples)] == [2, 1, 3]
