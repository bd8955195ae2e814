"""F3, F4 and F15: who gets which task, and in which order."""

import asyncio

from trotline.model.outcome import Bury, Retry
from trotline.model.pace import Pace, Rate
from trotline.model.task import LATER, NORMAL, SOON
from trotline.ports.frontier import DEAD_AFTER
from trotline.testing.frontier_contract.bench import (
    FAST,
    Bench,
    end,
    finish,
    lease_all,
    lease_one,
    live_on,
    steady,
    task,
    tasks,
    urls,
)


class LeasePromises:
    async def test_f3_no_task_is_leased_twice_however_many_ask_at_once(self, bench: Bench) -> None:
        clients = [await bench.open(), await bench.again(), await bench.again()]
        await clients[0].put(tasks(60))

        hauls = await asyncio.gather(*(clients[n % 3].lease(f"w{n}", 7) for n in range(18)))
        rest = await lease_all(clients[1], "last")

        got = [url for haul in [*hauls, rest] for url in urls(haul)]
        assert sorted(got) == sorted(each.url for each in tasks(60))

    async def test_f3_tokens_of_live_leases_differ(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(10))

        leases = await frontier.lease("a", 5) + await other.lease("b", 5)

        assert len({lease.token for lease in leases}) == 10

    async def test_f3_a_leased_task_is_not_leased_again_while_its_worker_lives(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        held = await lease_all(frontier, "a")

        for _ in range(10):
            await live_on(bench, frontier, DEAD_AFTER, "a")
            assert await other.lease("b", 10) == []

        await finish(frontier, "a", held)

    async def test_f3_a_lease_of_nothing_asks_for_nothing(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3))

        assert await frontier.lease("w", 0) == []
        assert len(await frontier.lease("w", 2)) == 2

    async def test_f4_nothing_is_leased_before_its_due_time(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([task("https://shop.example/later", not_before=bench.now() + 60)])

        assert await frontier.lease("w", 10) == []
        assert (await frontier.progress()).delayed == 1
        bench.jump(58)
        assert await frontier.lease("w", 10) == []
        bench.jump(2)

        assert urls(await frontier.lease("w", 10)) == ["https://shop.example/later"]

    async def test_f4_sooner_priority_first_and_first_come_first_served_within_one(self, bench: Bench) -> None:
        frontier = await bench.open()
        order = [LATER, NORMAL, SOON, NORMAL, SOON, LATER]
        await frontier.put([task(f"https://shop.example/{n}", priority=prio) for n, prio in enumerate(order)])
        await frontier.put([task("https://shop.example/first", priority=-5)])

        came = [(await lease_one(frontier, "w")).task.url.rpartition("/")[2] for _ in range(7)]

        assert came == ["first", "2", "4", "1", "3", "0", "5"]

    async def test_f4_a_batch_of_one_lane_starts_in_the_order_of_the_queue(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(50))

        leases = await lease_all(frontier, "w")

        by_start = sorted(leases, key=lambda lease: lease.leased_at + lease.start_in)
        assert urls(by_start) == [each.url for each in tasks(50)]

    async def test_f4_sooner_priority_first_across_lanes(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(5, lane="a.example", priority=NORMAL))
        await frontier.put(tasks(5, lane="b.example", priority=SOON))
        await frontier.put(tasks(5, lane="c.example", priority=LATER))

        lanes = [(await lease_one(frontier, "w")).task.lane for _ in range(15)]

        assert lanes == ["b.example"] * 5 + ["a.example"] * 5 + ["c.example"] * 5

    async def test_f4_a_lane_that_may_not_run_now_does_not_hold_up_later_priorities(self, bench: Bench) -> None:
        slow = Pace(rate=Rate(1 / 3600), slowest=Rate(1 / 3600))
        frontier = await bench.open(steady(lanes={"slow.example": slow}))
        await frontier.put(tasks(5, lane="slow.example", priority=SOON))
        await frontier.put(tasks(5, lane="fast.example", priority=LATER))

        lanes = [lease.task.lane for lease in await lease_all(frontier, "w")]

        assert sorted(lanes) == ["fast.example"] * 5 + ["slow.example"]

    async def test_f4_a_retried_task_waits_its_time_and_goes_behind_fresh_ones(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([task("https://shop.example/again")])
        failed = await lease_one(frontier, "w")

        await end(frontier, "w", failed, Retry(10, "503"))
        await frontier.put([task("https://shop.example/fresh")])
        bench.jump(9)
        fresh = await lease_one(frontier, "w")
        assert await frontier.lease("w", 1) == [], "the retry is not due"
        await end(frontier, "w", fresh, Bury("blocked: 403"))
        bench.jump(1)
        await frontier.put([task("https://shop.example/fresher")])

        assert urls([await lease_one(frontier, "w"), await lease_one(frontier, "w")]) == [
            "https://shop.example/fresher",
            "https://shop.example/again",
        ]

    async def test_f15_a_huge_lane_does_not_delay_another_lanes_first_task(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3000, lane="huge.example"))
        await frontier.put(tasks(1, lane="small.example"))

        first = [(await lease_one(frontier, "w")).task.lane for _ in range(3)]

        assert "small.example" in first

    async def test_f15_lanes_of_one_priority_take_turns(self, bench: Bench) -> None:
        frontier = await bench.open()
        lanes = [f"l{n}.example" for n in range(20)]
        for lane in lanes:
            await frontier.put(tasks(50, lane=lane))

        turns = [lease.task.lane for lease in await lease_all(frontier, "w", limit=60)]
        turns += [(await lease_one(frontier, "w")).task.lane for _ in range(60)]

        counts = {lane: turns.count(lane) for lane in lanes}
        assert min(counts.values()) >= 3, f"six turns each would be even: {counts}"

    async def test_f15_a_lane_at_its_limit_does_not_use_up_the_batch(self, bench: Bench) -> None:
        narrow = Pace(rate=FAST, concurrency=1, slowest=FAST)
        frontier = await bench.open(steady(lanes={"narrow.example": narrow}))
        await frontier.put(tasks(500, lane="narrow.example", priority=SOON))
        await frontier.put(tasks(5, lane="wide.example", priority=LATER))

        lanes = [lease.task.lane for lease in await frontier.lease("w", 6)]

        assert sorted(lanes) == ["narrow.example"] + ["wide.example"] * 5

    async def test_f15_tasks_not_yet_due_do_not_hide_those_that_are(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(500, priority=SOON, not_before=bench.now() + 3600))
        await frontier.put([task("https://shop.example/now", priority=LATER)])

        assert urls(await frontier.lease("w", 5)) == ["https://shop.example/now"]
