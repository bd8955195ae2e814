"""Tasks as bytes between processes, and as the JSON that people write."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model import task_json
from trotline.model.task import Task

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
moments = st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
small = st.integers(0, 2**31)

BY_TYPE: dict[object, st.SearchStrategy[object]] = {
    str: text,
    str | None: st.none() | text,
    int: small,
    float: moments,
    bytes: st.binary(max_size=20),
    tuple[tuple[str, str], ...]: st.lists(st.tuples(text, text), max_size=3).map(tuple),
    tuple[int, ...]: st.lists(st.integers(1, 2**48 - 1), max_size=3).map(tuple),
    dict[str, Any]: st.dictionaries(text, plain, max_size=3),
}
"""A field that is added later is part of the round trips by its type; a type that is new here fails by its field."""
BY_NAME = {
    "fingerprint": st.integers(-(2**63), 2**63 - 1),
    "method": st.sampled_from(["GET", "POST", "HEAD", "PUT"]),
}
tasks = st.builds(
    Task,
    **{
        field.name: BY_NAME[field.name] if field.name in BY_NAME else BY_TYPE[field.type]
        for field in msgspec.structs.fields(Task)
    },
)

SEED = json.loads("""
{
  "task_id": "uuid-v4",
  "job_type": "scrape_product_list",
  "url": "https://target.com/catalog?page=42",
  "site_id": 7,
  "depth": 2,
  "retry_count": 0,
  "max_retries": 3,
  "proxy_pool": "residential",
  "created_at": "2025-03-01T12:00:00Z"
}
""")
"""The seed documents' task, field for field."""


# Bytes


@given(tasks)
def test_a_task_survives_the_wire(task):
    assert task_json.decode(task_json.encode(task)) == task


def test_defaults_cost_no_bytes():
    assert len(task_json.encode(Task(url="u", route="r"))) <= 12


@pytest.mark.parametrize("version", [0, 2, 9, 255])
def test_an_unknown_version_says_so(version):
    damaged = bytes([version]) + task_json.encode(Task(url="u", route="r"))[1:]

    with pytest.raises(task_json.UnknownVersion, match=f"task format {version} is not supported .*only 1"):
        task_json.decode(damaged)


def test_no_bytes_are_no_task():
    with pytest.raises(task_json.Undecodable, match="no bytes"):
        task_json.decode(b"")


def decoded_or_refused(damaged: bytes) -> None:
    try:
        task_json.decode(damaged)
    except task_json.Undecodable:
        return


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused_and_nothing_else(foreign):
    decoded_or_refused(foreign)
    decoded_or_refused(b"\x01" + foreign)


@given(tasks, st.data())
def test_damaged_bytes_are_refused_or_another_task(task, data):
    whole = task_json.encode(task)
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = data.draw(st.integers(0, 255))

    decoded_or_refused(whole[:place])
    decoded_or_refused(whole[:place] + bytes([flipped]) + whole[place + 1 :])
    decoded_or_refused(whole + bytes([flipped]))


@pytest.mark.parametrize(
    "body",
    [
        b"\x82\xa1u\xa2\xff\xfe\xa1r\xa1r",
        b"\x83\xa1u\xa1u\xa1r\xa1r\xa1t\x81\xa1x" + b"\x91" * 100_000,
        b"\x83\xa1u\xa1u\xa1r\xa1r\xa1t\x81\xa1x\x81\x80\x01",
        b"\x81\xa1u\xdd\xff\xff\xff\xff",
        b"\x80",
        b"\xc0",
        b"\x82\xa1u\x01\xa1r\xa1r",
    ],
    ids=["not UTF-8", "nested deeply", "a map as a key", "a length of 4 GiB", "no fields", "nil", "a number as URL"],
)
def test_hostile_bytes_are_refused(body):
    with pytest.raises(task_json.Undecodable, match="not a task"):
        task_json.decode(b"\x01" + body)


# The seeds' JSON form


