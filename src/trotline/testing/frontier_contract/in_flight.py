"""F3, F5 and R1 as operators see them: which leases are under way, and since when."""

from msgspec.structs import replace

from trotline.model.job import InFlight
from trotline.model.lease import Lease
from trotline.model.outcome import Retry
from trotline.testing.frontier_contract.bench import (
    Bench,
    end,
    finish,
    lease_all,
    lease_one,
    live_on,
    steady,
    task,
    tasks,
)
from trotline.testing.frontier_contract.living import RESCUED_WITHIN
from trotline.testing.frontier_contract.pool_bench import pool_with, register, take, through

GRAIN = 0.01


def shown(lease: Lease, worker: str) -> InFlight:
    return InFlight(
        url=lease.task.url,
        lane=lease.task.lane,
        worker=worker,
        route=lease.task.route,
        attempt=lease.task.attempt,
        leased_at=lease.leased_at,
        starts_at=lease.leased_at + lease.start_in,
        member=lease.member,
    )


def same(found: InFlight, expected: InFlight) -> bool:
    """Times may be rounded."""
    assert found.leased_at is not None
    assert found.starts_at is not None
    assert expected.leased_at is not None
    assert expected.starts_at is not None
    near = abs(found.leased_at - expected.leased_at) + abs(found.starts_at - expected.starts_at) < GRAIN
    return near and replace(found, leased_at=None, starts_at=None) == replace(expected, leased_at=None, starts_at=None)


class InFlightPromises:
    async def test_f3_operators_see_what_is_leased_the_longest_first(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        assert await operator.in_flight() == []
        await frontier.put([*tasks(2, lane="a.example", route="list"), *tasks(2, lane="b.example", priority=90)])
        leases = []
        for worker in ("one", "other", "one", "third"):
            leases.append((await lease_one(frontier, worker), worker))
            bench.jump(3)

        found = await operator.in_flight()

        assert all(same(*each) for each in zip(found, (shown(*each) for each in leases), strict=True)), found
        assert await operator.in_flight(2) == found[:2]
        assert await operator.in_flight(0) == []

    async def test_f13_every_lease_is_shown_with_its_own_start(self, bench: Bench) -> None:
        frontier = await bench.open(steady(rate=10))
        await frontier.put([*tasks(8, lane="a.example"), *tasks(8, lane="b.example")])
        held = await lease_all(frontier, "w", limit=10)

        found = {each.url: each for each in await frontier.in_flight()}

        assert len({lease.start_in for lease in held}) > 2, "starts of a lane are apart"
        assert found.keys() == {lease.task.url for lease in held}
        assert all(same(found[lease.task.url], shown(lease, "w")) for lease in held), found

    async def test_f5_what_has_ended_or_came_back_is_not_in_flight(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(5))
        done = await lease_one(frontier, "w")
        retried = await lease_one(frontier, "w")
        await lease_one(frontier, "leaving")
        await lease_one(frontier, "dead")
        kept = await lease_one(frontier, "kept")
        assert len(await frontier.in_flight()) == 5

        await finish(frontier, "w", [done])
        await end(frontier, "w", retried, Retry(60, "503"))
        await frontier.leave("leaving")
        await live_on(bench, frontier, RESCUED_WITHIN, "kept", "w")
        [rescued, returned] = await lease_all(frontier, "w")

        found = await frontier.in_flight()
        assert [(each.url, each.worker) for each in found[:1]] == [(kept.task.url, "kept")]
        again = {each.url: each for each in found[1:]}
        assert all(same(again[lease.task.url], shown(lease, "w")) for lease in (rescued, returned))
        assert sorted(each.attempt for each in found[1:]) == [0, 1], "the dead worker's attempt is counted"

    async def test_f3_a_long_visit_is_still_shown_after_thousands_of_others(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        slow = await lease_one(frontier, "w")
        bench.jump(1)
        await frontier.put(tasks(2_000, lane="b.example"))
        await frontier.put(tasks(60, lane="c.example", priority=90))

        for _ in range(20):
            await finish(frontier, "w", await lease_all(frontier, "w", limit=100))
            await frontier.beat("w")
        for _ in range(60):
            last = await lease_one(frontier, "w")
            await finish(frontier, "w", [last])
        await frontier.put(tasks(1, lane="d.example"))
        last = await lease_one(frontier, "w")

        first, second = await frontier.in_flight()
        assert same(first, shown(slow, "w")), first
        assert same(second, shown(last, "w")), second

    async def test_f3_of_many_leases_the_oldest_are_chosen(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1_500))
        held = []
        for number in range(15):
            held += await lease_all(frontier, f"w{number % 5}", limit=100)
            bench.jump(0.5)

        oldest, everything = await frontier.in_flight(150), await frontier.in_flight(10_000)

        assert {each.url for each in oldest[:100]} == {lease.task.url for lease in held[:100]}
        assert {each.url for each in oldest[100:]} < {lease.task.url for lease in held[100:200]}
        assert {each.url for each in everything} == {lease.task.url for lease in held}
        times = [each.leased_at for each in everything]
        assert times == sorted(times, key=lambda each: each or 0)

    async def test_f10_no_secret_is_in_what_is_in_flight(self, bench: Bench) -> None:
        frontier = await bench.open(steady(redact=("ticket",)))
        await frontier.put([task("https://user:hush@shop.example/?ticket=hush&page=2")])
        await lease_one(frontier, "w")

        [found] = await frontier.in_flight()

        assert "hush" not in repr(found)
        assert "page=2" in found.url

    async def test_r1_a_lease_in_flight_names_its_member(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(11, 22, 2**48 - 1))
        await frontier.put(through(3))
        held = await take(frontier)
        assert {lease.member for lease in held} == {11, 22, 2**48 - 1}

        found = {each.url: each for each in await frontier.in_flight()}

        assert all(same(found[lease.task.url], shown(lease, "w")) for lease in held), found
