"""What a producer that is not trusted may set."""

import json

import pytest

from trotline.model.task import Task
from trotline.model.task_json import seed_names
from trotline.rules.inbox_fields import OPEN, check_open, public_entry

URL = "https://shop.example/1"
CLOSED = {*Task.__struct_fields__, *seed_names()} - OPEN


def entry(**fields: object) -> bytes:
    return json.dumps({"url": URL, **fields}).encode()


def test_what_concerns_only_the_page_may_be_set() -> None:
    check_open(entry(v=1, task_id="x", job_type="product", priority=3, meta={"headers": {}, "key": 1}, depth=1))
    check_open(entry(retry_count=1, max_retries=2, created_at="2025-03-01T12:00:00Z"))


@pytest.mark.parametrize("field", sorted(CLOSED))
def test_every_other_field_is_refused_by_name_under_all_its_names(field: str) -> None:
    with pytest.raises(ValueError, match=rf"the field {field} is .*trust=yes"):
        check_open(entry(**{field: "geheim"}))


def test_the_closed_fields_are_those_that_reach_beyond_the_page() -> None:
    assert {"headers", "body", "method", "key", "lane", "site_id", "session", "chain", "proxy_pool"} <= CLOSED
    assert {"fingerprint", "client", "site", "pool"} <= CLOSED, "also the names that tasks have in Python"


def test_a_field_that_is_given_twice_or_escaped_does_not_slip_through() -> None:
    with pytest.raises(ValueError, match="fields key, lane are"):
        check_open(b'{"lane": "a", "url": "u", "k\\u0065y": "x", "lane": ""}')


@pytest.mark.parametrize("bad", [b"{", b'{"a":1}{"key":2}', b'{"\xff": 1}', b'{"a":' * 50_000])
def test_what_cannot_be_read_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        check_open(bad)


@pytest.mark.parametrize(
    "given",
    [
        entry(headers={"Authorization": "geheim"}),
        entry(task={"Headers": [["x", "geheim"]]}),
        entry(body="geheim"),
        entry(headers={"x": "geheim"})[:-3],
        b'\xff{"Proxy-Authorization": "geheim',
    ],
)
def test_headers_and_bodies_of_entries_are_not_shown(given: bytes) -> None:
    assert "geheim" not in public_entry(given)


def test_other_entries_are_shown_as_they_are() -> None:
    assert public_entry(entry(priority=3)) == entry(priority=3).decode()
    assert public_entry(b"https://shop.example/headers") == "https://shop.example/headers"
