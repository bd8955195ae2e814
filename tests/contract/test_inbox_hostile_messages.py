"""RabbitMQ delivers what producers sent beside the body as they sent it: no value of theirs ends a connection."""

import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiormq import connect, spec
from tests.contract.rabbitmq_servers import rabbit
from tests.contract.test_inbox_brokers import RabbitProducer, taken

from trotline.adapters.amqp.broker import AmqpBroker
from trotline.adapters.amqp.broker_url import address_of
from trotline.adapters.amqp.connection import Line
from trotline.errors import FrontierError
from trotline.model.job import Job, LaneRules
from trotline.model.time import iso
from trotline.ports.broker import Message

pytestmark = pytest.mark.xdist_group("rabbitmq")


class Raw(spec.Basic.Properties):
    """Properties as bytes: flags and values."""

    def __init__(self, sent: bytes) -> None:
        super().__init__()
        self.sent = sent

    def marshal(self) -> bytes:
        return self.sent


def table(fields: bytes) -> bytes:
    return len(fields).to_bytes(4) + fields


def nested(depth: int) -> bytes:
    inner = table(b"")
    for _ in range(depth):
        inner = table(b"\x01aF" + inner)
    return inner


HOSTILE = {
    "a time after the year 9999": b"\x00\x40" + (2**63).to_bytes(8),
    "the last time": b"\x00\x40" + b"\xff" * 8,
    "nested tables": b"\x20\x00" + nested(3_000),
    "a time in a table": b"\x20\x00" + table(b"\x01tT" + b"\xff" * 8),
    "a key that is no text": b"\x20\x00" + table(b"\x02\xff\xfeI\x00\x00\x00\x01"),
    "an id that is no text": b"\x00\x80\x03\xff\xfe\xfd",
    "a type that is no text": b"\x80\x00\x02\xff\xfe",
    "a reason that is no text": b"\x20\x00" + table(b"\x06reasonS" + table(b"\xff\xfe")),
    "a reason that is a list": b"\x20\x00" + table(b"\x06reasonA" + table(b"I\x00\x00\x00\x01")),
    "an id of many digits": b"\x00\x80\xc8" + b"9" * 200,
    "an id after the year 9999": b"\x00\x80\x0e" + b"9" * 14,
}


async def publish(queue: str, *messages: tuple[bytes, bytes]) -> None:
    """Bodies and properties."""
    connection = await connect(rabbit().url)
    channel = await connection.channel()
    for body, sent in messages:
        answer = await channel.basic_publish(body, routing_key=queue, properties=Raw(sent), mandatory=True)
        assert isinstance(answer, spec.Basic.Ack)
    await connection.close()


@pytest.fixture
async def producer() -> AsyncIterator[RabbitProducer]:
    made = RabbitProducer()
    assert await made.reader().take() is None
    yield made
    await made.close()


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=list(HOSTILE))
async def test_properties_of_any_kind_hold_up_nothing(producer: RabbitProducer, sent: bytes) -> None:
    inbox = producer.reader()
    await publish(producer.name, (b"first", sent), (b"second", b"\x00\x00"))
    batch = await taken(inbox, 2)
    assert batch.entries == (b"first", b"second")
    assert await inbox.done(batch, {0: "is not a URL"})
    [parked] = await inbox.parked()
    assert (parked.entry, parked.why) == (b"first", "is not a URL")


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=list(HOSTILE))
async def test_what_another_program_parked_is_shown_and_requeued(producer: RabbitProducer, sent: bytes) -> None:
    inbox = producer.reader()
    await publish(f"{producer.name}.parked", (b"first", sent))
    [parked] = await inbox.parked()
    assert parked.entry == b"first" and isinstance(parked.why, str)
    assert iso(parked.at) < "9999"
    assert (await inbox.status()).parked == 1
    assert await inbox.requeue() == 1
    assert (await taken(inbox, 1)).entries == (b"first",)


async def test_a_routing_key_that_is_no_text_holds_up_nothing(producer: RabbitProducer) -> None:
    inbox = producer.reader()
    connection = await connect(rabbit().url)
    channel = await connection.channel()
    exchange = f"all.{secrets.token_hex(4)}"
    await channel.exchange_declare(exchange, exchange_type="fanout")
    await channel.queue_bind(producer.name, exchange)
    frame = spec.Basic.Publish(exchange=exchange, routing_key="..")
    await _send(channel, frame, lambda sent: sent.replace(b"\x02..", b"\x02\xff\xfe"))
    await channel.exchange_delete(exchange)
    await connection.close()
    assert (await taken(inbox, 1)).entries == (b"body",)


async def _send(channel: Any, frame: spec.Basic.Publish, change: Callable[[bytes], bytes]) -> None:
    from aiormq.abc import ChannelFrame
    from pamqp.body import ContentBody
    from pamqp.header import ContentHeader

    header = ContentHeader(body_size=4, properties=spec.Basic.Properties())
    whole = ChannelFrame.marshall(channel.number, [frame, header, ContentBody(b"body")])
    assert change(whole.payload) != whole.payload
    await channel.write_queue.put(ChannelFrame(payload=change(whole.payload), should_close=False))


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=list(HOSTILE))
async def test_a_shelf_delivers_them_and_puts_them_aside(sent: bytes) -> None:
    job = Job(id=f"job-{secrets.token_hex(4)}", spider="contract", rules=LaneRules(), started_at=1.0)
    broker = AmqpBroker(address_of(rabbit().url), job)
    await broker.publish([Message("s0.b2", b"before")])
    await publish(f"{broker._prefix}.s0.b2", (b"hostile", sent))
    await broker.publish([Message("s0.b2", b"after")])
    before, hostile, after = await broker.receive("s0.b2", 10)
    assert (before.body, hostile.body, after.body) == (b"before", b"hostile", b"after")
    await broker.reject(hostile, "is no parcel")
    await broker.ack([before, after])
    assert await broker.rejected() == 1
    assert await broker.receive("s0.b2", 10) == []
    await broker.forget()
    await broker.close()


async def test_a_message_without_a_queue_is_still_an_error() -> None:
    """The library finds it by the id that comes back with it."""
    line = Line(address_of(rabbit().url), "test", confirms=True)
    with pytest.raises(FrontierError, match="nowhere"):
        await line.call("sending", lambda channel: channel.basic_publish(b"", routing_key="nowhere", mandatory=True))
    await line.close()
