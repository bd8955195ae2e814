"""The inbox on RabbitMQ and on SQS: nothing that a producer wrote is lost, and nothing bad holds up the rest."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiormq import connect, spec
from tests.contract import inbox_job
from tests.contract.rabbitmq_servers import rabbit
from tests.contract.redis_servers import server
from tests.contract.sqs_servers import sqs_server
from tests.contract.test_inbox import BAD, GOOD

from trotline.adapters.amqp import inbox as amqp_inbox
from trotline.adapters.amqp.inbox import AmqpInbox
from trotline.adapters.sqs import inbox as sqs_inbox
from trotline.adapters.sqs.api import Api
from trotline.adapters.sqs.inbox import SqsInbox
from trotline.adapters.sqs.inbox_url import parse
from trotline.errors import FrontierUnreachable, SettingsError
from trotline.model.inbox import InboxBatch
from trotline.model.task_json import LARGEST
from trotline.ports.inbox import AT_ONCE, Inbox
from trotline.testing.redis_server import DEBIAN

BRIEFLY = 5.0
"""Seconds after which the entries of a silent reader wait again, where a test waits for that. All other tests have the
real TAKEN_FOR: on a busy machine seconds pass between two calls, and then a batch rightly goes back."""


class RabbitProducer:
    """Publishes as any program would."""

    def __init__(self) -> None:
        self.name = f"wanted.{secrets.token_hex(4)}"
        self.url = f"{rabbit().url}/?inbox={self.name}"
        self._readers: list[AmqpInbox] = []

    def reader(self) -> AmqpInbox:
        self._readers.append(AmqpInbox(self.url))
        return self._readers[-1]

    async def push(self, *entries: bytes) -> None:
        connection = await connect(rabbit().url)
        channel = await connection.channel()
        for entry in entries:
            answer = await channel.basic_publish(entry, routing_key=self.name, mandatory=True)
            assert isinstance(answer, spec.Basic.Ack)
        await connection.close()

    async def kill(self, reader: Any) -> None:
        """As the kernel ends its connection."""
        await reader._line.close()

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()
        connection = await connect(rabbit().url)
        channel = await connection.channel()
        for name in (self.name, f"{self.name}.parked"):
            await channel.queue_delete(name)
        await connection.close()


class SqsProducer:
    def __init__(self) -> None:
        self.name = f"wanted-{secrets.token_hex(4)}"
        self.url = sqs_server().inbox_url(self.name)
        self._readers: list[SqsInbox] = []
        self._api = Api(parse(self.url).server)

    def reader(self) -> SqsInbox:
        self._readers.append(SqsInbox(self.url, wait=0))
        return self._readers[-1]

    async def push(self, *entries: bytes) -> None:
        queue = await self._api.call("test", "get_queue_url", QueueName=self.name)
        for entry in entries:
            await self._api.call("test", "send_message", QueueUrl=queue["QueueUrl"], MessageBody=entry.decode())

    async def kill(self, reader: Any) -> None:
        await reader.close()

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()
        await self._api.close()


@pytest.fixture(
    params=[
        pytest.param(RabbitProducer, marks=pytest.mark.xdist_group("rabbitmq"), id="rabbitmq"),
        pytest.param(SqsProducer, marks=pytest.mark.xdist_group("sqs"), id="sqs"),
    ]
)
async def producer(request: pytest.FixtureRequest) -> AsyncIterator[RabbitProducer | SqsProducer]:
    made = request.param()
    # The first reader makes the queue.
    assert await made.reader().take() is None
    yield made
    await made.close()


@pytest.fixture
def held_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amqp_inbox, "TAKEN_FOR", BRIEFLY)
    monkeypatch.setattr(sqs_inbox, "TAKEN_FOR", BRIEFLY)


async def counts(inbox: Inbox) -> tuple[int, int, int]:
    found = await inbox.status()
    return found.waiting, found.batches, found.parked


async def taken(inbox: Inbox, count: int) -> InboxBatch:
    """A batch with so many entries; a server may need a moment."""
    batch = None
    async with asyncio.timeout(10):
        while batch is None:
            batch = await inbox.take()
    assert len(batch.entries) == count
    return batch


async def test_entries_are_taken_in_their_order_and_are_gone_when_they_are_done(producer: Any) -> None:
    inbox = producer.reader()
    await producer.push(*(b"%d" % n for n in range(AT_ONCE + 5)))
    first, second = await taken(inbox, AT_ONCE), await taken(inbox, 5)
    assert first.entries + second.entries == tuple(b"%d" % n for n in range(AT_ONCE + 5))
    assert await inbox.take() is None
    assert await counts(inbox) == (0, 2, 0)
    assert await inbox.done(first, {}) and await inbox.done(second, {})
    assert await counts(inbox) == (0, 0, 0)


@pytest.mark.usefixtures("held_briefly")
async def test_what_a_dead_reader_held_waits_again_and_it_has_no_say_any_more(producer: Any) -> None:
    dead, alive = producer.reader(), producer.reader()
    await producer.push(b"1", b"2", b"3")
    held = await taken(dead, 3)
    assert await alive.take() is None
    await producer.kill(dead)
    batch = await taken(alive, 3)
    assert sorted(batch.entries) == [b"1", b"2", b"3"]
    assert not await dead.done(held, {0: "bad"})
    assert not await dead.keep(held)
    await dead.give_back(held)
    assert await alive.done(batch, {})
    assert await counts(alive) == (0, 0, 0)


@pytest.mark.usefixtures("held_briefly")
async def test_a_batch_that_is_kept_does_not_go_back_and_one_of_a_silent_reader_does(producer: Any) -> None:
    inbox, other = producer.reader(), producer.reader()
    await producer.push(b"1", b"2")
    held = await taken(inbox, 2)
    for _ in range(6):
        await asyncio.sleep(BRIEFLY / 5)
        assert await inbox.keep(held)
        assert await other.take() is None
    batch = await taken(other, 2)
    assert not await inbox.done(held, {0: "bad"}), "it was silent for too long"
    await other.give_back(batch)
    again = await taken(inbox, 2)
    assert sorted(again.entries) == [b"1", b"2"]
    assert (await inbox.status()).parked == 0


async def test_parked_entries_keep_their_reason_and_can_wait_again(producer: Any) -> None:
    inbox = producer.reader()
    await producer.push(b"good", b"bad", "größer".encode())
    held = await taken(inbox, 3)
    assert await inbox.done(held, {1: "is not a URL", 2: "is not \x00 UTF-8 \ud800"})
    assert {one.entry: one.why[:6] for one in await inbox.parked()} == {b"bad": "is not", "größer".encode(): "is not"}

    status = await inbox.status()
    assert (status.waiting, status.parked) == (0, 2), "what was looked at is back"
    assert status.example is not None and status.example.at > 1.7e9
    assert producer.name in status.deletes_parked
    assert await inbox.requeue() == 2
    assert sorted((await taken(inbox, 2)).entries) == [b"bad", "größer".encode()]
    assert await inbox.parked() == []


async def test_hostile_entries_are_parked_with_a_reason_and_hold_up_no_other(producer: Any) -> None:
    frontier = server(DEBIAN).url
    server(DEBIAN).command("FLUSHALL")
    # What cannot be sent to SQS at all is left to RabbitMQ.
    text = isinstance(producer, SqsProducer)
    good = [entry for entry in GOOD if not (text and b"\x00" in entry)]
    bad = {
        what: case for what, case in BAD.items()
        if case[0] and (not text or (len(case[0]) < 200_000 and not set(case[0]) & {0, 0x80, 0xFF}))
    }  # fmt: skip
    await producer.push(*itertools.chain(good, (entry for entry, _ in bad.values())))
    job = await inbox_job.opened(frontier, await inbox_job.start(frontier))
    inbox = producer.reader()
    reading = inbox_job.reader(inbox, job, frontier, inbox_job.spider())
    while await reading.step():
        pass
    assert (await job.console.progress()).waiting == len(good)
    parked = {one.entry: one.why for one in await inbox.parked()}
    for what, (entry, why) in bad.items():
        assert why in parked[entry[:2_000]], what
    assert len(parked) == len(bad)
    assert "geheim" not in str(parked.values())
    assert (await inbox.status()).waiting == 0
    await job.close()


@pytest.mark.xdist_group("rabbitmq")
async def test_a_huge_entry_is_parked_unread() -> None:
    producer = RabbitProducer()
    inbox = producer.reader()
    assert await inbox.take() is None
    await producer.push(b"first", b"x" * (LARGEST + 1))
    batch = await inbox.take()
    assert batch is not None and (batch.entries, batch.too_large) == ((b"first",), 1)
    assert await inbox.done(batch, {})
    [parked] = await inbox.parked()
    assert (parked.size, len(parked.entry)) == (LARGEST + 1, 2_000)
    await producer.close()


@pytest.mark.xdist_group("sqs")
@pytest.mark.parametrize("room", [0, 10, 100, 1_000, 3_000])
async def test_the_largest_entries_of_sqs_are_parked_and_requeued_whole(room: int) -> None:
    producer = SqsProducer()
    inbox = producer.reader()
    assert await inbox.take() is None
    entry = b'{"url": "https://shop.example/", "typo": "%s"}'
    entry %= b"x" * (256 * 1024 - room - len(entry) + 2)
    await producer.push(entry, b"good")
    batch = await taken(inbox, 2)
    assert await inbox.done(batch, {batch.entries.index(entry): "unknown field 'typo'" * 20})
    [parked] = await inbox.parked()
    assert parked.size == len(entry) == 256 * 1024 - room
    assert parked.why[:10] == ("unknown fi" if room >= 100 else "reason unk")
    assert await inbox.requeue() == 1
    assert (await taken(inbox, 1)).entries == (entry,)
    await producer.close()


@pytest.mark.xdist_group("sqs")
async def test_an_entry_that_the_queue_of_parked_ones_does_not_take_stays_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqs_inbox, "TAKEN_FOR", BRIEFLY)
    producer = SqsProducer()
    inbox = producer.reader()
    assert await inbox.take() is None and await inbox.parked() == []
    small = {"QueueUrl": await inbox._url(inbox._parked), "Attributes": {"MaximumMessageSize": "1024"}}
    await producer._api.call("test", "set_queue_attributes", **small)
    await producer.push(b"x" * 256 * 1024, b"bad", b"good")
    batch = await taken(inbox, 3)
    assert await inbox.done(batch, {0: "is not a URL", 1: "is not a URL"})
    assert [one.entry for one in await inbox.parked()] == [b"bad"]
    assert "MaximumMessageSize" in caplog.text
    assert (await taken(inbox, 1)).entries == (b"x" * 256 * 1024,)
    await producer.close()


@pytest.mark.xdist_group("rabbitmq")
async def test_a_queue_that_another_program_made_in_its_own_way_is_used_as_it_is() -> None:
    producer = RabbitProducer()
    connection = await connect(rabbit().url)
    channel = await connection.channel()
    await channel.queue_declare(producer.name, durable=True)
    await producer.push(b"https://shop.example/")
    inbox = producer.reader()
    assert await inbox.done(await taken(inbox, 1), {})
    await connection.close()
    await producer.close()


@pytest.mark.parametrize(
    "url",
    [
        "amqp://h?inbox=", "amqp://h?inbox=trotline.x", "amqp://h?inbox=a&trust=1", "amqp://u:s3cret@h:x?inbox=a",
        "amqp://h?inbox=a&end=left", "sqs://eu-west-1?inbox=a.fifo", "sqs://eu-west-1?inbox=a&idle=x",
        "sqs://u:s3cret@eu-west-1?inbox=a", "sqs://eu-west-1/prefix?inbox=a", "sqs://eu-west-1?inbox=a&secret=s3cret&key=k",
    ],
)  # fmt: skip
def test_a_url_that_names_no_inbox_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        (AmqpInbox if url.startswith("amqp") else SqsInbox)(url)
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"


async def test_a_server_that_is_not_there_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "some-secret")
    for inbox in (
        AmqpInbox("amqp://127.0.0.1:1/?inbox=wanted"),
        SqsInbox("sqs://eu-west-1?endpoint=http://127.0.0.1:1&inbox=wanted"),
    ):
        with pytest.raises(FrontierUnreachable):
            await inbox.take()
        await inbox.close()
