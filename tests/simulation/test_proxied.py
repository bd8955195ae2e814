"""Crawls through a proxy pool on a virtual clock: `python -m tests.simulation --proxies --replay SEED`."""

import pytest

from tests.simulation.faults import CALM
from tests.simulation.proxied import simulate_proxies

SEEDS = 8
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_fault_loses_a_page_or_uses_a_proxy_twice_at_a_time(shard: int) -> None:
    for seed in range(shard, SEEDS, SHARDS):
        verdict = simulate_proxies(seed)

        assert [] == verdict.broken(), f"replay: python -m tests.simulation --proxies --replay {seed}"


def test_without_deaths_no_proxy_is_used_twice_at_a_time() -> None:
    for seed in range(10):
        verdict = simulate_proxies(seed, temper=CALM)

        assert [] == verdict.broken()
        assert (verdict.together, verdict.kills) == (0, 0)
        assert verdict.bans > 10, "or there is nothing to see"


def test_a_quarantine_that_is_shorter_than_the_ban_is_caught() -> None:
    verdicts = [simulate_proxies(seed, temper=CALM, rest=5.0) for seed in range(5)]

    assert any("proxies that are banned" in words for verdict in verdicts for words in verdict.broken())
