"""Counters are labels: there are few of them, whatever sites and handlers say."""

import re
from pathlib import Path

import pytest
from tests.contract.conftest import SqliteMemoryBench
from tests.contract.redis_servers import RedisBench

from trotline.adapters import redis
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury
from trotline.model.verdict import Kind
from trotline.rules.tallies import MOST_NAMES, folded
from trotline.testing.frontier_contract import tasks
from trotline.testing.frontier_contract.bench import lease_all


@pytest.mark.parametrize("kind", [SqliteMemoryBench, RedisBench])
async def test_b66_reasons_that_name_hosts_do_not_become_as_many_counters(
    kind: type[SqliteMemoryBench | RedisBench],
) -> None:
    bench = kind()
    try:
        frontier = await bench.open()
        await frontier.put(tasks(MOST_NAMES + 100))
        leases = await lease_all(frontier, "w")
        await frontier.settle(
            "w",
            [
                Settlement(lease, Bury(f"unreachable: host{number}.test does not exist"), tallies={"records": 1})
                for number, lease in enumerate(leases)
            ],
        )
        progress = await frontier.progress()
    finally:
        await bench.close()

    assert len(progress.tallies) <= MOST_NAMES + 10
    # Nothing is lost: what has no name of its own is counted with its like.
    assert progress.tallies["dead: unreachable: others"] >= 100
    dead = sum(count for name, count in progress.tallies.items() if name.startswith("dead: "))
    assert dead == progress.dead == MOST_NAMES + 100
    assert progress.tallies["records"] == MOST_NAMES + 100


def test_b66_both_frontiers_know_the_same_verdicts() -> None:
    lua = Path(redis.__file__).parent / "lua" / "job.lua"
    [words] = re.findall(r'VERDICTS = "([a-z ]+)"', lua.read_text())
    assert set(words.split()) == {kind.value for kind in Kind} | {"handler"}


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("dead: unreachable: a.test does not exist", "dead: unreachable: others"),
        ("retry: broken: 500", "retry: broken: others"),
        ("dead: handler: ValueError: http://a.test/?q=1", "dead: handler: others"),
        ("dropped: moved out of scope: a.test", "dropped: others"),
        ("snooze: a.test", "snooze: others"),
        ("a.test", "a.test: others"),
    ],
)
def test_b66_a_counter_of_many_reasons_keeps_what_happened_and_the_verdict(name: str, like: str) -> None:
    assert folded(name) == like
