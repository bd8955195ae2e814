"""Notes and counters that another program damaged: as if they were not there, and never an exception."""

import math

import msgspec
import pytest

from trotline.model.alert import Alert, AlertBook, AlertState
from trotline.model.job import Progress
from trotline.model.note import LARGEST_NOTE
from trotline.rules import alert_states, survey_note, time_series
from trotline.rules.survey_note import JobSummary
from trotline.rules.untrusted_values import MOST, counter, is_moment

_DEEP = b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}"


def test_a_summary_that_is_nested_deeply_is_an_empty_one() -> None:
    assert survey_note.decode(_DEEP) == JobSummary()


def test_a_summary_of_a_time_that_does_not_exist_is_an_empty_one() -> None:
    assert survey_note.decode(b'{"at":1e308}') == JobSummary()


def test_huge_counters_make_a_point_that_can_be_stored() -> None:
    tallies = {"records": 10**30, "bytes": 10**30, "retry: broken: 503": 10**30}
    point = time_series.point_of(Progress(waiting=0, leased=0, done=0, dead=0, tallies=tallies, now=5.0), 1)
    assert point.records == MOST
    assert time_series.decode(time_series.encode((point,))) == (point,)


@pytest.mark.parametrize("when", [1e308, math.inf, math.nan, -1.0])
def test_a_book_with_a_time_that_does_not_exist_is_an_empty_one(when: float) -> None:
    book = AlertBook(alerts=(Alert(rule="queue", state=AlertState.FIRING, since=when),))
    assert alert_states.decode(msgspec.msgpack.encode(book)) == AlertBook()


def test_a_book_that_is_too_large_is_an_empty_one() -> None:
    assert alert_states.decode(b"\x00" * (LARGEST_NOTE + 1)) == AlertBook()


def test_texts_of_a_book_are_one_line() -> None:
    book = AlertBook(alerts=(Alert(rule="queue", state=AlertState.FIRING, text="a\r\nBcc: b@c.example"),))
    [alert] = alert_states.decode(msgspec.msgpack.encode(book)).alerts
    assert "\n" not in alert.text and "\r" not in alert.text


def test_what_is_no_number_counts_nothing() -> None:
    assert [counter(text) for text in (b"7", b"boom", b"\xff", b"9" * 400)] == [7, 0, 0, MOST]


def test_moments() -> None:
    assert [is_moment(when) for when in (None, 0.0, 1.8e9, math.nan, math.inf, -1.0)] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
