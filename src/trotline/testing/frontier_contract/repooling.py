"""F9 with a proxy pool: revived tasks go out through another one."""

import asyncio

import pytest
from msgspec.structs import replace

from trotline.errors import FrontierError
from trotline.model.job import LaneView
from trotline.model.lease import Admission, Reject, Settlement
from trotline.model.outcome import Bury, Done
from trotline.model.proxy_pool import NO_PROXY, lane_of
from trotline.testing.frontier_contract.bench import SHOP, Bench, Client, end, finish, lease_all, task, tasks, urls
from trotline.testing.frontier_contract.pool_bench import POOL, VIA_POOL, pool_with, register, take, through

ISP = "isp"
VIA_ISP = lane_of(SHOP, ISP)
WHY = "blocked: captcha"


async def books(client: Client) -> tuple[int, int, int, int]:
    found = await client.progress()
    return found.waiting, found.leased, found.done, found.dead


async def seen_lanes(client: Client) -> dict[str, LaneView]:
    return {view.lane: view async for page in client.all_lanes() for view in page}


async def bury_all(client: Client, pools: tuple[str, ...] = ("", POOL, ISP), why: str = WHY) -> int:
    """Bury every task that may run, one lease call after another."""
    buried = 0
    while leases := await client.lease("burier", 100, pools=pools):
        buried += len(leases)
        await client.settle("burier", [Settlement(lease, Bury(why)) for lease in leases])
    return buried


