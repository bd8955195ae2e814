"""F10 and F14: the books balance, and the end is announced once."""

import asyncio
from collections.abc import AsyncIterator

from trotline.model.lease import Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.testing.frontier_contract.bench import (
    Bench,
    Client,
    bury_one,
    end,
    finish,
    lease_all,
    lease_one,
    task,
    tasks,
)


async def books(client: Client) -> tuple[int, int, int, int]:
    progress = await client.progress()
    return progress.waiting, progress.leased, progress.done, progress.dead


class CountPromises:
    async def test_f10_the_books_balance_after_every_step(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        assert await books(operator) == (0, 0, 0, 0)
        await frontier.put(tasks(6))
        assert await books(operator) == (6, 0, 0, 0)
        a, b, c, d, e, _ = await lease_all(frontier, "w")
        assert await books(operator) == (0, 6, 0, 0)
        await frontier.settle("w", [Settlement(a, Done(), children=tuple(tasks(2, lane="b.example")))])
        assert await books(operator) == (2, 5, 1, 0)
        await end(frontier, "w", b, Retry(5, "503"))
        await end(frontier, "w", c, Snooze(9, "no proxy"))
        assert await books(operator) == (4, 3, 1, 0)
        progress = await operator.progress()
        assert progress.delayed == 2
        assert 8 < progress.due_in <= 9
        await end(frontier, "w", d, Bury("gone: 404"))
        assert await books(operator) == (4, 2, 1, 1)
        await end(frontier, "w", e, Done("refused: robots.txt"))
        assert await books(operator) == (4, 1, 2, 1)
        await operator.revive(why="gone")
        assert await books(operator) == (5, 1, 2, 0)
        await frontier.leave("w")
        assert await books(operator) == (6, 0, 2, 0)

    async def test_f10_a_rescue_moves_tasks_and_loses_none(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(5))
        await lease_all(frontier, "dead")
        bench.jump(20)

        assert len(await frontier.lease("alive", 2)) == 2

        assert await books(operator) == (3, 2, 0, 0)

    async def test_f10_a_look_in_the_middle_of_the_work_sees_every_task(self, bench: Bench) -> None:
        frontier, observer = await bench.open(), await bench.again()
        await frontier.put(tasks(120))
        work = [asyncio.create_task(_work(await bench.again(), f"w{n}")) for n in range(3)]

        try:
            while not all(worker.done() for worker in work):
                progress = await observer.progress()
                assert progress.admitted == 120, f"some tasks are out of sight: {progress}"
                await asyncio.sleep(0)
        finally:
            await asyncio.gather(*work)

        assert await books(observer) == (0, 0, 120, 0)

    async def test_f10_a_look_while_tasks_arrive_never_goes_back(self, bench: Bench) -> None:
        frontier, observer = await bench.open(), await bench.again()
        seen: list[int] = []

        async def put() -> None:
            for number in range(40):
                await frontier.put(tasks(5, lane=f"l{number}.example"))

        putting = asyncio.create_task(put())
        while not putting.done():
            seen.append((await observer.progress()).admitted)
            await asyncio.sleep(0)
        await putting

        assert seen == sorted(seen)
        assert all(count % 5 == 0 for count in seen), "a batch is seen whole or not at all"
        assert (await observer.progress()).admitted == 200

    async def test_f10_what_happened_is_tallied(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(4))
        a, b, c, d = await lease_all(frontier, "w")
        await finish(frontier, "w", [a])
        await end(frontier, "w", b, Done("gone: 404"))
        await end(frontier, "w", c, Retry(0, "503"))
        await end(frontier, "w", d, Bury("blocked: captcha"))

        tallies = (await frontier.progress()).tallies

        for why in ("gone: 404", "503", "blocked: captcha"):
            assert [count for name, count in tallies.items() if why in name] == [1], f"{why} in {tallies}"

    async def test_f10_what_a_visit_counts_is_added_up_and_the_first_example_is_kept(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        a, b, stale = await lease_all(frontier, "w")
        await frontier.leave("w")
        a, b, _ = await lease_all(frontier, "w")
        for lease, trap in ((a, "/first"), (b, "/second"), (stale, "/stale")):
            counts = {"records": 2, "links refused: trap": 1}
            shown = {"links refused: trap": f"https://shop.example{trap}"}
            await frontier.settle("w", [Settlement(lease, Done(), tallies=counts, examples=shown)])

        progress = await operator.progress()

        assert (progress.tallies["records"], progress.tallies["links refused: trap"]) == (4, 2)
        assert progress.examples == {"links refused: trap": "https://shop.example/first"}

    async def test_f14_finished_means_sealed_and_nothing_left(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        assert not await frontier.finished()
        assert not await frontier.announce_finish(), "an unsealed job is not finished, even when it is empty"
        await frontier.put([*tasks(2), task("https://shop.example/late", not_before=bench.now() + 60)])
        await frontier.seal()
        assert not await other.announce_finish(), "tasks wait"
        first, second = await lease_all(frontier, "w")
        await finish(frontier, "w", [first])
        await frontier.settle("w", [Settlement(second, Done(), children=(task("https://shop.example/child"),))])
        assert not await other.announce_finish(), "a child waits"
        await finish(frontier, "w", await lease_all(frontier, "w"))
        assert not await other.announce_finish(), "a task waits for its due time"
        bench.jump(60)
        last = await lease_one(frontier, "w")
        assert not await other.finished(), "a task is under lease"
        assert not await other.announce_finish()
        await end(frontier, "w", last, Bury("gone: 404"))

        assert await other.finished()
        assert await frontier.announce_finish()
        assert not await other.announce_finish()
        assert await other.finished(), "announcing does not end being finished"
        assert (await other.progress()).finished_at is not None

    async def test_f14_a_sealed_job_without_tasks_is_finished(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.seal()
        await frontier.seal()

        assert await frontier.finished()
        assert await frontier.announce_finish()
        assert not await frontier.announce_finish()

    async def test_f14_of_many_that_ask_at_once_one_announces(self, bench: Bench) -> None:
        clients = [await bench.open(), await bench.again(), await bench.again()]
        await clients[0].put(tasks(1))
        await clients[1].seal()
        await finish(clients[2], "w", [await lease_one(clients[2], "w")])

        answers = await asyncio.gather(*(client.announce_finish() for client in clients * 5))

        assert answers.count(True) == 1

    async def test_f14_the_end_is_announced_once_and_not_early_while_workers_race(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(60))
        await frontier.seal()
        announced: list[tuple[int, int, int, int]] = []

        async def work_and_ask(client: Client, worker: str) -> None:
            async for _ in _visits(client, worker):
                if await client.announce_finish():
                    announced.append(await books(client))

        clients = [await bench.again() for _ in range(4)]
        await asyncio.gather(*(work_and_ask(client, f"w{n}") for n, client in enumerate(clients)))

        assert announced == [(0, 0, 60, 0)]

    async def test_f14_new_work_after_the_end_opens_the_job_again(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(2))
        await frontier.seal()
        await bury_one(frontier, "w", "broken: 500")
        await finish(frontier, "w", [await lease_one(frontier, "w")])
        assert await frontier.announce_finish()
        await frontier.put(tasks(2))
        assert await frontier.finished(), "duplicates are not new work"
        assert not await frontier.announce_finish()

        await frontier.put([task("https://shop.example/new")])
        assert not await frontier.finished()
        assert (await frontier.progress()).finished_at is None
        assert not await frontier.announce_finish()
        await finish(frontier, "w", [await lease_one(frontier, "w")])
        assert await frontier.announce_finish()
        assert not await frontier.announce_finish()
        await frontier.revive(why="broken")
        assert not await frontier.finished()
        await finish(frontier, "w", [await lease_one(frontier, "w")])

        assert await frontier.announce_finish()
        assert not await frontier.announce_finish()

    async def test_f14_a_seal_seen_by_one_is_seen_by_all(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        assert not (await other.progress()).sealed

        await frontier.seal()

        assert (await other.progress()).sealed
        assert await other.finished()


async def _visits(client: Client, worker: str) -> AsyncIterator[None]:
    """Visit small batches until nothing is left; yields after each settle."""
    while leases := await client.lease(worker, 3):
        await finish(client, worker, leases)
        yield


async def _work(client: Client, worker: str) -> None:
    async for _ in _visits(client, worker):
        await asyncio.sleep(0)
