"""Frames as the client library reads them."""

import asyncio

import pamqp.frame
import pytest
from aiormq import spec
from aiormq.connection import FrameReceiver
from aiormq.exceptions import AMQPError, ProtocolSyntaxError
from pamqp.body import ContentBody
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from trotline.adapters.amqp.transport import FrameReader


def reader(*sent: bytes) -> FrameReader:
    made = FrameReader()
    for part in sent:
        made.feed_data(part)
    return made


async def test_all_frames_arrive_in_their_order_and_with_their_channels() -> None:
    frames = [
        (0, Heartbeat()),
        (1, spec.Basic.GetOk(delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=0)),
        (1, ContentHeader(body_size=200_004, properties=spec.Basic.Properties(message_id="m", app_id="a"))),
        (1, ContentBody(b"x" * 200_000)),
        (1, ContentBody(b"last")),
        (7, spec.Basic.GetEmpty()),
    ]
    receiver = FrameReceiver(reader(b"".join(pamqp.frame.marshal(frame, channel) for channel, frame in frames)))
    found = [await receiver.get_frame() for _ in frames]
    assert [(channel, type(frame)) for _, channel, frame in found] == [
        (channel, type(frame)) for channel, frame in frames
    ]
    header, body = found[2][2], found[3][2]
    assert isinstance(header, ContentHeader) and header.properties.message_id == "m"
    assert isinstance(body, ContentBody) and body.value == b"x" * 200_000


async def test_a_server_of_another_protocol_is_named_as_one() -> None:
    with pytest.raises(ProtocolSyntaxError):
        await FrameReceiver(reader(b"AMQP\x00\x00\x09\x01")).get_frame()


async def test_a_connection_that_ends_within_a_frame_is_an_error() -> None:
    lost = reader(pamqp.frame.marshal(ContentBody(b"body"), 1)[:-3])
    lost.feed_eof()
    with pytest.raises(AMQPError):
        await asyncio.wait_for(FrameReceiver(lost).get_frame(), 5)
