"""Counters are labels: there are few of them, whatever sites and handlers say."""

import re

import pytest
from tests.contract.conftest import SqliteMemoryBench
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis.scripts import script
from trotline.model.lease import Reject, Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.verdict import Kind
from trotline.rules.counter_limits import MOST_NAMES, MOST_REJECTS, NOT_KEPT, folded
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


@pytest.mark.parametrize("kind", [SqliteMemoryBench, RedisBench])
async def test_b66_reasons_of_graves_and_of_bad_records_are_few(
    kind: type[SqliteMemoryBench | RedisBench],
) -> None:
    bench = kind()
    try:
        frontier = await bench.open()
        await frontier.put(tasks(MOST_NAMES + 100))
        leases = await lease_all(frontier, "w")
        buried, others = leases[: MOST_NAMES + 50], leases[MOST_NAMES + 50 :]
        await frontier.settle(
            "w", [Settlement(lease, Bury(f"unreachable: host{lease.token}.test is away")) for lease in buried]
        )
        rejects = [Reject(kind="page", why=f"price {number} is none", data="{}") for number in range(12 * 50)]
        await frontier.settle(
            "w",
            [
                Settlement(lease, Done(), rejects=tuple(rejects[12 * place : 12 * place + 12]))
                for place, lease in enumerate(others)
            ],
        )
        reasons = await frontier.reasons()
        risen = await frontier.revive(why="unreachable: ")
        left = await frontier.reasons()
    finally:
        await bench.close()

    assert len(reasons) <= 2 * MOST_NAMES + 10
    assert _counted(reasons, "unreachable: ") == len(buried) == risen
    assert _counted(reasons, "bad record: ") == len(rejects)
    assert reasons["bad record: others"] >= 100
    assert _counted(left, "unreachable: ") == 0
    assert _counted(left, "bad record: ") == len(rejects)


@pytest.mark.parametrize("kind", [SqliteMemoryBench, RedisBench])
async def test_b66_bad_records_beyond_the_kept_ones_are_counted(kind: type[SqliteMemoryBench | RedisBench]) -> None:
    bench = kind()
    try:
        frontier = await bench.open()
        await frontier.put(tasks(30))
        rejects = tuple(Reject(kind="page", why="no price", data="{}") for _ in range(500))
        leases = await lease_all(frontier, "w")
        await frontier.settle("w", [Settlement(lease, Done(), rejects=rejects) for lease in leases])
        progress, reasons = await frontier.progress(), await frontier.reasons()
        kept = await frontier.graves(limit=100_000)
    finally:
        await bench.close()

    assert len(kept) == MOST_REJECTS
    assert progress.tallies["records rejected"] == _counted(reasons, "bad record: ") == 30 * 500
    assert progress.tallies[NOT_KEPT] == 30 * 500 - MOST_REJECTS


@pytest.mark.parametrize("kind", [SqliteMemoryBench, RedisBench])
async def test_b66_what_tells_how_a_job_ended_keeps_its_name_after_many_others(
    kind: type[SqliteMemoryBench | RedisBench],
) -> None:
    own = {"records": 3, "records rejected": 2, "links refused: depth": 7}
    bench = kind()
    try:
        frontier = await bench.open()
        await frontier.put(tasks(MOST_NAMES + 11))
        *away, last = await lease_all(frontier, "w")
        await frontier.settle(
            "w", [Settlement(lease, Bury(f"unreachable: host{lease.token}.test does not exist")) for lease in away]
        )
        await frontier.settle("w", [Settlement(last, Done(), tallies=own)])
        progress = await frontier.progress()
    finally:
        await bench.close()

    assert {name: progress.tallies.get(name) for name in own} == own


def _counted(reasons: dict[str, int], start: str) -> int:
    return sum(count for why, count in reasons.items() if why.startswith(start))


def test_b66_both_frontiers_keep_as_many_bad_records() -> None:
    assert f'call("LLEN", P .. "rejects") < {MOST_REJECTS} then' in script("settle").text


def test_b66_both_frontiers_know_the_same_verdicts() -> None:
    [words] = re.findall(r'known = verdict and find\("([a-z ]+)"', script("settle").text)
    assert set(words.split()) == {kind.value for kind in Kind} | {"handler"}


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("dead: unreachable: a.test does not exist", "dead: unreachable: others"),
        ("retry: broken: 500", "retry: broken: others"),
        ("dead: handler: ValueError: http://a.test/?q=1", "dead: handler: others"),
        ("dropped: moved out of scope: a.test", "dropped: others"),
        ("snooze: a.test", "snooze: others"),
        ("records rejected", "records rejected"),
        ("links refused: trap: deep path", "links refused: trap: deep path"),
    ],
)
def test_b66_a_counter_of_many_reasons_keeps_what_happened_and_the_verdict(name: str, like: str) -> None:
    assert folded(name) == like
