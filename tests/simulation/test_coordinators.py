"""Two coordinators on a virtual clock. A failing seed is printed, and replayed by
`python -m tests.simulation --coordinators --replay SEED`."""

import pytest

from tests.simulation.coordinators import simulate_coordinators, start_in_two_steps

NIGHTS = 28
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_tick_starts_twice_or_is_lost_and_every_end_is_told_once(shard):
    kills = 0
    for seed in range(shard, NIGHTS, SHARDS):
        verdict = simulate_coordinators(seed)
        kills += verdict.kills

        assert [] == verdict.broken(), f"replay: python -m tests.simulation --coordinators --replay {seed}"
        assert verdict.started, "something must have run"

    assert kills > NIGHTS / SHARDS, "there must have been deaths"


def test_the_same_seed_gives_the_same_night():
    assert simulate_coordinators(7) == simulate_coordinators(7)


def test_starting_a_job_before_its_tick_is_remembered_is_caught():
    verdicts = [simulate_coordinators(seed, break_it=start_in_two_steps) for seed in range(10)]

    assert any(words.startswith("ticks that started twice") for verdict in verdicts for words in verdict.broken())
