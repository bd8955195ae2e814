"""Messages as SQS accepts them."""

import json

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from trotline.adapters.sqs.message_bodies import LARGEST, UNPACKED, from_text, printable, to_text
from trotline.errors import FrontierError
from trotline.frontier import broker_message_codec
from trotline.model.task import Task
from trotline.ports.broker_books import Parcel


@given(st.text())
def test_json_comes_back_with_the_same_values_and_only_allowed_characters(value: str) -> None:
    text = to_text(msgspec.json.encode({"value": value.encode(errors="replace").decode()}))
    assert not set(text) & {"\ufffe", "\uffff", *map(chr, range(32))}
    assert json.loads(from_text(text)) == {"value": value.encode(errors="replace").decode()}


def test_the_largest_parcel_of_the_books_can_be_sent() -> None:
    # 64 KiB in the books, and each character takes six bytes as JSON.
    tasks = tuple(
        Task(url=f"https://a.example/{n}", route="r", fingerprint=n, meta={"x": "\x01" * 650}) for n in range(100)
    )
    body = broker_message_codec.encode([Parcel("0.p1.1.1", "s0.b2", tasks)])
    assert len(body) > LARGEST
    text = to_text(body)
    assert len(text) <= LARGEST and json.loads(text)["v"] == 1
    assert broker_message_codec.decode(from_text(text), "s0.b2")[0].tasks == tasks


def test_what_is_too_large_even_packed_is_refused() -> None:
    import random

    noise = random.Random(1).randbytes(LARGEST).hex()
    with pytest.raises(FrontierError, match="cannot be sent"):
        to_text(msgspec.json.encode(noise))


@pytest.mark.parametrize("size", [10, UNPACKED + 1])
def test_a_message_that_unpacks_without_end_is_not_unpacked(size: int) -> None:
    bomb = msgspec.json.encode({"v": 1, "zstd": zstandard.compress(b"x" * size)})
    unpacked = from_text(bomb.decode())
    assert unpacked == (b"x" * size if size <= UNPACKED else bomb)


@pytest.mark.parametrize("text", ['{"v":1,"zstd":"!!"}', '{"v":1,"zstd":"AAAA"}', '{"v":1,"zstd":1}', '{"v":1,"zstd":'])
def test_what_only_looks_packed_stays_as_it_is(text: str) -> None:
    assert from_text(text) == text.encode()


def test_the_value_of_an_attribute_has_only_what_sqs_accepts() -> None:
    assert printable("a\x00b\n") == "a?b?" and printable("") == "?"
