"""Requests whose callback this version of the spider does not have: a deploy does not bury them at once."""

import logging
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider

from tests.unit.rules.test_tagged_json import MALFORMED
from trotline.bridges.scrapy.lease_feeder import Ready
from trotline.bridges.scrapy.lease_requests import OTHER_VERSION_AGAIN, OTHER_VERSION_TRIES, LeaseRequests
from trotline.bridges.scrapy.request_codec import RequestCodec
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Bury, Retry
from trotline.model.task import Task


class Old(Spider):
    name = "shop"

    def detail(self, response: Any) -> None: ...


class New(Spider):
    name = "shop"

    def parse_detail(self, response: Any) -> None: ...


def task(attempt: int = 0) -> Task:
    old = Old()
    stored = RequestCodec(old).encode(Request("https://shop.example/1", callback=old.detail), 1, now=1.0)
    return msgspec.structs.replace(stored, attempt=attempt)


class Process:
    def __init__(self, spider: Spider) -> None:
        self.settled: list[Settlement] = []
        jars: Any = None
        self._requests = LeaseRequests(spider, RequestCodec(spider), jars, None, self.settled.append)

    def takes(self, task: Task) -> bool:
        return self._requests.visit(Ready(Lease(task, 1, 0.0, 0.0, 0.0, 0.0), 0.0)) is not None


def test_a_request_of_another_version_is_given_back_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    process = Process(New())
    assert not process.takes(task())
    assert not process.takes(task(attempt=OTHER_VERSION_TRIES - 2))
    why = "not read: the spider 'shop' has no method 'detail'"
    assert [one.outcome for one in process.settled] == [Retry(OTHER_VERSION_AGAIN, why)] * 2
    assert caplog.text.count("scrapy.other_version") == 1
    assert Process(Old()).takes(task(attempt=1)), "a process of the old version visits it"


def test_it_is_buried_after_several_tries_with_what_to_do() -> None:
    process = Process(New())
    process.takes(task(attempt=OTHER_VERSION_TRIES - 1))
    (found,) = [one.outcome for one in process.settled]
    assert isinstance(found, Bury)
    assert found.why == (
        "not read: the spider 'shop' has no method 'detail'; keep the old callback's name until the job has ended"
    )


def test_what_no_version_can_read_is_buried_at_once() -> None:
    process = Process(New())
    process.takes(msgspec.structs.replace(task(), body=b'{"callback": '))
    assert isinstance(process.settled[0].outcome, Bury)


def buried(stored: Task, body: bytes) -> str:
    process = Process(New())
    assert not process.takes(msgspec.structs.replace(stored, body=body))
    [outcome] = [one.outcome for one in process.settled]
    assert isinstance(outcome, Bury)
    return outcome.why


@pytest.mark.parametrize(
    "body",
    [
        b'{"meta": {"id": {"~": ["UUID", 5]}}}',
        b'{"encoding": "no such encoding"}',
        b'{"class": 5}',
        b'{"jar": 5}',
        b'{"jar": ["other", [[1]]]}',
    ],
)
def test_what_cannot_be_restored_is_buried_with_the_reason(body: bytes) -> None:
    """An error would end the loop of Scrapy's engine, and the crawl would hang."""
    assert buried(task(), body).startswith("not read: ")


@given(
    MALFORMED, st.sampled_from(["meta", "cookies", "cb_kwargs", "flags", "headers", "priority", "body", "class", "jar"])
)
def test_nothing_malformed_stops_the_crawl(value: Any, field: str) -> None:
    process = Process(New())
    stored = msgspec.structs.replace(task(), body=msgspec.json.encode({field: value}))
    assert process.takes(stored) != bool(process.settled)
