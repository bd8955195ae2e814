"""Messages of a brokered frontier: every task survives, and anything else is refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.frontier.broker_message_codec import decode, encode
from trotline.model.proxy_pool import VIA, lane_of
from trotline.model.task import Task
from trotline.model.task_json import Undecodable, UnknownVersion
from trotline.ports.broker_books import Parcel
from trotline.rules.task_checks import LONGEST_NAME
from trotline.testing.frontier_contract.bench import task

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FULL = task(
    "https://shop.example/1", parent="https://shop.example/", headers=(("A", "b"),), body=b"\x00\xff",
    meta={"a": [1, 2]}, created_at=1750000000.125, not_before=0.25, depth=3, retries=0, session="anna",
    blocked_by=(7, 8), site="12",
)  # fmt: skip


def parcel(*tasks: Task) -> Parcel:
    return Parcel("0.p1.2.3", "s0.b2", tasks)


@pytest.mark.parametrize(
    "odd",
    [
        FULL,
        task("https://shop.example/1", method="FOO_1"),
        task("https://shop.example/1", lane=lane_of("l" * LONGEST_NAME, "@buyers/" + "a" * 64), pool="@buyers"),
        task("https://shop.example/2", meta={"raw": b"\xff"}),
        task("https://x.example", meta={"n": 2**63}),
    ],
)
def test_a_task_is_read_as_it_was_written(odd: Task) -> None:
    assert decode(encode([parcel(odd)]), "s0.b2") == [parcel(odd)]


def test_what_is_not_a_number_stays_so() -> None:
    [found] = decode(encode([parcel(task("https://shop.example/2", meta={"n": math.nan}))]), "s0.b2")
    assert math.isnan(found.tasks[0].meta["n"])


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    TEXT.filter(lambda lane: not set(lane) & set("\r\n\0\x1f")),
    st.integers(-(2**63), 2**63 - 1).filter(bool),
    st.dictionaries(
        TEXT,
        st.one_of(
            st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), TEXT, st.binary()
        ),
    ),
)
def test_every_task_survives(url: str, lane: str, fingerprint: int, meta: dict[str, object]) -> None:
    odd = Task(url=url, route="r", lane=lane, fingerprint=fingerprint, meta=meta)
    assert decode(encode([parcel(odd)]), "s0.b2") == [parcel(odd)]


def test_a_message_can_be_read_by_others() -> None:
    read = json.loads(encode([parcel(FULL)]))
    assert read["v"] == 1
    [shown] = read["parcels"][0]["tasks"]
    assert (shown["url"], shown["job_type"], shown["site_id"]) == ("https://shop.example/1", "page", "12")
    assert shown["task_id"] == FULL.id


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'{"v":1}', b'{"v":1,"parcels":{}}', b'{"v":1,"parcels":[],"x":1}', b"\xff\xfe",
        b'{"v":1,"parcels":[{"id":1,"tasks":[]}]}',
        b'{"v":1,"parcels":[{"id":"a","tasks":[{"url":"u","task_id":"zz"}]}]}',
        b'{"v":1,"parcels":[{"id":"a","tasks":[{"task_id":"1"}]}]}', b"[" * 100_000,
        b'{"v":1,"parcels":[{"id":"a","tasks":[{"url":"u","task_id":"1","wire":"AAAA"}]}]}',
        b'{"v":1,"parcels":[{"id":"a","tasks":[{"url":"u","task_id":"11111111111111111"}]}]}',
    ],
)  # fmt: skip
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(body, "s0.b2")


@pytest.mark.parametrize("lane", ["l" * 1_001, f"l{VIA}{'p' * 70}", f"{'l' * 1_001}{VIA}p", f"l{VIA}a b"])
def test_a_lane_that_no_frontier_keeps_is_refused(lane: str) -> None:
    with pytest.raises(Undecodable, match="lane"):
        decode(encode([parcel(task("https://shop.example/", lane=lane))]), "s0.b2")


def test_another_version_is_refused_by_its_number() -> None:
    with pytest.raises(UnknownVersion, match="version 2"):
        decode(b'{"v":2,"other":1}', "s0.b2")
