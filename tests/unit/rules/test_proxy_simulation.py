"""The simulator of proxy policies: it repeats, loses no request, and says what the study of peers says."""

import random
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trotline.model.proxy_pool import PoolRules
from trotline.rules import proxy_simulation, simulated_ring
from trotline.rules.proxy_simulation import OURS, POLICIES, PRESETS, Course, Scenario, simulate
from trotline.rules.simulated_site import Answered, SimulatedSite, SiteModel

# One process: the courses are computed once.
pytestmark = pytest.mark.xdist_group("proxy simulation")
PEERS = [policy for policy in POLICIES if policy != OURS]


@cache
def course(preset: str, policy: str, minutes: int = 5) -> Course:
    return simulate(msgspec.structs.replace(PRESETS[preset], minutes=minutes), policy)


def small(**changes: object) -> Scenario:
    return msgspec.structs.replace(PRESETS["seed-3x10"], **({"minutes": 5} | changes))


scenarios = st.builds(
    Scenario,
    site=st.builds(
        SiteModel,
        limit=st.floats(1, 300),
        burst=st.floats(1, 20),
        ban_after=st.integers(1, 5),
        ban=st.floats(1, 900),
        renewed=st.booleans(),
        latency=st.floats(0.2, 2),
        jitter=st.floats(0, 0.2),
    ),
    proxies=st.integers(1, 12),
    interval=st.floats(0.2, 5),
    workers=st.integers(1, 4),
    slots=st.integers(1, 5),
    minutes=st.integers(1, 3),
    seed=st.integers(0, 1000),
    dead=st.floats(0, 0.5),
    captive=st.floats(0, 0.5),
)


@settings(max_examples=25, deadline=None)
@given(scenarios, st.sampled_from(list(POLICIES)))
def test_every_request_is_counted_once_and_fits_in_the_slots(scenario: Scenario, policy: str) -> None:
    found = simulate(scenario, policy)

    assert found.starts == found.total("requests")
    assert 0 <= found.in_flight <= scenario.workers * scenario.slots
    assert len(found.minutes) == scenario.minutes
    assert found.total("bans") <= found.total("banned")
    # Tokens: those of a full bucket and of the time, for each address.
    most = scenario.proxies * (scenario.site.burst + scenario.site.limit * scenario.minutes + 1)
    assert found.total("good") <= most


@settings(max_examples=8, deadline=None)
@given(scenarios, st.sampled_from(list(POLICIES)))
def test_the_same_seed_gives_the_same_course(scenario: Scenario, policy: str) -> None:
    assert simulate(scenario, policy) == simulate(scenario, policy)


def test_another_seed_gives_another_course() -> None:
    assert simulate(small(seed=1, dead=0.2), PEERS[0]).minutes != simulate(small(seed=2, dead=0.2), PEERS[0]).minutes


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("peer", PEERS)
def test_a_ring_for_the_fleet_gets_more_pages_with_no_more_bans_than_a_peer(preset: str, peer: str) -> None:
    ours, theirs = course(preset, OURS), course(preset, peer)

    assert ours.good_per_minute > theirs.good_per_minute
    assert ours.total("bans") <= theirs.total("bans")
    assert ours.total("refused") <= theirs.total("refused")


@pytest.mark.parametrize("preset", PRESETS)
def test_a_ring_for_the_fleet_comes_near_the_limit_of_the_site_without_a_ban(preset: str) -> None:
    ours = course(preset, OURS)

    assert ours.good_per_minute > 0.95 * ours.scenario.ceiling
    assert (ours.total("bans"), ours.total("refused")) == (0, 0)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_quarantine_per_process_bans_every_proxy(preset: str) -> None:
    theirs = course(preset, "quarantine per process")

    assert theirs.total("bans") >= theirs.scenario.proxies
    assert theirs.good_per_minute < 0.2 * theirs.scenario.ceiling


def test_dead_and_captive_proxies_cost_the_ring_little() -> None:
    scenario = small(minutes=30, dead=0.2, captive=0.1)
    ours = simulate(scenario, OURS)

    assert ours.good_per_minute > 0.95 * scenario.ceiling
    assert ours.total("dead") + ours.total("captive") < 0.01 * ours.starts
    # Peers take the page of a captive proxy for the site's.
    assert simulate(scenario, "quarantine per process").total("captive") > 50 * ours.total("captive")


def test_a_ban_that_is_renewed_by_asking_is_worse_for_a_peer_that_keeps_asking() -> None:
    renewed = msgspec.structs.replace(PRESETS["seed-3x10"].site, renewed=True)
    once = simulate(small(minutes=30), "round robin")
    for_ever = simulate(small(minutes=30, site=renewed), "round robin")

    assert for_ever.total("good") < once.total("good") / 2


def test_the_ring_never_has_two_requests_through_one_proxy_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    out: set[int] = set()

    class Watched(simulated_ring.SharedRing):
        def choose(self, worker: int, now: float) -> tuple[int, float]:
            proxy, at = super().choose(worker, now)
            assert proxy not in out
            out.add(proxy)
            out.discard(-1)
            return proxy, at

        def learn(self, worker: int, proxy: int, answer: Answered, now: float) -> None:
            out.remove(proxy)
            super().learn(worker, proxy, answer, now)

    monkeypatch.setattr(proxy_simulation, "SharedRing", Watched)
    # Twice as fast as the site allows: bans, rests and probes.
    found = simulate(small(minutes=90, interval=0.5), OURS)
    assert found.total("bans") > 0 and found.total("good") > 0


def test_cost_counts_what_was_transferred_and_asked() -> None:
    scenario = small(minutes=1, page_bytes=1024**3, refusal_bytes=0, cost_per_gb=2.0, cost_per_request=0.5)
    found = simulate(scenario, OURS)

    assert found.cost_per_thousand == pytest.approx(1000 * (2.0 + 0.5))
    assert simulate(small(dead=1.0), OURS).cost_per_thousand is None


def test_the_site_refuses_then_bans_then_forgives() -> None:
    site = SimulatedSite(SiteModel(limit=60, burst=2, ban_after=2, ban=10), 1)

    answers = [site.ask(0, at) for at in (0.0, 0.0, 0.0, 0.1, 5.0, 10.2, 11.2)]

    good, throttled, banned = Answered.GOOD, Answered.THROTTLED, Answered.BANNED
    assert answers == [good, good, throttled, banned, banned, good, good]
    assert site.bans == 1


def test_requests_exactly_an_interval_apart_are_within_the_limit() -> None:
    site = SimulatedSite(SiteModel(limit=60, burst=1, ban_after=1), 1)

    assert {site.ask(0, at / 10) for at in range(0, 6000, 10)} == {Answered.GOOD}


def test_quarantines_of_a_block_by_the_site_are_lifted_when_it_answers_again() -> None:
    ring = simulated_ring.SharedRing(10, 1.0, PoolRules(rest=3600.0), random.Random(1))
    now = 0.0

    def visit(answer: Answered) -> int:
        """One visit as soon as a proxy is free."""
        nonlocal now
        proxy, at = ring.choose(0, now)
        while proxy < 0:
            now = at
            proxy, at = ring.choose(0, now)
        now = max(now, at) + 0.3
        ring.learn(0, proxy, answer, now)
        return proxy

    blocked = [visit(Answered.BANNED) for _ in range(7)]
    assert len(set(blocked)) == 7
    visit(Answered.GOOD)
    answered = now

    used = {visit(Answered.GOOD) for _ in range(30)}

    assert used == set(range(10))
    assert now - answered < 600, "they did not wait for the end of their quarantine"
