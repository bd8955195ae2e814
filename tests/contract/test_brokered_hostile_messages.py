"""A program that may write to the broker of a frontier stops no worker: its messages are put aside."""

import base64
import json
import math
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.contract.brokered_benches import AnyBrokeredBench, MemoryBrokerBench, MemoryPostgresBench
from tests.contract.brokered_kills import pump_of, run_to_the_end
from tests.contract.rabbitmq_servers import RabbitBench, RabbitPostgresBench
from tests.contract.sqs_servers import SqsBench, SqsPostgresBench
from tests.contract.test_brokered_books import ShardedMemoryBench

from trotline.adapters.redis.lua_layouts import MOST_TEMPLATES
from trotline.errors import FrontierUnreachable
from trotline.frontier import broker_message_codec
from trotline.model import task_json
from trotline.ports.broker import Message
from trotline.rules.broker_shelves import PARCEL_TASKS
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import task, tasks

COUNT = 30
SHELF = "s0.b2"
BENCHES = [
    MemoryBrokerBench,
    ShardedMemoryBench,
    MemoryPostgresBench,
    pytest.param(RabbitBench, marks=pytest.mark.xdist_group("rabbitmq")),
    pytest.param(RabbitPostgresBench, marks=pytest.mark.xdist_group("rabbitmq")),
    pytest.param(SqsBench, marks=pytest.mark.xdist_group("sqs")),
    pytest.param(SqsPostgresBench, marks=pytest.mark.xdist_group("sqs")),
]
_FIELDS: dict[str, dict[str, Any]] = {
    "depth": {"depth": 10**30},
    "negative depth": {"depth": -1},
    "attempt": {"retry_count": 2**63},
    "negative attempt": {"retry_count": -(2**40)},
    "retries": {"max_retries": 10**18},
    "priority": {"priority": 2**64},
    "negative priority": {"priority": -(2**31) - 1},
    "created_at": {"created_at": 1e308},
    "not_before": {"not_before": 1e308},
    "negative created_at": {"created_at": -1e308},
    "hops": {"hops": 10**30},
    "throttled": {"throttled": -(10**30)},
    "blocked_by": {"blocked_by": [2**64]},
    "url": {"url": "https://evil.example/" + "x" * 3_000_000},
    "parent": {"parent": "x" * 3_000_000},
    "first_url": {"first_url": "x" * 3_000_000},
    "headers": {"headers": [["x", "y" * 3_000_000]]},
    "meta": {"meta": {"x": "y" * 3_000_000}},
    "number in meta": {"meta": {"x": 10**40}},
    "body": {"body": base64.b64encode(bytes(2_500_000)).decode()},
    "lane": {"lane": "x" * 10_000},
    "chain": {"chain": "a\0b" * 5_000},
    "route": {"job_type": "x" * 100_000},
    "pool": {"proxy_pool": "../pool"},
    "identity": {"task_id": "f" * 40},
    "negative identity": {"task_id": "-" + "f" * 40},
    "no URL": {"url": ""},
}
_WIRED: dict[str, dict[str, Any]] = {
    "created_at": {"created_at": math.nan},
    "infinite not_before": {"not_before": math.inf},
    "fingerprint": {"fingerprint": 2**64 - 1},
    "depth": {"depth": -(2**63)},
}


def message(task_fields: dict[str, Any], parcel: str = "0.p1.1.1") -> bytes:
    usual = {"task_id": "1", "url": "https://evil.example/", "job_type": "page", "lane": "evil.example"}
    return json.dumps({"v": 1, "parcels": [{"id": parcel, "tasks": [usual | task_fields]}]}).encode()


def wired(task_fields: dict[str, Any]) -> bytes:
    made = msgspec.structs.replace(task("https://evil.example/"), **task_fields)
    return message({"wire": base64.b64encode(task_json.encode(made)).decode()})


HOSTILE = {name: message(fields) for name, fields in _FIELDS.items()} | {
    f"{name} in wire form": wired(fields) for name, fields in _WIRED.items()
}
SMALL = [body for body in HOSTILE.values() if len(body) < 250_000]
"""SQS takes no larger ones."""


@pytest.fixture(params=BENCHES)
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[AnyBrokeredBench]:
    bench = request.param()
    yield bench
    await bench.close()


async def publish(client: Client, *bodies: bytes) -> None:
    broker = pump_of(client)._broker
    for body in bodies:
        await broker.publish([Message(SHELF, body)])


