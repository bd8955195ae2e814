"""What the client library gets of a frame: it can decode all of it, whatever a producer sent."""

from datetime import UTC, datetime

import pamqp.frame
import pytest
from aiormq import spec
from hypothesis import given
from hypothesis import strategies as st
from pamqp.header import ContentHeader

from trotline.adapters.amqp.trimmed_frames import CONTENT_HEADER, METHOD, used

NAMES = st.text(max_size=60)
TIMES = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
HEADERS = st.dictionaries(
    NAMES.filter(lambda name: len(name.encode()) < 128),
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | NAMES | st.lists(NAMES, max_size=3)
    | st.floats(width=32) | TIMES,
    max_size=5,
)  # fmt: skip


def decoded(payload: bytes) -> ContentHeader:
    found = pamqp.frame._unmarshal_header_frame(used(CONTENT_HEADER, payload))
    assert found.body_size == int.from_bytes(payload[4:12])
    return found


@given(st.binary(min_size=12))
def test_any_bytes_can_be_decoded_and_keep_the_size_of_the_body(payload: bytes) -> None:
    decoded(payload)


@given(st.integers(0, 2**16 - 1), st.binary(max_size=300))
def test_any_values_of_any_properties_can_be_decoded(flags: int, values: bytes) -> None:
    decoded(b"\x00\x3c\x00\x00" + bytes(7) + b"\x09" + flags.to_bytes(2) + values)


@given(HEADERS, NAMES, NAMES.filter(lambda name: len(name.encode()) < 256), st.booleans())
def test_the_reason_and_the_id_are_kept_beside_all_others(
    headers: dict[str, object], reason: str, message_id: str, short: bool
) -> None:
    properties = spec.Basic.Properties(
        content_type=None if short else "text/plain",
        content_encoding=None if short else "gzip",
        headers={**headers, "reason": reason},
        delivery_mode=2,
        priority=None if short else 3,
        correlation_id="c",
        reply_to=None if short else "r",
        expiration="60000",
        message_id=message_id,
        timestamp=None if short else datetime(2026, 3, 1, tzinfo=UTC),
        app_id="app",
    )
    found = decoded(ContentHeader(body_size=7, properties=properties).marshal()).properties
    assert (found.headers or {}).get("reason", "") == reason
    assert (found.message_id or "") == message_id
    assert (found.content_type, found.timestamp, found.app_id) == (None, None, None)


@pytest.mark.parametrize("field", [b"F\x00\x00\x00\x00", b"I\x00\x00\x00\x01", b"?", b"", b"S\x00\x00\x00\x02\xff\xfe"])
def test_a_reason_that_is_no_text_is_none(field: bytes) -> None:
    table = b"\x06reason" + field
    sent = b"\x20\x00" + len(table).to_bytes(4) + table
    assert not decoded(b"\x00\x3c" + bytes(10) + sent).properties.headers


def test_a_message_has_its_tag_and_neither_exchange_nor_routing_key() -> None:
    sent = spec.Basic.GetOk(delivery_tag=2**40, redelivered=True, exchange="x", routing_key="y" * 255, message_count=9)
    payload = used(METHOD, sent.index.to_bytes(4) + sent.marshal())
    found = pamqp.frame._unmarshal_method_frame(payload)
    assert isinstance(found, spec.Basic.GetOk)
    assert (found.delivery_tag, found.redelivered, found.message_count) == (2**40, True, 9)
    assert (found.exchange, found.routing_key) == ("", "")


def test_other_frames_are_left_alone() -> None:
    declared = spec.Queue.DeclareOk(queue="q", message_count=1, consumer_count=2)
    payload = declared.index.to_bytes(4) + declared.marshal()
    assert used(METHOD, payload) == payload
    assert used(3, b"\x00\x3c\x00\x47body") == b"\x00\x3c\x00\x47body"
