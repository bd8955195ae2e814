"""F20: a job's budget holds, however many workers ask."""

import asyncio

from trotline.model.job import Budget
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.testing.frontier_contract.bench import Bench, end, finish, lease_all, tasks


class BudgetPromises:
    async def test_f20_pages_under_way_are_reserved(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(100))
        await frontier.seal()
        await frontier.set_budget(Budget(pages=10))

        mine, theirs = await lease_all(frontier, "a", 7), await lease_all(other, "b", 7)

        assert (len(mine), len(theirs)) == (7, 3)
        assert await frontier.lease("a", 5) == [] == await other.lease("b", 5)
        assert not await frontier.finished(), "what is under way may come back"
        await finish(frontier, "a", mine)
        assert await frontier.lease("a", 5) == []
        await finish(other, "b", theirs)
        assert await frontier.finished() and await other.finished()
        progress = await other.progress()
        assert (progress.done, progress.leased, progress.waiting) == (10, 0, 90)
        assert (progress.spent, progress.finished_at) == ("max_pages=10", None)
        assert not await frontier.announce_finish()

    async def test_f20_many_who_ask_at_once_share_one_budget(self, bench: Bench) -> None:
        frontier = await bench.open()
        clients = [frontier, *[await bench.again() for _ in range(4)]]
        await frontier.put(tasks(200))
        await frontier.set_budget(Budget(pages=20))

        leases = await asyncio.gather(*(client.lease(f"w{n}", 16) for n, client in enumerate(clients)))
        # At a broker, tasks may be on their way to one client while another asks.
        rest = await lease_all(frontier, "w0", 21)

        assert sum(map(len, leases)) + len(rest) == 20

    async def test_f20_what_comes_back_leaves_room_and_what_died_does_not(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(10))
        await frontier.set_budget(Budget(pages=3))
        snoozed, retried, buried = await lease_all(frontier, "w", 3)

        await end(frontier, "w", snoozed, Snooze(wait=0.0, why="moved"))
        await end(frontier, "w", retried, Retry(wait=3600.0, why="503"))
        await end(frontier, "w", buried, Bury(why="gone"))

        assert len(await lease_all(frontier, "w", 5)) == 2

    async def test_f20_bytes_stop_the_job_when_they_are_read(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(10))
        await frontier.set_budget(Budget(size=1_000))
        first, second, third = await lease_all(frontier, "w", 3)

        await frontier.settle("w", [Settlement(first, Done(), tallies={"bytes": 600})])
        assert not await frontier.finished()
        await frontier.settle("w", [Settlement(second, Done(), tallies={"bytes": 600})])

        assert await frontier.lease("w", 5) == []
        assert await frontier.finished()
        # What was in flight is on top.
        await frontier.settle("w", [Settlement(third, Done(), tallies={"bytes": 600})])
        progress = await frontier.progress()
        assert (progress.size, progress.spent) == (1_800, "max_bytes=1000")

    async def test_f20_a_budget_is_given_anew_and_lifted(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(20))
        await frontier.set_budget(Budget(pages=5))
        await finish(frontier, "w", await lease_all(frontier, "w"))
        assert (await frontier.progress()).done == 5

        await frontier.set_budget((await frontier.progress()).allowing(3, None))
        await finish(frontier, "w", await lease_all(frontier, "w"))
        progress = await frontier.progress()
        assert (progress.done, progress.spent) == (8, "max_pages=3")

        await frontier.set_budget(Budget())
        assert not await frontier.finished()
        assert len(await lease_all(frontier, "w")) == 12

    async def test_f20_a_worker_that_died_gives_its_part_back(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(20))
        await frontier.set_budget(Budget(pages=4))
        assert len(await lease_all(frontier, "dies")) == 4
        assert await frontier.lease("lives", 5) == []

        await frontier.leave("dies")

        assert len(await lease_all(frontier, "lives")) == 4
