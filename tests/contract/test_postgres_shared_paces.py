"""What a transaction does for other jobs of the same hosts, as the server plans it."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.postgres_frontiers import PostgresBench, WheelBench

from trotline.adapters.postgres.frontier.combined_statement import composed
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.testing.frontier_contract import tasks

LANES = 300


@pytest.fixture(params=[PostgresBench, WheelBench], ids=["15", "18"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[PostgresBench]:
    bench = request.param()
    yield bench
    await bench.close()


async def test_lanes_of_other_jobs_are_found_by_their_pace_and_not_among_all_turns(bench: PostgresBench) -> None:
    frontier = await bench.open()
    await frontier.put([task for lane in range(LANES) for task in tasks(1, lane=f"h{lane}.example")])
    store = JobStore(database := bench.database(), frontier.opened.job)
    await store.open()
    async with database.transaction() as db:
        await db.execute("ANALYZE turn; ANALYZE lane")
    async with database.transaction(plans=True) as db:
        tx = JobTransaction(db, store)
        await tx.lock_lanes(row[0] for row in await db.fetch("SELECT id FROM lane LIMIT 64"))
        tx.try_again(list(tx.lanes), full_only=True)
        rows = await db.fetch("EXPLAIN " + composed(tx.more)[0], *composed(tx.more)[1:])
    await database.close()
    plan = "\n".join(row[0] for row in rows)

    [scan] = [part for part in plan.split("->") if " on turn " in part and "Scan" in part]
    assert "Index Cond: (lane " in scan, plan
