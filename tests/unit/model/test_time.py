"""Points in time as people and JSON read them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.time import from_iso, iso, moment


def test_a_moment_reads_as_utc():
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(1_740_830_400.25) == "2025-03-01T12:00:00.250Z"


@given(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)))
def test_a_moment_survives_its_text(when):
    moment = when.replace(tzinfo=UTC).timestamp()

    assert from_iso(iso(moment)) == pytest.approx(moment, abs=0.001)


@pytest.mark.parametrize("text", ["2025-03-01T12:00:00Z", "2025-03-01T13:00:00+01:00", "2025-03-01T06:30:00-05:30"])
def test_any_zone_names_the_same_moment(text):
    assert from_iso(text) == 1_740_830_400.0


@given(st.text() | st.integers() | st.floats() | st.none(), st.sampled_from([1, 1000]))
def test_what_others_give_as_a_time_can_be_shown(said, per_second):
    assert iso(moment(said, per_second)) >= "1970-01-01"


def test_a_time_that_others_give_is_taken_as_it_is():
    assert moment("1740830400.25") == 1_740_830_400.25
    assert moment(b"1740830400250".decode(), 1000) == 1_740_830_400.25
    assert [moment(said) for said in ("9" * 200, "-1", "nan", "inf", "x", "", None)] == [0.0] * 7


def test_a_time_without_a_zone_is_refused_with_the_form_that_works():
    with pytest.raises(ValueError, match=r"'2025-03-01T12:00:00' has no time zone; write it as 2026-03-01T12:00:00Z"):
        from_iso("2025-03-01T12:00:00")


@pytest.mark.parametrize("text", ["", "yesterday", "2025-13-01T00:00:00Z", "12:00"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError):
        from_iso(text)
