"""Whole crawls over shards. A failing seed is printed: `python -m tests.simulation --shards --replay SEED`."""

import asyncio
from typing import Any

import pytest

from tests.simulation.faults import CALM, Temper
from tests.simulation.fleet import simulate_fleet
from trotline.adapters.redis import frontier as frontier_module
from trotline.adapters.redis import job_shards
from trotline.adapters.redis.sharding import finish
from trotline.adapters.redis.sharding.settle import ShardedSettle
from trotline.testing.frontier_contract import Client

SEEDS = 4
PARTS = 4
LOSSY = Temper(crash=0, freeze=0.001, lost_reply=0.01, twice=0, slow=0.05)
"""Nobody dies: whoever sent what was forgotten is there to repeat it."""
RUDE = Temper(crash=0.02, freeze=0, lost_reply=0, twice=0, slow=0)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_fault_between_shards_loses_a_page_or_ends_a_job_early(part):
    for seed in range(part, SEEDS, PARTS):
        verdict = simulate_fleet(seed)

        assert [] == verdict.broken(), f"replay: python -m tests.simulation --shards --replay {seed}"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_shard_that_forgets_its_last_seconds_loses_no_page(part):
    for seed in range(part, SEEDS, PARTS):
        verdict = simulate_fleet(seed, temper=LOSSY, forgetful=True)

        # When it was asked last is forgotten as well, and an end that was told before the forgotten is repeated.
        forgiven = ("a lane was asked", "finish announced")
        assert [] == [words for words in verdict.broken() if not words.startswith(forgiven)]


def test_what_a_shard_forgot_is_lost_if_nobody_repeats_it(monkeypatch):
    async def nobody(self):
        return

    monkeypatch.setattr(ShardedSettle, "repeat", nobody)
    # Half of all crawls show it, the first of these among them: it ends the test.
    verdicts = (simulate_fleet(seed, temper=CALM, forgetful=True) for seed in range(5, 15))

    assert any("lost" in words for verdict in verdicts for words in verdict.broken())


def test_the_same_seed_gives_the_same_crawl():
    assert simulate_fleet(11) == simulate_fleet(11)


def test_ending_a_lease_before_its_children_are_elsewhere_is_caught():
    verdicts = (simulate_fleet(seed, temper=RUDE, break_it=leave_before_arriving) for seed in range(5))

    assert any("lost" in words for verdict in verdicts for words in verdict.broken())


def test_an_end_that_is_looked_at_once_is_caught(monkeypatch):
    async def looked_at_once(server, job):
        seen = await finish.read_counts(server, job)
        return int(sum(seen.entered)) if seen.empty else None

    monkeypatch.setattr(job_shards, "ended_with", looked_at_once)
    monkeypatch.setattr(frontier_module, "ended_with", looked_at_once)
    # One in twenty crawls shows it; the first of these that does ends the test.
    verdicts = (simulate_fleet(seed, temper=CALM) for seed in range(250, 350))

    assert any("finish announced" in words for verdict in verdicts for words in verdict.broken())


def leave_before_arriving(frontier: Client) -> None:
    """A planted bug: a lease ends in its own shard first, then what it led to goes to the others."""

    class Hasty(ShardedSettle):
        async def _settle(self, worker, shard, group):  # type: ignore[no-untyped-def]
            away = [each for each in group if self._leaves(shard, each)]
            answers = await shard.settle(worker, [self._own(shard, each) for each in group])
            children = [child for each in away for child in each.children if self._home(child.lane) is not shard]
            await asyncio.gather(*(target.put(tasks) for target, tasks in self._by_home(children).items()))
            return answers

    own: Any = frontier.opened.frontier
    own._sharded_settle = Hasty(own._shards, own._parts.home)
