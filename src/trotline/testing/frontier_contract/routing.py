"""F21: of a job with a queue per route, workers may take the tasks of some routes only."""

import asyncio
from typing import Any

import pytest

from trotline.errors import FrontierError
from trotline.model.job import LaneRules, State
from trotline.model.lease import LaneFeedback, Lease, Settlement
from trotline.model.outcome import Bury, Done, Retry
from trotline.model.proxy_pool import Pool, PoolMember
from trotline.model.task import LATER, SOON, Task
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    end,
    finish,
    lane_view,
    lease_all,
    live_on,
    steady,
    task,
    urls,
)
from trotline.testing.frontier_contract.living import PATIENCE
from trotline.testing.frontier_contract.pacing import assert_polite, starts_of

QUEUES = ("listing", "product")


def split(rate: float = 10_000.0, concurrency: int = 10_000, **rules: Any) -> LaneRules:
    return steady(rate, concurrency, queues=QUEUES, **rules)


def some(route: str, count: int, lane: str = SHOP, **fields: Any) -> list[Task]:
    return [task(f"https://{lane}/{route}/{n}", route=route, lane=lane, **fields) for n in range(count)]


def routes_of(leases: list[Lease]) -> set[str]:
    return {lease.task.route for lease in leases}


async def only(client: Client, worker: str, *routes: str, limit: int = 500) -> list[Lease]:
    held: list[Lease] = []
    while more := await client.lease(worker, limit, routes=routes):
        held += more
    return held


