"""Partitions of the ledger as stretches of time: without a gap, without an overlap."""

import itertools
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.adapters.postgres.partition_periods import Period, ahead, beyond, missing, named, period_of
from trotline.adapters.postgres.sink_url import UNITS

DAYS = st.dates(date(2000, 1, 1), date(2100, 1, 1))


@given(DAYS, st.sampled_from(UNITS))
def test_a_day_is_in_its_period_and_the_next_begins_where_it_ends(day, unit):
    period = period_of(day, unit)

    assert period.start <= day < period.end
    assert period_of(period.end, unit).start == period.end
    assert period_of(period.end - timedelta(days=1), unit) == period


@given(st.lists(st.tuples(DAYS, st.sampled_from(UNITS)), max_size=20))
def test_whatever_the_unit_was_every_day_has_one_period_and_none_overlap(story):
    there: list[Period] = []
    for day, unit in story:
        there += missing([day], unit, there)

    ordered = sorted(there)
    assert all(before.end <= after.start for before, after in itertools.pairwise(ordered))
    assert all(sum(period.start <= day < period.end for period in there) == 1 for day, _ in story)
    assert missing([day for day, _ in story], "day", there) == []


@given(DAYS, st.sampled_from(UNITS))
def test_a_name_tells_the_period(day, unit):
    period = period_of(day, unit)

    assert named(period.of("visits")) == named(period.of("history")) == period


@pytest.mark.parametrize("name", ["visits", "visits_2026", "retired_visits_20260101_20260201_1", "visits_default"])
def test_other_tables_are_no_partitions(name):
    assert named(name) is None


def test_ahead_is_a_day_of_each_of_the_next_periods():
    assert ahead(date(2026, 11, 15), "month", 2) == [date(2026, 11, 15), date(2026, 12, 1), date(2027, 1, 1)]
    assert ahead(date(2026, 12, 31), "day", 1) == [date(2026, 12, 31), date(2027, 1, 1)]


def test_what_ends_on_the_day_is_beyond_it():
    january, february = period_of(date(2026, 1, 5), "month"), period_of(date(2026, 2, 5), "month")

    assert beyond(date(2026, 2, 1), [february, january]) == [january]
    assert beyond(date(2026, 1, 31), [february, january]) == []
