"""Which answers may be asked about again, and how."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.answer import Answer
from trotline.model.http_validator import Validator
from trotline.model.task import Task
from trotline.rules.conditional_requests import LONGEST, asking, may_ask, page_of, validator_of

DATE = "Sat, 01 Mar 2025 12:00:00 GMT"
TASK = Task(url="https://shop.example/p/1", route="product", fingerprint=7)


def answer(status: int = 200, **headers: str) -> Answer:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(url="https://shop.example/p/1", status=status, headers=pairs)


@pytest.mark.parametrize("etag", ['"abc"', 'W/"abc"', '""', '"a b"', '"5f-1:gz;x,y"', "abc123", "5e3f:0", "W/abc"])
def test_an_etag_is_sent_back_as_it_came(etag):
    validator = validator_of(answer(etag=etag))

    assert validator == Validator(etag=etag)
    assert asking(TASK, validator).headers == (("If-None-Match", etag),)


def test_a_date_is_sent_back_as_it_came():
    validator = validator_of(answer(last_modified=DATE))

    assert validator is not None
    assert asking(TASK, validator).headers == (("If-Modified-Since", DATE),)


def test_both_are_sent_beside_the_tasks_own_headers():
    task = Task(url="https://shop.example/p/1", route="product", headers=(("Accept-Language", "de"),))

    assert asking(task, Validator('"a"', DATE)).headers == (
        ("Accept-Language", "de"),
        ("If-None-Match", '"a"'),
        ("If-Modified-Since", DATE),
    )


def test_an_answer_that_says_nothing_is_not_asked_about():
    assert validator_of(answer()) is None


@pytest.mark.parametrize("status", [201, 206, 301, 304, 404, 500])
def test_only_a_whole_page_is_asked_about(status):
    assert validator_of(answer(status, etag='"a"')) is None


@pytest.mark.parametrize(
    "etag",
    [
        "",
        "*",
        ' "a"',
        '"a", *',
        '"a"b"',
        '"a\r\nX-Evil: 1"',
        '"a\x00"',
        '"a\x7f"',
        '"é"',
        '"\udcff"',
        f'"{"a" * LONGEST}"',
    ],
)
def test_an_etag_that_could_mean_everything_or_break_a_header_is_none(etag):
    assert validator_of(answer(etag=etag)) is None


def test_an_unusable_etag_leaves_the_date():
    assert validator_of(answer(etag="*", last_modified=DATE)) == Validator("", DATE)


@given(st.text(max_size=40), st.text(max_size=40))
def test_whatever_a_site_sends_what_is_sent_back_is_one_printable_line(etag, modified):
    validator = validator_of(answer(etag=etag, last_modified=modified))

    for value in (validator.etag, validator.modified) if validator else ():
        assert value.isascii()
        assert value.isprintable()
        assert value != "*"


@given(st.binary(max_size=2000))
def test_the_longest_value_is_bounded(value):
    validator = validator_of(answer(etag=value.hex(), last_modified=value.hex()))

    assert validator is None or len(validator.etag) <= LONGEST
    assert validator is None or len(validator.modified) <= LONGEST


@pytest.mark.parametrize("method", ["POST", "PUT", "HEAD", "DELETE"])
def test_only_a_get_asks(method):
    assert may_ask(TASK)
    assert not may_ask(Task(url=TASK.url, route="product", method=method))


@pytest.mark.parametrize("name", ["If-None-Match", "if-modified-since", "Range", "If-Match"])
def test_an_authors_own_condition_is_left_alone(name):
    assert not may_ask(Task(url=TASK.url, route="product", headers=((name, "x"),)))


def test_a_page_is_its_route_task_session_and_url():
    others = [
        Task(url=TASK.url, route="listing", fingerprint=7),
        Task(url=TASK.url, route="product", fingerprint=8),
        Task(url=TASK.url, route="product", fingerprint=7, session="anna"),
        Task(url="https://shop.example/p/1?v=2", route="product", fingerprint=7),
    ]

    assert len({page_of(task) for task in [TASK, *others]}) == 5


def test_depth_parent_attempts_and_meta_do_not_change_a_page():
    again = Task(url=TASK.url, route="product", fingerprint=7, depth=3, attempt=2, parent="https://x.example/", hops=1)

    assert page_of(again) == page_of(TASK)
