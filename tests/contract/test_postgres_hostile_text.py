"""Text that PostgreSQL cannot store: NUL, and half a surrogate pair. Pages, handlers and worker names can have both."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.postgres_frontiers import PostgresBench

from trotline.model.job import WorkerInfo
from trotline.model.lease import Reject, Settled, Settlement
from trotline.model.outcome import Bury, Done, Retry
from trotline.testing.frontier_contract import task, tasks
from trotline.testing.frontier_contract.bench import lease_all, lease_one

ODD = ("nul \0 inside", "half \ud800 of one", "\0", "\udfff\0", "\x1b[31mred\r\n", "'; DROP TABLE job; --", "%s $1 {n}")


@pytest.fixture
async def bench() -> AsyncIterator[PostgresBench]:
    bench = PostgresBench()
    yield bench
    await bench.close()


@pytest.mark.parametrize("odd", ODD)
async def test_odd_reasons_tallies_and_records_cost_no_task(bench: PostgresBench, odd: str) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(4))
    a, b, c, d = await lease_all(frontier, "w")
    ends = [
        Settlement(a, Bury(odd, odd), tallies={odd: 2}, examples={odd: f"https://shop.example/{odd}"}),
        Settlement(b, Done(odd), rejects=(Reject(odd, odd, odd),), tallies={"records rejected": 1}),
        Settlement(c, Retry(0.0, odd)),
        Settlement(d, Done(), tallies={odd: 1}),
    ]

    assert await frontier.settle("w", ends) == [Settled.OK] * 4

    progress = await frontier.progress()
    assert (progress.waiting, progress.leased, progress.done, progress.dead) == (1, 0, 2, 1)
    assert 3 in progress.tallies.values()
    assert len(await frontier.graves()) == 2
    assert sum((await frontier.reasons()).values()) == 2
    assert await frontier.revive(why=odd) == 1
    assert await frontier.graves(why=odd) == []


@pytest.mark.parametrize("odd", ODD)
async def test_odd_names_of_workers_sessions_and_notes_are_kept_apart(bench: PostgresBench, odd: str) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(2))
    await frontier.beat(odd, WorkerInfo(host="tea"))
    lease = await lease_one(frontier, odd)
    assert [view.leased for view in await frontier.workers()] == [1]
    assert [each.url for each in await frontier.in_flight()] == [lease.task.url]
    assert await frontier.leave(odd, guilty=lease.token, why=odd, detail=odd) == 1
    assert await frontier.session_home(odd, "home") == "home"
    assert await frontier.session_home(odd) == "home"
    assert await frontier.write_note(odd, b"x", 0)
    assert [note and note.data for note in await frontier.read_notes([odd, f"{odd}2"])] == [b"x", None]


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd.isascii() and "\0" not in odd])
async def test_odd_lanes_and_chains_are_data_and_not_sql(bench: PostgresBench, odd: str) -> None:
    """The gate lets no NUL and no surrogate through (`rules.task_checks.name`)."""
    frontier = await bench.open()
    await frontier.put([task("https://shop.example/a", lane=odd), task("https://shop.example/b", chain=odd)])

    held = await lease_all(frontier, "w")

    assert len(held) == 2
    await frontier.settle("w", [Settlement(each, Done()) for each in held])
    assert (await frontier.progress()).done == 2
    assert await frontier.lane_pace(odd) is not None
