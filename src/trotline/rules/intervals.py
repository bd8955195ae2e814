"""Confidence intervals for measured shares and ratios. Random numbers are given.

Two designs. *Complete*: every group (proxy) that the answer is about was measured, so only chance within the groups is
left. *Sampled*: the groups are a random part of many, and requests of one group are alike: the groups are what counts.
"""

import random
from collections.abc import Sequence
from math import inf, sqrt
from typing import NamedTuple

Z = 1.959964
"""Of 95 %."""
ROUNDS = 1_000
"""Of a bootstrap."""
LEAST_GROUPS = 10
"""Of a sampled design: the spread of fewer groups says little about the others."""


class Interval(NamedTuple):
    low: float
    high: float
    """inf: no bound is known."""


class Group(NamedTuple):
    """Some requests of one proxy: how many, and how many of them count."""

    hits: int
    of: int


def wilson(hits: float, of: float) -> Interval:
    """95 % for a share; correct also near 0 and 1, and from the first request on. `of` may be an effective number."""
    if of <= 0:
        return Interval(0.0, 1.0)
    share = hits / of
    middle = (share + Z * Z / (2 * of)) / (1 + Z * Z / of)
    half = Z * sqrt(share * (1 - share) / of + Z * Z / (4 * of * of)) / (1 + Z * Z / of)
    # Exact at the ends, where rounding would leave 1e-17.
    low = 0.0 if hits <= 0 else max(0.0, middle - half)
    high = 1.0 if hits >= of else min(1.0, middle + half)
    return Interval(low, high)


def share(groups: Sequence[Group], *, sampled: bool = False) -> Interval:
    """95 % for the share over all requests of these groups, or of all groups that they are a sample of."""
    hits, of = sum(group.hits for group in groups), sum(group.of for group in groups)
    if not of:
        return Interval(0.0, 1.0)
    if not sampled:
        # Groups of one size that were all measured vary less than this: the interval is rather too wide.
        return wilson(hits, of)
    effective = effective_number(groups)
    return wilson(hits / of * effective, effective)


def effective_number(groups: Sequence[Group]) -> float:
    """So many independent requests say as much as these. At most their number, at least 1."""
    used = [group for group in groups if group.of]
    hits, of, number = sum(group.hits for group in used), sum(group.of for group in used), len(used)
    if number < 2:
        return float(number)
    usual = hits / of
    if hits in (0, of):
        # All alike, within the groups and between them: each group may stand for one request only.
        return float(number)
    spread = sum((group.hits - usual * group.of) ** 2 for group in used) * number / (number - 1) / of**2
    if not spread:
        return float(of)
    # Few groups show less spread than there is: Student's t instead of the normal distribution.
    factor = (Z / student(number - 1)) ** 2
    return min(float(of), max(1.0, usual * (1 - usual) / spread * factor))


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, from 4 degrees of freedom on right to 1 %."""
    cube, fifth, seventh = Z**3, Z**5, Z**7
    first = (cube + Z) / (4 * freedom)
    second = (5 * fifth + 16 * cube + 3 * Z) / (96 * freedom**2)
    third = (3 * seventh + 19 * fifth + 17 * cube - 15 * Z) / (384 * freedom**3)
    return Z + first + second + third


def quantile(values: Sequence[float], part: float) -> float:
    """Of a sorted list, between its neighbours. ValueError if it is empty."""
    if not values:
        raise ValueError("no values, no quantile")
    place = part * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    low, high = values[below], values[above]
    # Values may be inf: inf - inf and inf * 0 are not numbers.
    return low if low == high or place == below else low + (high - low) * (place - below)


def ratio(
    groups: Sequence[Sequence[tuple[float, float]]],
    chance: random.Random,
    *,
    sampled: bool = False,
    rounds: int = ROUNDS,
) -> Interval:
    """Bootstrap, 95 %, for the sum of the first numbers by the sum of the second ones, over all requests.

    Complete: requests are drawn again, whatever their group; as with `share`, that is rather too wide. Sampled: whole
    groups are drawn again. One fewer is drawn than there are: the spread of the draws is then that of the estimate.
    """
    used = [group for group in groups if group]
    units = [pair for group in used for pair in group]
    if sampled:
        units = [(sum(cost for cost, _ in group), sum(good for _, good in group)) for group in used]
    if len(units) < 2:
        return Interval(0.0, inf)
    found = []
    for _ in range(rounds):
        drawn = chance.choices(units, k=len(units) - 1)
        good = sum(pair[1] for pair in drawn)
        found.append(sum(pair[0] for pair in drawn) / good if good else inf)
    found.sort()
    return Interval(quantile(found, 0.025), quantile(found, 0.975))
