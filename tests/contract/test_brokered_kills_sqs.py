"""A brokered frontier on SQS: clients that die, foreign messages, receipts that expired, a server that is away."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from tests.contract.brokered_benches import BrokeredBench
from tests.contract.brokered_kills import COUNT, BrokeredKills, pump_of, run_to_the_end
from tests.contract.sqs_servers import VISIBILITY, ShardedSqsBench, SqsBench, sqs_server

from trotline.adapters.sqs.broker import SqsBroker
from trotline.adapters.sqs.message_bodies import to_text
from trotline.errors import FrontierUnreachable
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.ports.broker import Message
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import task, tasks

pytestmark = pytest.mark.xdist_group("sqs")


class TestSqsKills(BrokeredKills):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[BrokeredBench]:
        bench = SqsBench()
        yield bench
        await bench.close()


@pytest.fixture
async def bench() -> AsyncIterator[SqsBench]:
    bench = SqsBench()
    yield bench
    await bench.close()


def broker_of(client: Client) -> SqsBroker:
    broker = pump_of(client)._broker
    assert isinstance(broker, SqsBroker)
    return broker


async def test_four_shards_share_no_queue_and_lose_nothing() -> None:
    bench = ShardedSqsBench()
    client = await bench.open()
    wanted = [task(f"https://s{n}.example/", lane=f"s{n}.example") for n in range(40)]
    await client.put(wanted)
    assert await run_to_the_end(client) == Counter(one.url for one in wanted)
    await bench.close()


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        '{"v":2,"parcels":[]}',
        '{"v":1,"zstd":"AAAA"}',
        '{"v":1,"parcels":[{"id":"x","tasks":[{"url":1}]}]}',
        "ü" * 131_000,
        to_text(random.Random(1).randbytes(75_000).hex().encode() + b"x" * 9_000_000),
    ],
    ids=["text", "version", "packed", "fields", "large", "large when unpacked"],
)
async def test_what_another_program_wrote_is_put_aside_and_holds_up_nothing(bench: SqsBench, body: str) -> None:
    client = await bench.open()
    broker = broker_of(client)
    await client.put(tasks(10))
    queue = await broker._queues.url("s0.b2")
    await broker.api.call("test", "send_message", QueueUrl=queue, MessageBody=body)
    assert sum((await run_to_the_end(client)).values()) == 10
    # No parcel is expected any more: only now the message is met, if it is met at all.
    for delivery in await broker.receive("s0.b2", 5):
        await pump_of(client)._move([delivery])
    assert await broker.rejected() == 1
    assert (await broker.depth(["s0.b2"]))["s0.b2"] <= 1, "the parcel itself waits to be acknowledged"
    dead = await broker.api.call(
        "test", "receive_message", QueueUrl=await broker._queues.url("dead"), MessageAttributeNames=["All"]
    )
    [message] = dead["Messages"]
    assert message["Body"] == body, "an operator finds it, whole"
    assert len(message["MessageAttributes"]["reason"]["StringValue"]) > 10


async def test_a_parcel_of_a_job_that_these_books_do_not_know_is_dropped(bench: SqsBench) -> None:
    client = await bench.open()
    broker = broker_of(client)
    foreign = (
        b'{"v":1,"parcels":[{"id":"0.p1.1.1","tasks":[{"task_id":"1","url":"https://evil.example/","job_type":"r"}]}]}'
    )
    await broker.publish([Message("s0.b2", foreign)])
    await client.put(tasks(5))
    visited = await run_to_the_end(client)
    assert sum(visited.values()) == 5 and "https://evil.example/" not in visited
    assert await broker.rejected() == 0


async def test_a_message_is_held_for_longer_than_its_time_while_its_client_lives(bench: SqsBench) -> None:
    client, other = await bench.open(), await bench.again()
    await client.put(tasks(5))
    [held] = await broker_of(client).receive("s0.b2", 5)
    await asyncio.sleep(VISIBILITY + 0.7)
    assert await broker_of(other)._receive("s0.b2", 5, 0) == []
    assert broker_of(client).api.calls["change_message_visibility_batch"] > 0
    # It leaves in an orderly way: no one has to wait.
    await client.close()
    bench._clients.remove(client)
    [again] = await broker_of(other)._receive("s0.b2", 5, 1)
    assert again.body == held.body


async def test_a_receipt_that_expired_deletes_nothing_of_others_and_loses_nothing(bench: SqsBench) -> None:
    client, other = await bench.open(), await bench.again()
    await client.put(tasks(COUNT))
    first = await client.lease("w", 10)
    assert len(first) == 10
    late = list(pump_of(client)._moved)
    beating = broker_of(client)._held._beating
    assert beating is not None and late
    beating.cancel()
    await asyncio.sleep(VISIBILITY + 0.2)
    # Delivered again, to another client; the receipts of the first are worth nothing now.
    again = [found for shelf in ("s0.b2",) for found in await broker_of(other).receive(shelf, 10)]
    assert {one.body for one in again} == {delivery.body for _, _, delivery in late}
    await pump_of(other)._move(again)
    await broker_of(client).ack([delivery for _, _, delivery in late])
    await client.settle("w", [Settlement(lease, Done()) for lease in first])
    visited = await run_to_the_end(client)
    assert sum(visited.values()) == COUNT - 10 and set(visited.values()) == {1}
    assert (await client.progress()).done == COUNT


async def test_while_the_server_is_away_work_goes_on_and_afterwards_nothing_is_lost(
    bench: SqsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trotline.adapters.sqs.broker.ANSWER", 0.5)
    client = await bench.open()
    first, second = tasks(COUNT)[:100], tasks(COUNT)[100:]
    await client.put(first)
    leases = await client.lease("w", 100)
    server = sqs_server()
    await asyncio.to_thread(server.stop)
    try:
        await client.put(second)
        await client.settle("w", [Settlement(lease, Done()) for lease in leases])
        assert (await client.progress()).waiting == len(second)
        with pytest.raises(FrontierUnreachable, match="cannot reach SQS eu-central-1 at 127"):
            for _ in range(3):
                await client.lease("w", 10)
    finally:
        await asyncio.to_thread(server.start)
    bench.jump(11)
    for way in (pump_of(client)._out, pump_of(client)._in):
        way._rest_until = 0.0
    assert await run_to_the_end(client) == Counter(one.url for one in second)
    assert (await client.progress()).done == COUNT


async def test_links_of_several_pages_are_sent_in_one_call_while_there_is_other_work(
    bench: SqsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqsBroker, "linger", 1.0)
    client = await bench.open()
    await client.put([task(f"https://a{n}.example/", lane=f"a{n}.example") for n in range(600)])
    leases = await client.lease("w", 40)
    sent = broker_of(client).api.calls["send_message_batch"]
    children = [task(f"https://b{number}.example/", lane=f"b{number}.example") for number in range(40)]
    await asyncio.gather(
        *(
            client.settle("w", [Settlement(lease, Done(), children=(child,))])
            for lease, child in zip(leases, children, strict=True)
        )
    )
    later = pump_of(client)._later
    assert later is not None
    await later
    assert broker_of(client).api.calls["send_message_batch"] - sent <= 2
    assert sum((await run_to_the_end(client)).values()) == 600


async def test_parcels_that_sqs_does_not_have_any_more_are_reported(
    bench: SqsBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trotline.frontier.lost_broker_messages.AFTER", 0.0)
    client = await bench.open()
    await client.put(tasks(COUNT))
    broker = broker_of(client)
    await broker.api.call("test", "purge_queue", QueueUrl=await broker._queues.url("s0.b2"))
    assert await client.lease("w", 10) == []
    assert "3 parcels of up to 100 tasks are not at SQS eu-central-1" in caplog.text
    assert (await client.progress()).waiting == COUNT, "they stay counted"
