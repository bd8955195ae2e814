"""A client that dies between any two steps of a brokered frontier on RabbitMQ loses no task and doubles none."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from tests.contract.brokered_benches import AnyBrokeredBench, MemoryBrokerBench
from tests.contract.brokered_kills import COUNT, BrokeredKills, pump_of, run_to_the_end
from tests.contract.rabbitmq_servers import (
    NewerRabbitBench,
    RabbitBench,
    RabbitPostgresBench,
    ShardedRabbitBench,
    rabbit,
)

from trotline.model.lease import Admission, Settlement
from trotline.model.outcome import Done
from trotline.ports.broker_books import CLAIM
from trotline.testing.frontier_contract.bench import tasks
from trotline.testing.rabbitmq_server import newer

pytestmark = pytest.mark.xdist_group("rabbitmq")


class TestRabbitKills(BrokeredKills):
    @pytest.fixture(
        params=[RabbitBench, ShardedRabbitBench, RabbitPostgresBench, NewerRabbitBench],
        ids=["one_shard", "four_shards", "postgresql", "rabbitmq4"],
    )
    async def bench(self, request: pytest.FixtureRequest) -> AsyncIterator[AnyBrokeredBench]:
        if request.param is NewerRabbitBench:
            newer()
        bench = request.param()
        yield bench
        await bench.close()


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
