"""Measured requests through proxies, in numbers: by pool and host, by proxy, and as weights."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from trotline.model.proxy_pool import MemberResult
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.rules import intervals
from trotline.rules.intervals import Group, Interval
from trotline.rules.proxy_judgement import member_result

LEAST = 20
"""Requests of a pool on a host: shares of fewer are not shown."""
LEAST_LATENCIES = 20
"""Good answers: the 95th percentile of fewer is the slowest one."""
LEAST_GOOD = 10
"""Good pages: the cost of fewer is not shown."""
LEAST_OF_MEMBER = 5
"""Requests: a proxy with fewer gets no weight."""
LEAST_WEIGHT = 0.05
GIGABYTE = 1e9


class Result(StrEnum):
    GOOD = "good"
    """The page."""
    BLOCKED = "blocked"
    """403, a challenge page, 429."""
    FAULT = "fault"
    """The proxy failed, or no answer came."""
    OTHER = "other"
    """404, a server error, a refused redirect: not by the proxy, and not the page."""


_RESULTS = {
    MemberResult.BLOCKED: Result.BLOCKED,
    MemberResult.THROTTLED: Result.BLOCKED,
    MemberResult.FAULT: Result.FAULT,
    MemberResult.UNCLEAR: Result.FAULT,
    MemberResult.UNUSED: Result.OTHER,
}


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One page that was asked for through one proxy, with its redirects."""

    pool: str
    host: str
    member: int
    result: Result
    why: str = ""
    took: Seconds = 0.0
    bytes: int = 0
    """Received."""
    requests: int = 1
    """More than one: redirects."""


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    per_gb: float = 0.0
    per_request: float = 0.0

    def of(self, sample: Sample) -> float:
        return sample.bytes / GIGABYTE * self.per_gb + sample.requests * self.per_request


class Share(msgspec.Struct, frozen=True):
    """A part of the requests, with 95 %."""

    value: float
    low: float
    high: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One pool on one host. None: too few requests to say."""

    pool: str
    host: str
    members: int
    pages: int
    """Asked for."""
    requests: int
    good: int
    bytes: int
    shares: dict[Result, Share] | None = None
    p50: Seconds | None = None
    """Of good pages."""
    p95: Seconds | None = None
    cost: float | None = None
    """For 1,000 good pages; None also if the pool has no prices."""
    cost_interval: Interval | None = None
    reasons: dict[Result, dict[str, int]] = {}
    """Why pages were not good, the most frequent first."""


class MemberRow(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy over all hosts."""

    pool: str
    member: int
    pages: int
    good: int
    blocked: int
    faults: int
    low: float
    """Of the share of good pages, 95 %."""
    p50: Seconds | None


def result_of(verdict: Verdict) -> Result:
    """By the judgement that a crawl uses."""
    result = member_result(verdict)
    if result is MemberResult.GOOD:
        return Result.GOOD if verdict.kind is Kind.OK else Result.OTHER
    return _RESULTS[result]


def rows(
    samples: Iterable[Sample],
    prices: Callable[[str], Prices],
    sampled: Callable[[str], bool],
    chance: Callable[[], random.Random],
) -> list[Row]:
    """By pool and host. `sampled`: only a random part of the pool's proxies was asked. `chance`: for each row anew, so
    that a row does not depend on the others."""
    places: defaultdict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        places[sample.pool, sample.host].append(sample)
    return [_row(found, prices(pool), sampled(pool), chance()) for (pool, _), found in sorted(places.items())]


def members(samples: Iterable[Sample]) -> list[MemberRow]:
    """The best first: by the lower bound of their success, then by latency."""
    known: defaultdict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        known[sample.pool, sample.member].append(sample)
    found = [_member(pool, member, some) for (pool, member), some in known.items()]
    return sorted(found, key=lambda each: (-each.low, each.p50 or 0.0, each.pool, each.member))


def weights(found: Sequence[MemberRow]) -> dict[str, dict[int, float]]:
    """By pool and member, from LEAST_WEIGHT to 1: the lower bound of its success by that of the best of its pool. A
    pool without a good page has none, and neither has a proxy with few requests."""
    best: dict[str, float] = {}
    known = [each for each in found if each.pages >= LEAST_OF_MEMBER]
    for each in known:
        best[each.pool] = max(each.low, best.get(each.pool, 0.0))
    made: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for each in known:
        if best[each.pool] > 0:
            made[each.pool][each.member] = max(LEAST_WEIGHT, round(each.low / best[each.pool], 3))
    return dict(made)


def _row(samples: Sequence[Sample], prices: Prices, sampled: bool, chance: random.Random) -> Row:
    groups = _by_member(samples)
    good = [sample for sample in samples if sample.result is Result.GOOD]
    took = sorted(sample.took for sample in good)
    enough = len(samples) >= LEAST and not (sampled and len(groups) < intervals.LEAST_GROUPS)
    priced = enough and len(good) >= LEAST_GOOD and bool(prices.per_gb or prices.per_request)
    return Row(
        pool=samples[0].pool,
        host=samples[0].host,
        members=len(groups),
        pages=len(samples),
        requests=sum(sample.requests for sample in samples),
        good=len(good),
        bytes=sum(sample.bytes for sample in samples),
        shares={result: _share(groups, result, sampled) for result in Result} if enough else None,
        p50=intervals.quantile(took, 0.5) if len(took) >= LEAST_GOOD else None,
        p95=intervals.quantile(took, 0.95) if len(took) >= LEAST_LATENCIES else None,
        cost=1000 * sum(map(prices.of, samples)) / len(good) if priced else None,
        cost_interval=_cost(groups, prices, sampled, chance) if priced else None,
        reasons=_reasons(samples),
    )


def _by_member(samples: Iterable[Sample]) -> Mapping[int, list[Sample]]:
    groups: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.member].append(sample)
    return groups


def _share(groups: Mapping[int, Sequence[Sample]], result: Result, sampled: bool) -> Share:
    counted = [Group(sum(1 for each in some if each.result is result), len(some)) for some in groups.values()]
    found = intervals.share(counted, sampled=sampled)
    return Share(sum(group.hits for group in counted) / sum(group.of for group in counted), found.low, found.high)


def _cost(groups: Mapping[int, Sequence[Sample]], prices: Prices, sampled: bool, chance: random.Random) -> Interval:
    pairs = [[(1000 * prices.of(each), float(each.result is Result.GOOD)) for each in some] for some in groups.values()]
    return intervals.ratio(pairs, chance, sampled=sampled)


def _reasons(samples: Iterable[Sample]) -> dict[Result, dict[str, int]]:
    counts = {result: Counter[str]() for result in Result if result is not Result.GOOD}
    for sample in samples:
        if sample.result is not Result.GOOD:
            counts[sample.result][sample.why] += 1
    return {result: dict(found.most_common()) for result, found in counts.items() if found}


def _member(pool: str, member: int, samples: Sequence[Sample]) -> MemberRow:
    counts = Counter(sample.result for sample in samples)
    took = sorted(sample.took for sample in samples if sample.result is Result.GOOD)
    return MemberRow(
        pool=pool,
        member=member,
        pages=len(samples),
        good=counts[Result.GOOD],
        blocked=counts[Result.BLOCKED],
        faults=counts[Result.FAULT],
        low=intervals.wilson(counts[Result.GOOD], len(samples)).low,
        p50=intervals.quantile(took, 0.5) if took else None,
    )
