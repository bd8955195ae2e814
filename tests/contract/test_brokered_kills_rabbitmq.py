"""A client that dies between any two steps of a brokered frontier loses no task and doubles none."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
from tests.contract.brokered_benches import BrokeredBench, MemoryBrokerBench
from tests.contract.rabbitmq_servers import RabbitBench, ShardedRabbitBench, rabbit

from trotline.frontier.pump import Pump
from trotline.model.lease import Admission, Settlement
from trotline.model.outcome import Done
from trotline.ports.books import CLAIM
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import tasks

pytestmark = pytest.mark.xdist_group("rabbitmq")
COUNT = 250


class Died(BaseException):
    """Nothing after it is executed in that client, as after kill -9."""


@pytest.fixture(params=[RabbitBench, ShardedRabbitBench], ids=["one_shard", "four_shards"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[BrokeredBench]:
    bench = request.param()
    yield bench
    await bench.close()


def dies(client: Client, step: str) -> None:
    """The client dies at this step. After "+" the step's call still takes effect, and its answer is lost."""
    pump = pump_of(client)
    where, _, verb = step.rstrip("+").partition(".")
    target = getattr(pump, f"_{where}")
    call: Callable[..., object] = getattr(target, verb)

    async def last(*args: object, **named: object) -> None:
        if step.endswith("+"):
            await call(*args, **named)  # type: ignore[misc]
        raise Died

    setattr(target, verb, last)


def pump_of(client: Client) -> Pump:
    pump: Pump = client.opened.frontier._pump  # type: ignore[attr-defined]
    return pump


async def crash(bench: BrokeredBench, client: Client) -> None:
    """Its connections end, and nothing else happens."""
    bench._clients.remove(client)
    pump = pump_of(client)
    await pump._broker.close()
    await pump._frontier.close()


async def run_to_the_end(client: Client) -> Counter[str]:
    visited: Counter[str] = Counter()
    while leases := await client.lease("other", 100):
        visited.update(lease.task.url for lease in leases)
        await client.settle("other", [Settlement(lease, Done()) for lease in leases])
    return visited


PUTTING = ("books.unpublished", "books.unpublished+", "broker.publish", "broker.publish+")
LEASING = ("broker.receive", "broker.receive+", "books.unshelve", "books.unshelve+", "broker.ack", "broker.ack+")


@pytest.mark.parametrize("step", PUTTING)
async def test_a_client_that_dies_while_it_puts_loses_nothing(bench: BrokeredBench, step: str) -> None:
    victim, other = await bench.open(), await bench.again()
    wanted = tasks(COUNT)
    dies(victim, step)
    with pytest.raises(Died):
        await victim.put(wanted)
    await crash(bench, victim)
    assert (await other.progress()).waiting == COUNT
    assert set(await other.put(wanted)) == {Admission.DUPLICATE}
    # Another client publishes what the victim took to publish, when its time is over.
    bench.jump(CLAIM + 1)
    visited = await run_to_the_end(other)
    assert visited == Counter(task.url for task in wanted)
    progress = await other.progress()
    assert (progress.waiting, progress.leased, progress.done) == (0, 0, COUNT)


@pytest.mark.parametrize("step", PUTTING)
async def test_a_client_that_dies_while_it_settles_loses_no_child(bench: BrokeredBench, step: str) -> None:
    victim, other = await bench.open(), await bench.again()
    [parent, *children] = tasks(COUNT)
    await victim.put([parent])
    [lease] = await victim.lease("w", 1)
    dies(victim, step)
    with pytest.raises(Died):
        await victim.settle("w", [Settlement(lease, Done(), children=tuple(children))])
    await crash(bench, victim)
    bench.jump(CLAIM + 1)
    assert await run_to_the_end(other) == Counter(task.url for task in children)
    assert (await other.progress()).done == COUNT


@pytest.mark.parametrize("step", LEASING)
async def test_a_client_that_dies_while_it_receives_loses_and_doubles_nothing(
    bench: BrokeredBench, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trotline.frontier.pump.ACK_AFTER", 0.0)
    victim, other = await bench.open(), await bench.again()
    wanted = tasks(COUNT)
    await other.put(wanted)
    dies(victim, step)
    visited: Counter[str] = Counter()
    with pytest.raises(Died):
        # A message is acknowledged by the next call.
        for _ in range(3):
            leases = await victim.lease("w", 10)
            visited.update(lease.task.url for lease in leases)
            await victim.settle("w", [Settlement(lease, Done()) for lease in leases])
    await crash(bench, victim)
    async with asyncio.timeout(30):
        # The server notices the end of a connection a moment later.
        while sum(visited.values()) < COUNT:
            visited += await run_to_the_end(other)
    assert visited == Counter(task.url for task in wanted)
    assert await other.lease("other", 10) == []
    progress = await other.progress()
    assert (progress.waiting, progress.leased, progress.done) == (0, 0, COUNT)


async def test_a_server_short_of_memory_stops_no_work_and_loses_nothing() -> None:
    """It blocks the connection that publishes, and only that one."""
    bench = RabbitBench()
    try:
        client = await bench.open()
        first, second = tasks(COUNT)[:100], tasks(COUNT)[100:]
        await client.put(first)
        await asyncio.to_thread(rabbit().control, "set_vm_memory_high_watermark", "0")
        try:
            assert set(await client.put(second)) == {Admission.NEW}
            leases = await client.lease("w", 100)
            assert len(leases) == 100, "what is on the shelves can be received"
            await client.settle("w", [Settlement(lease, Done()) for lease in leases])
            assert (await client.progress()).waiting == len(second)
        finally:
            await asyncio.to_thread(rabbit().control, "set_vm_memory_high_watermark", "0.4")
        bench.jump(CLAIM + 1)
        for way in (pump_of(client)._out, pump_of(client)._in):
            way._rest_until = 0.0
        assert await run_to_the_end(client) == Counter(task.url for task in second)
    finally:
        await bench.close()


async def test_a_message_that_is_delivered_again_is_dropped() -> None:
    bench = MemoryBrokerBench()
    client = await bench.open()
    await client.put(tasks(COUNT))
    first = await client.lease("w", COUNT)
    bench.broker.redeliver()
    [queue] = [shelf for shelf, messages in bench.broker.queues.items() if messages]
    assert bench.broker.queues[queue]
    again = await bench.again()
    assert len(first) + len(await again.lease("v", COUNT)) == COUNT
    await bench.close()
