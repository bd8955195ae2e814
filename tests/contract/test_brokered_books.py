"""The books of a brokered frontier: shelves, window, overflow, and messages that nobody of ours wrote."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.brokered_benches import MemoryBrokerBench, MemoryPostgresBench

from trotline.errors import FrontierError, FrontierUnreachable
from trotline.frontier.broker_pump import PATIENCE
from trotline.model.job import State
from trotline.model.lease import Admission, Settlement
from trotline.model.outcome import Done
from trotline.rules import broker_shelves
from trotline.testing.frontier_contract.bench import finish, lane_view, lease_all, task, tasks
from trotline.testing.frontier_contract.living import RESCUED_WITHIN


class ShardedMemoryBench(MemoryBrokerBench):
    shards = 4


Bench = MemoryBrokerBench | MemoryPostgresBench


@pytest.fixture(
    params=[MemoryBrokerBench, ShardedMemoryBench, MemoryPostgresBench], ids=["one_shard", "four_shards", "postgresql"]
)
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    bench = request.param()
    yield bench
    await bench.close()


def pump_of(opened: Any) -> Any:
    return opened.opened.frontier._pump


def wake(opened: Any) -> None:
    """The pause after an error is over."""
    for way in (pump_of(opened)._in, pump_of(opened)._out):
        way._rest_until = 0.0


async def test_a_lane_beyond_its_share_overflows_and_holds_up_no_other(bench: Bench) -> None:
    frontier = await bench.open()
    huge = tasks(3 * broker_shelves.LANE_SHARE, lane="huge.example")
    await frontier.put(huge)
    await frontier.put([task("https://small.example/1", lane="small.example")])
    waiting = {shelf: len(queue) for shelf, queue in bench.broker.queues.items() if queue}
    main = sum(count for shelf, count in waiting.items() if "o" not in shelf)
    assert main <= broker_shelves.LANE_SHARE / broker_shelves.PARCEL_TASKS + 2
    assert sum(waiting.values()) > main, "nothing overflowed"
    leased = await frontier.lease("w", 100)
    assert "small.example" in {lease.task.lane for lease in leased}
    assert (await lane_view(frontier, "huge.example")).waiting + sum(
        lease.task.lane == "huge.example" for lease in leased
    ) == len(huge)
    rest = await lease_all(frontier, "w")
    order = [lease.task.url for lease in leased + rest if lease.task.lane == "huge.example"]
    assert order == [task.url for task in huge], "first come, first served, over main shelf and overflow"


async def test_the_window_bounds_what_the_books_hold(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    frontier = await bench.open()
    await frontier.put([task(f"https://h{n}.example/", lane=f"h{n}.example") for n in range(3000)])
    await frontier.lease("w", 1)
    look = await pump_of(frontier)._books.shelves()
    assert look.ready < 3000 and look.shelves, "all of them were moved at once"
    assert len(await lease_all(frontier, "w")) == 2999


async def test_sooner_bands_come_first(bench: Bench) -> None:
    frontier = await bench.open()
    for priority in (100, 80, 50, 20, 0, 500):
        await frontier.put([task(f"https://h{priority}.example/", lane=f"h{priority}.example", priority=priority)])
    order = [(await frontier.lease("w", 1))[0].task.priority for _ in range(6)]
    assert order == [0, 20, 50, 80, 100, 500]


async def test_a_broker_that_is_away_loses_nothing_and_is_named_when_it_is_needed(bench: Bench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(5))
    bench.broker.down = True
    assert set(await frontier.put(tasks(8)[5:])) == {Admission.NEW}
    with pytest.raises(FrontierUnreachable, match="memory is down"):
        await frontier.lease("w", 10)
    bench.broker.down = False
    wake(frontier)
    bench.jump(11)
    assert len(await lease_all(frontier, "w")) == 8


async def test_a_broker_that_is_away_for_long_stops_puts_before_they_change_anything(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trotline.frontier.broker_pump.MOST_UNPUBLISHED", 3)
    monkeypatch.setattr("trotline.frontier.broker_pump._REST", 0.0)
    frontier = await bench.open()
    bench.broker.down = True
    with pytest.raises(FrontierUnreachable, match="wait to be published"):
        for number in range(50):
            await frontier.put([task(f"https://h{number}.example/")])
    assert (await frontier.progress()).waiting == number
    bench.broker.down = False
    bench.jump(11)
    assert await frontier.put([task(f"https://h{number}.example/")]) == [Admission.NEW]
    assert len(await lease_all(frontier, "w")) == number + 1


async def test_a_broker_that_does_not_answer_delays_no_rescue(bench: Bench) -> None:
    """What the books can do alone they do: others can have what a dead worker held, and visits can end."""
    frontier = await bench.open()
    await frontier.put(tasks(2))
    [held, other] = await frontier.lease("dead", 2)
    await frontier.put([task("https://shelved.example/")])
    bench.broker.hangs = asyncio.Event()
    bench.jump(RESCUED_WITHIN)
    async with asyncio.timeout(2 * PATIENCE + 5):
        rescued = await frontier.lease("w", 10)
        child = task("https://shop.example/child")
        await frontier.settle("w", [Settlement(rescued[0], Done(), children=(child,))])
    assert {lease.task.url for lease in rescued} == {held.task.url, other.task.url}
    bench.broker.hangs.set()
    bench.jump(11)
    assert {lease.task.url for lease in await lease_all(frontier, "w")} == {"https://shelved.example/", child.url}


async def test_a_lost_confirmation_publishes_twice_and_visits_once(bench: Bench) -> None:
    frontier = await bench.open()
    bench.broker.lose_confirm = True
    await frontier.put(tasks(150))
    bench.broker.lose_confirm = False
    wake(frontier)
    bench.jump(11)
    leases = await lease_all(frontier, "w")
    assert len(leases) == len({lease.task.url for lease in leases}) == 150
    await finish(frontier, "w", leases)
    assert (await frontier.progress()).done == 150


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"v":2}', b'{"v":1,"parcels":[{"id":"9.x","tasks":[]}]}', b"\xff" * 100]
)
async def test_messages_of_others_are_put_aside_or_dropped(bench: Bench, body: bytes) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(3))
    for queue in list(bench.broker.queues.values()):
        queue.appendleft(body)
    assert len(await lease_all(frontier, "w")) == 3
    assert [dead for dead, _ in bench.broker.dead] == ([] if b"9.x" in body else [body])


async def test_a_parcel_that_lost_a_task_is_put_aside_and_counted_as_waiting(bench: Bench) -> None:
    frontier = await bench.open()
    await frontier.put([task("https://shop.example/1"), task("https://shop.example/2")])
    [queue] = [queue for queue in bench.broker.queues.values() if queue]
    body = queue.popleft()
    cut = body.index(b',{"task_id"')
    queue.append(body[:cut] + b"]}]}")
    assert await frontier.lease("w", 5) == []
    assert [why for _, why in bench.broker.dead] == ["another number of tasks than were put into it"]
    progress = await frontier.progress()
    assert (progress.waiting, progress.leased, progress.finished_at) == (2, 0, None)


async def test_a_cancelled_lane_is_buried_also_on_its_shelves(bench: Bench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(1200, lane="huge.example"))
    await frontier.put(tasks(3))
    assert await frontier.steer(State.CANCELLED, "huge.example") == 1200
    progress = await frontier.progress()
    assert (progress.waiting, progress.dead) == (3, 1200)
    assert await frontier.revive(why="cancelled") == 1200


async def test_a_client_without_the_broker_is_refused_with_the_reason(bench: Bench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(3))
    assert bench._job is not None
    direct = await bench.direct()
    try:
        progress = await direct.progress()
        assert progress.waiting == 3
        assert "keeps only its books" in progress.missing
        assert (await frontier.progress()).missing == ""
        with pytest.raises(FrontierError, match="wait at a broker"):
            await direct.lease("w", 1)
    finally:
        await direct.close()


async def test_a_finished_job_leaves_nothing_on_its_shelves(bench: Bench) -> None:
    frontier = await bench.open()
    await frontier.put(tasks(700))
    await frontier.seal()
    await finish(frontier, "w", await lease_all(frontier, "w"))
    assert (await frontier.progress()).finished_at is not None
    assert await pump_of(frontier)._books.shelved() == 0
    assert (await pump_of(frontier)._books.shelves()).shelves == ()
    kept = await bench.kept()
    for name in ("parcel", "unsent", "shelves", "onshelf", "overflow", "over:"):
        assert name not in kept, name
