"""F1, F2 and F7: what is admitted, that it stays, and that what is done stays done."""

import asyncio

from msgspec.structs import replace

from trotline.model.lease import Admission, Settled, Settlement
from trotline.model.outcome import Bury, Done, Snooze
from trotline.testing.frontier_contract.bench import Bench, end, finish, lease_all, lease_one, task, tasks, urls

NEW, DUPLICATE = Admission.NEW, Admission.DUPLICATE


class PutPromises:
    async def test_f1_putting_twice_admits_once(self, bench: Bench) -> None:
        frontier = await bench.open()

        assert await frontier.put([task("https://shop.example/tea")]) == [NEW]
        assert await frontier.put([task("https://shop.example/tea")]) == [DUPLICATE]

        assert len(await lease_all(frontier, "w")) == 1
        assert (await frontier.progress()).admitted == 1

    async def test_f1_answers_come_in_the_order_given_also_for_repeats_in_one_batch(self, bench: Bench) -> None:
        frontier = await bench.open()
        known, tea, milk = tasks(3)
        await frontier.put([known])

        assert await frontier.put([tea, known, tea, milk, milk]) == [NEW, DUPLICATE, DUPLICATE, NEW, DUPLICATE]

        assert (await frontier.progress()).admitted == 3

    async def test_f1_an_empty_put_is_harmless(self, bench: Bench) -> None:
        frontier = await bench.open()

        assert await frontier.put([]) == []

        assert (await frontier.progress()).admitted == 0

    async def test_f1_of_many_puts_at_once_exactly_one_admits(self, bench: Bench) -> None:
        clients = [await bench.open(), await bench.again(), await bench.again()]
        for batch in ([task(f"https://shop.example/{n}"), task(f"https://shop.example/{n}/b")] for n in range(20)):
            answers = await asyncio.gather(*(client.put(batch) for client in clients * 3))

            assert sum(answer.count(NEW) for answer in answers) == 2, "each of the two tasks is new exactly once"

        assert sorted(urls(await lease_all(clients[0], "w"))) == sorted(
            f"https://shop.example/{n}{tail}" for n in range(20) for tail in ("", "/b")
        )

    async def test_f1_a_put_and_a_settle_with_the_same_child_admit_it_once(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        parents = tasks(10)
        await frontier.put(parents)
        for lease in await lease_all(frontier, "w"):
            child = task(lease.task.url + "/child")

            await asyncio.gather(
                frontier.settle("w", [Settlement(lease, Done(), children=(child, child))]), other.put([child])
            )

        assert len(await lease_all(other, "v")) == len(parents)

    async def test_f1_identity_is_the_fingerprint_so_routes_and_keys_keep_tasks_apart(self, bench: Bench) -> None:
        frontier = await bench.open()
        page = "https://shop.example/tea"
        different = [task(page, "page"), task(page, "prices"), task(page, "page", key="tea@monday")]

        assert await frontier.put(different) == [NEW] * 3

    async def test_f2_a_new_task_can_be_leased_by_another_client_at_once(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()

        await frontier.put([task("https://shop.example/tea")])

        assert urls(await other.lease("w", 10)) == ["https://shop.example/tea"]

    async def test_f2_the_task_that_is_leased_is_the_task_that_was_put(self, bench: Bench) -> None:
        frontier = await bench.open()
        whole = task(
            "https://shop.example/tea?sort=price",
            priority=7,
            depth=3,
            retries=9,
            site="shop",
            pool="residential",
            created_at=bench.now() - 5,
            parent="https://shop.example/",
            session="anna",
            method="POST",
            headers=(("accept", "text/html"), ("x-two", "1")),
            body=b"\x00q=tea",
            hops=1,
            meta={"page": 2, "names": ["tè", "茶"]},
        )
        await frontier.put([whole])

        assert (await lease_one(frontier, "w")).task == whole

    async def test_f2_an_admitted_task_outlives_the_process_that_put_it(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([task("https://shop.example/tea")])
        await bench.crash(frontier)

        survivor = await bench.again()

        assert await survivor.put([task("https://shop.example/tea")]) == [DUPLICATE]
        assert urls(await survivor.lease("w", 10)) == ["https://shop.example/tea"]

    async def test_f2_a_lease_outlives_the_process_that_took_it(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([task("https://shop.example/tea")])
        lease = await lease_one(frontier, "w")
        await bench.crash(frontier)

        survivor = await bench.again()

        assert await survivor.lease("other", 10) == [], "the lease is still alive"
        assert await end(survivor, "w", lease, Done()) == Settled.OK

    async def test_f7_a_done_task_never_comes_back(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(2))
        read, dropped = await lease_all(frontier, "w")
        await finish(frontier, "w", [read])
        await end(frontier, "w", dropped, Done("gone: 404"))

        assert await frontier.put(tasks(2)) == [DUPLICATE, DUPLICATE]
        bench.jump(86_400)

        assert await frontier.lease("w", 10) == []
        assert await frontier.put(tasks(2)) == [DUPLICATE, DUPLICATE]
        assert (await frontier.progress()).done == 2

    async def test_f7_a_done_task_does_not_come_back_as_a_child(self, bench: Bench) -> None:
        frontier = await bench.open()
        home, page = tasks(2)
        await frontier.put([home, page])
        first, second = await lease_all(frontier, "w")
        await finish(frontier, "w", [first])

        await frontier.settle("w", [Settlement(second, Done(), children=(home, page))])

        assert await frontier.lease("w", 10) == []
        assert (await frontier.progress()).admitted == 2

    async def test_f7_a_buried_task_put_again_stays_buried(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        await end(frontier, "w", await lease_one(frontier, "w"), Bury("blocked: captcha"))

        assert await frontier.put(tasks(1)) == [DUPLICATE]

        assert await frontier.lease("w", 10) == []
        assert (await frontier.progress()).dead == 1

    async def test_f7_a_task_that_moved_keeps_its_identity(self, bench: Bench) -> None:
        frontier = await bench.open()
        [old] = tasks(1)
        moved = replace(old, url="https://new.example/0", lane="new.example", hops=1)
        await frontier.put([old])

        await end(frontier, "w", await lease_one(frontier, "w"), Snooze(0, "moved", moved))
        again = await lease_one(frontier, "w")

        assert (again.task.url, again.task.lane, again.task.hops) == ("https://new.example/0", "new.example", 1)
        assert await frontier.put([old]) == [DUPLICATE]
        await finish(frontier, "w", [again])
        assert await frontier.put([old]) == [DUPLICATE]