def test_every_field_of_the_seed_documents_is_understood():
    assert task_json.from_seed(SEED) == Task(
        url="https://target.com/catalog?page=42",
        route="scrape_product_list",
        site="7",
        depth=2,
        attempt=0,
        retries=3,
        pool="residential",
        created_at=1_740_830_400.0,
    )


def test_every_field_of_the_seed_documents_comes_back():
    shown = task_json.to_seed(task_json.from_seed(SEED))

    assert set(SEED) <= set(shown)
    assert shown | {"created_at": "", "task_id": ""} == SEED | {"v": 1, "created_at": "", "task_id": ""}
    assert shown["created_at"] == "2025-03-01T12:00:00.000Z"


@given(tasks)
def test_a_task_survives_its_json_form(task):
    """But for its fingerprint, which is the gate's to say, and shown as task_id."""
    shown = json.loads(msgspec.json.encode(task_json.to_seed(task)))

    assert shown["task_id"] == task.id
    back = task_json.from_seed(shown)
    assert msgspec.structs.replace(back, fingerprint=task.fingerprint, created_at=0, not_before=0) == (
        msgspec.structs.replace(task, created_at=0, not_before=0)
    )
    assert back.created_at == pytest.approx(task.created_at, abs=0.0011)
    assert back.not_before == pytest.approx(task.not_before, abs=0.0011)


def test_a_url_alone_is_a_seed():
    assert task_json.from_seed({"url": "https://a.example/"}) == Task(url="https://a.example/", route="")


def test_our_own_names_work_as_well_as_the_seeds():
    both = task_json.from_seed({"url": "u", "route": "r", "site": "s", "attempt": 1, "retries": 2, "pool": "p"})

    assert both == task_json.from_seed(
        {"url": "u", "job_type": "r", "site_id": "s", "retry_count": 1, "max_retries": 2, "proxy_pool": "p"}
    )


def test_a_version_may_be_given_and_is_shown():
    assert task_json.from_seed({"v": 1, "url": "u"}) == task_json.from_seed({"url": "u"})
    assert task_json.to_seed(Task(url="u", route="r"))["v"] == 1


@pytest.mark.parametrize("version", [2, 0, -1, "1", 1.0, True, None, [], "9" * 5000])
def test_a_form_of_another_version_is_refused_as_such(version):
    with pytest.raises(task_json.UnknownVersion, match='reads tasks with "v": 1 only') as refused:
        task_json.from_seed({"v": version, "url": "u", "field_of_the_future": 1})
    assert len(str(refused.value)) < 200


def test_headers_may_be_an_object():
    assert task_json.from_seed({"url": "u", "headers": {"Accept": "text/html"}}).headers == (("Accept", "text/html"),)


def test_an_unknown_field_is_named_with_those_that_are_known():
    with pytest.raises(
        task_json.Undecodable, match="unknown field 'prioritty'; known are v, task_id, url, job_type"
    ) as refused:
        task_json.from_seed({"url": "u", "prioritty": 1})
    assert not {"fingerprint,", "hops,", "throttled,", "blocked_by,"} & set(str(refused.value).split())


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "url"),
        ({"url": 5}, "url"),
        ({"url": "u", "depth": "2"}, "depth"),
        ({"url": "u", "retry_count": "many"}, "retry_count"),
        ({"url": "u", "site_id": None}, "site_id"),
        ({"url": "u", "headers": 5}, "headers"),
        ({"url": "u", "meta": []}, "meta"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named_as_it_was_written(fields, named):
    with pytest.raises(task_json.Undecodable, match=named):
        task_json.from_seed(fields)


@pytest.mark.parametrize("name", ["created_at", "not_before"])
@pytest.mark.parametrize("when", ["2025-03-01T12:00:00", "yesterday", ""])
def test_times_without_a_zone_and_no_times_are_refused_by_name(name, when):
    with pytest.raises(task_json.Undecodable, match=name):
        task_json.from_seed({"url": "u", name: when})


def test_a_moment_may_be_a_number():
    assert task_json.from_seed({"url": "u", "not_before": 1_740_830_400}).not_before == 1_740_830_400.0