class RepoolPromises:
    async def test_f9_revived_tasks_go_out_through_another_pool(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await register(bench, pool_with(1, 2, 3), pool_with(7, 8, 9, name=ISP))
        blocked = [replace(each, blocked_by=(1, 2)) for each in through(3, parent="https://shop.example/list")]
        await frontier.put(blocked)
        assert await bury_all(frontier) == 3

        assert await operator.revive(why="blocked", pool=ISP) == 3

        assert await books(operator) == (3, 0, 0, 0)
        assert {lane: view.waiting for lane, view in (await seen_lanes(operator)).items()} == {VIA_ISP: 3}
        assert await frontier.put(blocked) == [Admission.DUPLICATE] * 3
        bench.jump(1)
        assert await take(frontier, pools=("", POOL)) == []
        held = await take(frontier, pools=(ISP,))
        assert {lease.member for lease in held} == {7, 8, 9}
        expected = [replace(each, pool=ISP, lane=VIA_ISP, blocked_by=()) for each in blocked]
        assert sorted((lease.task for lease in held), key=lambda each: each.url) == expected
        await finish(frontier, "w", held)
        assert await books(operator) == (0, 0, 3, 0)
        assert await operator.reasons() == {}
        assert await operator.revive(pool=POOL) == 0

    async def test_f9_revived_tasks_go_out_directly_and_back(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2, 3))
        await frontier.put([*through(2), *tasks(2)])
        assert await bury_all(frontier) == 4

        assert await frontier.revive(pool=NO_PROXY) == 4
        held = await lease_all(frontier, "w")
        assert {(lease.task.lane, lease.task.pool, lease.member) for lease in held} == {(SHOP, NO_PROXY, 0)}
        for lease in held:
            await end(frontier, "w", lease, Bury(WHY))
        assert await frontier.revive(pool=POOL) == 4

        bench.jump(1)
        assert await lease_all(frontier, "w") == []
        back = []
        while some := await take(frontier):
            back += some
            await finish(frontier, "w", some)
        assert sorted(urls(back)) == sorted(urls(held))
        assert {lease.task.lane for lease in back} == {VIA_POOL}
        assert await books(frontier) == (0, 0, 4, 0)

    async def test_f9_only_those_chosen_change_their_pool(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(*range(1, 9)), pool_with(*range(11, 19), name=ISP))
        await frontier.put(through(6))
        assert await bury_all(frontier) == 6
        graves = await frontier.graves()
        chosen, others = graves[:2], graves[2:]

        assert await frontier.revive([grave.id for grave in chosen], pool=ISP) == 2
        assert await frontier.revive([grave.id for grave in others[:2]]) == 2
        assert await frontier.revive(["0" * 16, "r1", chosen[0].id], pool=ISP) == 0
        assert await frontier.revive(why="nothing like it", pool=ISP) == 0

        assert sorted(urls(await take(frontier, pools=(ISP,)))) == sorted(grave.url for grave in chosen)
        assert sorted(urls(await take(frontier))) == sorted(grave.url for grave in others[:2])
        assert await books(frontier) == (0, 4, 0, 2)

    async def test_f10_of_many_that_change_their_pool_none_is_lost_or_doubled(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        hosts = [f"h{number}.example" for number in range(40)]
        await frontier.put([each for host in hosts for each in tasks(30, lane=host)])
        assert await bury_all(frontier) == 1_200

        revived = await asyncio.gather(
            frontier.revive(why="blocked", pool=ISP), operator.revive(why="blocked", pool=POOL), operator.revive()
        )

        assert sum(revived) == 1_200
        assert await books(operator) == (1_200, 0, 0, 0)
        assert sum(view.waiting for view in (await seen_lanes(operator)).values()) == 1_200
        await register(bench, pool_with(*range(1, 40)), pool_with(*range(51, 90), name=ISP))
        visited = []
        while some := await take(frontier, limit=200, pools=("", POOL, ISP)):
            visited += urls(some)
            await finish(frontier, "w", some)
            bench.jump(0.1)
        assert sorted(visited) == sorted(each.url for host in hosts for each in tasks(30, lane=host))
        assert await books(operator) == (0, 0, 1_200, 0)

    async def test_f14_a_finished_job_goes_on_with_tasks_that_changed_their_pool(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        await frontier.seal()
        await bury_all(frontier)
        assert await frontier.announce_finish()

        assert await operator.revive(pool=POOL) == 3

        assert not await frontier.finished()
        await register(bench, pool_with(1, 2, 3))
        await finish(frontier, "w", await take(frontier))
        assert await frontier.finished()
        assert await frontier.announce_finish()

    async def test_c7_a_failed_chain_changes_its_pool_as_a_whole(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2), pool_with(7, 8, name=ISP))
        steps = [task(f"https://shop.example/{n}", lane=VIA_POOL, pool=POOL, chain="one") for n in range(5)]
        await frontier.put(steps)
        [first] = await take(frontier)
        await finish(frontier, "w", [first])
        [failed] = await take(frontier)
        await end(frontier, "w", failed, Bury(WHY))
        assert await books(frontier) == (0, 0, 1, 4)

        last = (await frontier.graves(limit=10))[-1]
        assert await frontier.revive([last.id], pool=ISP) == 4

        assert await books(frontier) == (4, 0, 1, 0)
        assert {lane: view.waiting for lane, view in (await seen_lanes(frontier)).items()} == {VIA_ISP: 4}
        visited = []
        while some := await take(frontier, pools=(ISP, POOL)):
            visited += some
            assert len(some) == 1
            await finish(frontier, "w", some)
        assert urls(visited) == [each.url for each in steps[1:]]
        assert {lease.task.pool for lease in visited} == {ISP}

    async def test_f9_pages_of_rejected_records_and_tasks_of_accounts_keep_their_pool(self, bench: Bench) -> None:
        frontier = await bench.open()
        await register(bench, pool_with(1, 2), pool_with(5, name="@buyers"))
        await frontier.put(through(1) + through(1, pool="@buyers"))
        [page] = await take(frontier)
        await frontier.settle("w", [Settlement(page, Done(), rejects=(Reject("product", "no title", "{}"),))])
        [other] = await take(frontier, pools=("@buyers",))
        await end(frontier, "w", other, Bury(WHY))

        assert await frontier.revive(pool=ISP) == 2

        assert urls(await take(frontier)) == [page.task.url]
        assert urls(await take(frontier, pools=("@buyers",))) == [other.task.url]

    @pytest.mark.parametrize("pool", ["", "a:b", "@buyers", "@buyers/anna", "a b", " via x", "x" * 65, "a/b"])
    async def test_f9_a_pool_that_tasks_cannot_have_is_refused(self, bench: Bench, pool: str) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        await bury_all(frontier)

        with pytest.raises(FrontierError, match="pool"):
            await frontier.revive(pool=pool)

        assert await books(frontier) == (0, 0, 0, 1)