class RoutePromises:
    async def test_f21_a_worker_gets_tasks_of_its_routes_only(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("listing", 5), *some("product", 7), *some("added-later", 3)])

        products = await only(client, "p", "product")
        listings = await only(client, "l", "listing")
        others = await lease_all(client, "any")

        assert urls(products) == [each.url for each in some("product", 7)], "in their order"
        assert urls(listings) == [each.url for each in some("listing", 5)]
        assert routes_of(others) == {"added-later"}, "a worker that names no route takes all"

    async def test_f21_a_worker_may_take_several_routes(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("listing", 3), *some("product", 3), *some("added-later", 3)])

        held = await only(client, "w", "product", "listing")

        assert len(held) == 6
        assert routes_of(held) == set(QUEUES)

    async def test_f21_a_worker_that_names_no_route_takes_all_by_priority(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("listing", 3, priority=LATER), *some("product", 3, priority=SOON)])

        held = await lease_all(client, "w")

        assert [lease.task.route for lease in held] == ["product"] * 3 + ["listing"] * 3

    async def test_f21_what_waits_before_them_does_not_delay_them(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put(some("listing", 2_000, priority=SOON))
        await client.put(some("product", 1, priority=LATER))

        held = await client.lease("p", 10, routes=["product"])

        assert [lease.task.route for lease in held] == ["product"]
        assert not await client.lease("p", 10, routes=["product"])

    async def test_f21_priorities_hold_within_a_route_over_lanes(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("product", 2, lane="a.example", priority=LATER), *some("product", 2, lane="b.example")])
        await client.put(some("listing", 2, lane="b.example", priority=SOON))

        held = await only(client, "p", "product", limit=1)

        assert [lease.task.lane for lease in held] == ["b.example"] * 2 + ["a.example"] * 2

    async def test_f21_lanes_do_not_starve_each_other_within_a_route(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put(some("product", 500, lane="big.example"))
        await client.put(some("listing", 500, lane="small.example"))
        await client.put(some("product", 1, lane="small.example"))

        held = [lease for _ in range(3) for lease in await client.lease("p", 20, routes=["product"])]

        assert "small.example" in {lease.task.lane for lease in held}

    async def test_f21_routes_of_a_lane_share_its_pace(self, bench: Bench) -> None:
        client = await bench.open(split(5.0))
        await client.put([*some("listing", 100), *some("product", 100)])
        given: list[Lease] = []
        counts = {"listing": 0, "product": 0}

        for step in range(200):
            for route in QUEUES if step % 2 else reversed(QUEUES):
                leases = await client.lease(route, 10, routes=[route])
                await finish(client, route, leases)
                counts[route] += len(leases)
                given += leases
            bench.jump(0.05)

        assert_polite(starts_of(given), 0.2)
        assert len(given) >= 45, "and they use it"
        assert min(counts.values()) >= 5, f"neither route starves: {counts}"

    async def test_f21_one_call_for_several_routes_keeps_the_pace(self, bench: Bench) -> None:
        client = await bench.open(split(5.0))
        await client.put([*some("listing", 50), *some("product", 50)])
        given: list[Lease] = []

        for _ in range(100):
            leases = await client.lease("w", 10)
            await finish(client, "w", leases)
            given += leases
            bench.jump(0.05)

        assert_polite(starts_of(given), 0.2)
        assert len(given) >= 20

    async def test_f21_routes_of_a_lane_share_its_concurrency(self, bench: Bench) -> None:
        client = await bench.open(split(concurrency=2))
        await client.put([*some("listing", 10), *some("product", 10)])
        listings = await only(client, "l", "listing")
        assert len(listings) == 2
        assert not await only(client, "p", "product")

        await finish(client, "l", listings[:1])

        assert len(await only(client, "p", "product")) == 1, "a place that one route frees is free for the other"
        assert not await only(client, "l", "listing")

    async def test_f21_a_worker_waits_for_a_task_of_its_route(self, bench: Bench) -> None:
        client, other = await bench.open(split()), await bench.again()
        await client.put(some("listing", 3))
        asking = asyncio.create_task(client.lease("p", 10, wait=PATIENCE, routes=["product"]))
        await asyncio.sleep(0.05)
        assert not asking.done(), "tasks of another route do not end the wait"

        await other.put(some("product", 1))

        assert routes_of(await asking) == {"product"}

    async def test_f21_a_place_that_another_route_frees_ends_the_wait(self, bench: Bench) -> None:
        client, other = await bench.open(split(concurrency=1)), await bench.again()
        await client.put([*some("listing", 1), *some("product", 1)])
        [listing] = await only(other, "l", "listing")
        asking = asyncio.create_task(client.lease("p", 10, wait=PATIENCE, routes=["product"]))
        await asyncio.sleep(0.05)

        await finish(other, "l", [listing])

        assert routes_of(await asking) == {"product"}

    async def test_f21_children_go_to_the_queue_of_their_route(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put(some("listing", 1))
        [listing] = await client.lease("l", 1, routes=["listing"])

        await client.settle("l", [Settlement(listing, Done(), children=tuple(some("product", 3)))])

        assert not await client.lease("l", 10, routes=["listing"])
        assert len(await client.lease("p", 10, routes=["product"])) == 3

    async def test_f21_what_comes_back_stays_with_its_route(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("product", 4), *some("listing", 1)])
        first, second, third, fourth = await only(client, "p", "product")
        await end(client, "p", first, Retry(0.0, "503"))
        await end(client, "p", second, Retry(10.0, "503"))
        await end(client, "p", third, Bury("broken"))
        await client.leave("p")
        assert await client.revive(why="broken") == 1

        assert routes_of(await only(client, "l", "listing")) == {"listing"}
        back = await only(client, "p", "product")
        await live_on(bench, client, 11.0, "p", "l")
        back += await only(client, "p", "product")

        assert {lease.task.url for lease in back} == {lease.task.url for lease in (first, second, third, fourth)}

    async def test_f21_a_dead_workers_tasks_stay_with_their_route(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put(some("product", 2))
        assert len(await only(client, "p", "product")) == 2

        await live_on(bench, client, 25.0, "l", "q")

        assert not await only(client, "l", "listing")
        assert len(await only(client, "q", "product")) == 2

    async def test_f21_a_failing_lane_probes_with_the_route_that_is_asked_for(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("listing", 20), *some("product", 20)])
        for lease in (await client.lease("p", 12, routes=["product"]))[:12]:
            await end(client, "p", lease, Retry(0.0, "503"), LaneFeedback(Kind.UNREACHABLE))
        view = await lane_view(client)
        assert view.rests_for > 0, "the lane rests for all routes"
        assert not await only(client, "l", "listing")

        bench.jump(view.rests_for + 0.1)
        probes = [*await client.lease("l", 10, routes=["listing"]), *await client.lease("p", 10, routes=["product"])]

        assert len(probes) == 1, "one probe, of whichever route is asked for first"

    async def test_f21_a_paused_lane_gives_nothing_of_any_route(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.steer(State.PAUSED, SHOP)
        await client.put([*some("listing", 2), *some("product", 2)])
        assert not await lease_all(client, "w")
        assert (await lane_view(client)).paused

        await client.steer(State.RUNNING, SHOP)

        assert len(await lease_all(client, "w")) == 4

    async def test_f21_cancelling_a_lane_buries_all_its_routes(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("listing", 2), *some("product", 3)])

        assert await client.steer(State.CANCELLED, SHOP) == 5
        assert await client.waiting_routes() == {}

    async def test_f21_operators_see_a_lane_once_and_what_waits_by_route(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("listing", 2), *some("product", 3), *some("product", 1, lane="b.example")])
        await client.put(some("added-later", 1, lane="c.example"))
        assert await client.waiting_routes() == {"": 1, "listing": 2, "product": 4}

        [held] = await client.lease("l", 1, routes=["listing"])

        view = await lane_view(client)
        assert (view.lane, view.waiting, view.leased) == (SHOP, 4, 1)
        assert [each.lane for each in await client.lane_views([SHOP])] == [SHOP]
        pages = [view.lane for page in [page async for page in client.all_lanes()] for view in page]
        assert sorted(pages) == ["b.example", "c.example", SHOP]
        assert [each.lane for each in await client.in_flight()] == [held.task.lane]
        assert await client.waiting_routes() == {"": 1, "listing": 1, "product": 4}

    async def test_f21_delayed_tasks_count_as_waiting_for_their_route(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put(some("product", 2, not_before=bench.now() + 60.0))

        assert await client.waiting_routes() == {"product": 2}

    async def test_f21_proxy_pools_and_routes_hold_together(self, bench: Bench) -> None:
        client = await bench.open(split())
        pools = await bench.proxy_pools()
        members = tuple(PoolMember(id=number) for number in (1, 2, 3))
        await pools.register(Pool(name="res", version=1.0, members=members))
        via = {"lane": f"{SHOP} via res", "pool": "res"}
        await client.put([*some("listing", 2, **via), *some("product", 2, **via), *some("product", 1)])

        direct = await client.lease("d", 10, routes=["product"])
        pooled = await client.lease("p", 10, pools=["res"], routes=["product"])

        assert [lease.member for lease in direct] == [0]
        assert len(pooled) == 2
        assert all(lease.member for lease in pooled)
        assert routes_of(pooled) == {"product"}

    async def test_f21_a_job_ends_when_all_its_routes_have(self, bench: Bench) -> None:
        client = await bench.open(split())
        await client.put([*some("listing", 1), *some("product", 1)])
        await client.seal()
        await finish(client, "l", await only(client, "l", "listing"))
        assert not await client.finished()

        await finish(client, "p", await only(client, "p", "product"))

        assert await client.finished()
        assert await client.announce_finish()

    async def test_f21_a_route_without_a_queue_is_refused(self, bench: Bench) -> None:
        client = await bench.open(split())

        with pytest.raises(FrontierError, match="no queue for the route 'prodcut'") as caught:
            await client.lease("w", 1, routes=["prodcut"])

        assert "listing, product" in caught.value.hint

    async def test_f21_a_job_without_queues_refuses_routes(self, bench: Bench) -> None:
        client = await bench.open()
        await client.put(some("product", 1))

        with pytest.raises(FrontierError, match="one queue for all routes"):
            await client.lease("w", 1, routes=["product"])

        assert await client.waiting_routes() == {}