async def meet_the_rest(client: Client) -> None:
    """No parcel is expected any more: only now messages of others are met, if they are met at all."""
    pump = pump_of(client)
    while found := await pump._broker.receive(SHELF, 100):
        await pump._move(found)


async def test_values_out_of_range_stop_no_worker(bench: AnyBrokeredBench) -> None:
    client = await bench.open()
    await publish(client, *SMALL)
    await client.put(tasks(COUNT))
    assert sum((await run_to_the_end(client)).values()) == COUNT
    await meet_the_rest(client)
    assert await pump_of(client)._broker.rejected() == len(SMALL)
    progress = await client.progress()
    assert (progress.waiting, progress.leased, progress.done) == (0, 0, COUNT)


@pytest.mark.parametrize("name", HOSTILE)
def test_values_out_of_range_are_named(name: str) -> None:
    with pytest.raises(task_json.Undecodable) as refused:
        broker_message_codec.decode(HOSTILE[name], SHELF)
    assert 10 < len(str(refused.value)) < 400


def test_a_message_with_more_tasks_than_any_of_ours_is_refused() -> None:
    made = json.loads(message({}))
    made["parcels"][0]["tasks"] *= PARCEL_TASKS + 1
    with pytest.raises(task_json.Undecodable, match=f"more than {PARCEL_TASKS} tasks"):
        broker_message_codec.decode(json.dumps(made).encode(), SHELF)


async def test_what_only_the_books_find_wrong_holds_up_no_other_message(
    bench: AnyBrokeredBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an error that no check foresaw."""
    client = await bench.open()
    await publish(client, message({"url": "https://evil.example/bad"}), b'{"v":1,"parcels":[]}')
    await client.put(tasks(COUNT))
    books, unshelve = pump_of(client)._books, pump_of(client)._books.unshelve

    async def strict(parcels: Any) -> Any:
        if any("evil" in one.url for parcel in parcels for one in parcel.tasks):
            raise OverflowError("a value that cannot be stored")
        return await unshelve(parcels)

    monkeypatch.setattr(books, "unshelve", strict)
    assert sum((await run_to_the_end(client)).values()) == COUNT
    await meet_the_rest(client)
    assert await pump_of(client)._broker.rejected() == 1


async def test_a_message_that_cannot_be_put_aside_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trotline.frontier.broker_pump._REST", 0.0)
    bench = MemoryBrokerBench()
    client = await bench.open()
    reject = bench.broker.reject

    async def refused(*_: Any) -> None:
        raise FrontierUnreachable("the dead queue takes nothing")

    monkeypatch.setattr(bench.broker, "reject", refused)
    await publish(client, b"not ours")
    await client.put(tasks(COUNT))
    leases = await client.lease("w", 100)
    assert len(leases) == COUNT
    monkeypatch.setattr(bench.broker, "reject", reject)
    await client.put(tasks(COUNT + 1))
    assert len(await client.lease("w", 100)) == 1
    assert [dead for dead, _ in bench.broker.dead] == [b"not ours"]
    await bench.close()


async def test_foreign_tasks_use_up_no_templates() -> None:
    """A job has room for so many: each combination of a route, a site, a pool and more needs one."""
    bench = MemoryBrokerBench()
    client = await bench.open()
    made = json.loads(message({}))
    [shown] = made["parcels"][0]["tasks"]
    for number in range(MOST_TEMPLATES // PARCEL_TASKS + 2):
        made["parcels"][0]["tasks"] = [shown | {"job_type": f"r{number}.{n}"} for n in range(PARCEL_TASKS)]
        await publish(client, json.dumps(made).encode())
    await meet_the_rest(client)
    await client.put([task("https://shop.example/", route="new")])
    assert len(await client.lease("w", 1)) == 1
    await bench.close()


@pytest.mark.parametrize("kind", [MemoryBrokerBench, MemoryPostgresBench])
async def test_a_forged_parcel_does_not_replace_one_of_ours(kind: type[MemoryBrokerBench]) -> None:
    """It has the id, and another number of tasks; or, on PostgreSQL, the number and not the random part."""
    bench = kind()
    client = await bench.open()
    await client.put(tasks(3))
    [queue] = [queue for queue in bench.broker.queues.values() if queue]
    ours = json.loads(queue[0])["parcels"][0]["id"]
    queue.extendleft([message({}, ours), message({}, f"{ours.rpartition('.')[0]}.0")])
    assert sum((await run_to_the_end(client)).values()) == 3
    assert {why for _, why in bench.broker.dead} == {"another number of tasks than were put into it"}
    await bench.close()
