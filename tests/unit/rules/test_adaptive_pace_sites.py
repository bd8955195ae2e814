"""A pace that finds what a site admits: sites with limits and a fleet of four, on virtual time (F16, F19)."""

from itertools import pairwise

import pytest

from tests.unit.rules.pace_sites import BEGIN, Banning, Closed, Fleet, TokenBucket, Window
from trotline.model.pace import Pace, Rate

FAST = Pace(rate=Rate(100.0), concurrency=64)
"""Five times what the sites here admit."""
ADAPTED = 60.0
"""Seconds after which a site of 20/s is known."""


@pytest.mark.parametrize(("burst", "retry_after"), [(5, 1.0), (20, 1.0), (20, 2.0), (60, 5.0)])
def test_a_throttled_fleet_gets_what_the_site_admits(burst: float, retry_after: float) -> None:
    site = TokenBucket(20.0, burst, retry_after)
    fleet = Fleet(site, FAST)

    fleet.run(240)

    assert fleet.rate(ADAPTED, 240) >= 0.9 * 20
    told = sum(moment - BEGIN > ADAPTED for moment in site.told)
    early = sum(moment - BEGIN > ADAPTED for moment in site.early)
    assert early <= told, "at most one request per rest before its Retry-After has passed"


def test_a_short_job_does_not_pay_much_for_finding_the_limit() -> None:
    fleet = Fleet(TokenBucket(20.0, 20, 1.0), FAST)

    fleet.run(15)

    assert len(fleet.good) >= 300 / 1.3


def test_long_rests_are_paid_for_by_longer_calm() -> None:
    site = TokenBucket(20.0, 20, 30.0)
    fleet = Fleet(site, FAST)

    fleet.run(600)

    assert fleet.rate(150, 600) >= 0.9 * 20
    assert len(site.told) <= 6


@pytest.mark.parametrize(("most", "seconds", "share"), [(20, 1.0, 0.9), (100, 10.0, 0.9), (600, 60.0, 0.8)])
def test_a_site_that_counts_by_the_clock_is_used_up(most: int, seconds: float, share: float) -> None:
    fleet = Fleet(Window(most, seconds), FAST)

    fleet.run(600)

    assert fleet.rate(300, 600) >= share * most / seconds


def test_after_bans_the_pace_is_back_at_four_fifths() -> None:
    site = Banning(most=200, window=10.0, ban=20.0)
    fleet = Fleet(site, FAST)

    fleet.run(1800)

    assert fleet.rate(600, 1800) >= 0.8 * 20
    begun = [moment - BEGIN for moment in site.bans]
    assert len([moment for moment in begun if moment > 600]) <= 3, "it is not banned again and again"
    probes = [moment for moment in fleet.asked if begun[0] + 2 < moment - BEGIN < begun[0] + 20]
    gaps = [later - sooner for sooner, later in pairwise(probes)]
    assert len(probes) <= 3, "probes with growing pauses"
    assert gaps == sorted(gaps)


def test_a_limit_that_is_lifted_is_noticed() -> None:
    site = TokenBucket(20.0, 20, 1.0)
    fleet = Fleet(site, Pace(rate=Rate(60.0), concurrency=64))
    fleet.run(60)
    site.rate = 1000.0

    fleet.run(400)

    assert fleet.rate(300, 400) >= 0.9 * 60


def test_a_site_that_says_too_fast_to_everything_is_asked_less_and_less() -> None:
    fleet = Fleet(Closed(), FAST)

    fleet.run(1800)

    later = [moment for moment in fleet.asked if moment > BEGIN + 60]
    assert len(later) <= 8
    assert fleet.lane.rests >= 5
