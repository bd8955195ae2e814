"""Which tick is due: one run for what was missed, none twice, none lost, also where clocks are turned."""

from datetime import UTC, datetime
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trotline import Spider
from trotline.errors import SpiderRefused
from trotline.model.schedule import Overlap, Schedule
from trotline.rules.schedules import check, due, upcoming

BERLIN = "Europe/Berlin"
NIGHTLY = Schedule("0 3 * * *", BERLIN)
SPRING = datetime(2026, 3, 29, tzinfo=UTC)
"""01:00 UTC: 02:00 becomes 03:00 in Berlin."""
AUTUMN = datetime(2026, 10, 25, tzinfo=UTC)
"""01:00 UTC: 03:00 becomes 02:00 in Berlin."""


def at(text: str, zone: str = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def ticks(schedule: Schedule, since: float, until: float) -> list[float]:
    """All of them, forwards: another way to the same."""
    start = datetime.fromtimestamp(since - 2 * 86400, UTC).astimezone(ZoneInfo(schedule.timezone))
    forwards = (moment.timestamp() for moment in CronSim(schedule.cron, start))
    return sorted({moment for moment in takewhile(lambda moment: moment <= until, forwards) if moment > since})


def test_a_tick_is_due_from_its_moment_on_and_once():
    last = at("2026-06-01T03:00")

    assert due(NIGHTLY, last, at("2026-06-02T02:59:59")) is None
    assert due(NIGHTLY, last, at("2026-06-02T03:00")) == at("2026-06-02T03:00")
    assert due(NIGHTLY, last, at("2026-06-02T03:00") + 0.25) == at("2026-06-02T03:00")
    assert due(NIGHTLY, at("2026-06-02T03:00"), at("2026-06-02T03:00") + 0.25) is None


def test_ticks_that_were_missed_are_one_run():
    assert due(NIGHTLY, at("2026-06-01T03:00"), at("2026-06-20T12:00")) == at("2026-06-20T03:00")


def test_a_time_that_does_not_exist_comes_at_the_next_that_does():
    schedule = Schedule("30 2 * * *", BERLIN)
    last = at("2026-03-28T02:30")

    assert due(schedule, last, at("2026-03-29T01:59:59")) is None
    assert due(schedule, last, at("2026-03-29T03:00")) == at("2026-03-29T03:00")
    assert due(schedule, at("2026-03-29T03:00"), at("2026-03-30T02:29")) is None


def test_a_time_that_exists_twice_comes_once():
    schedule = Schedule("30 2 * * *", BERLIN)
    first = at("2026-10-25T02:30")

    assert due(schedule, at("2026-10-24T02:30"), first) == first
    assert due(schedule, first, at("2026-10-25T02:30", fold=1)) is None
    assert due(schedule, first, at("2026-10-25T12:00")) is None


def test_a_tick_missed_in_the_hour_that_comes_twice_is_due_in_its_second_half():
    schedule = Schedule("30 2 * * *", BERLIN)

    assert due(schedule, at("2026-10-24T02:30"), at("2026-10-25T02:15", fold=1)) == at("2026-10-25T02:30")


def test_every_so_often_follows_the_time_that_passes():
    half_hourly = Schedule("*/30 * * * *", BERLIN)
    day = ticks(half_hourly, AUTUMN.timestamp() - 3600, AUTUMN.timestamp() + 4 * 3600)

    assert {1800.0} == {later - sooner for sooner, later in pairwise(day)}
    assert all(due(half_hourly, tick - 1, tick) == tick for tick in day)


CRONS = st.sampled_from(
    [
        "0 3 * * *",
        "30 2 * * *",
        "0 2,3 * * *",
        "15 */6 * * *",
        "*/20 * * * *",
        "0 0 1 * *",
        "5 4 * * SUN",
        "0 12 29 2 *",
    ]
)
ZONES = st.sampled_from(
    [BERLIN, "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Santiago", "Africa/Casablanca"]
)
MOMENTS = st.one_of(
    st.floats(datetime(2020, 1, 1, tzinfo=UTC).timestamp(), datetime(2030, 1, 1, tzinfo=UTC).timestamp()),
    st.floats(-6 * 3600, 6 * 3600).map(lambda offset: SPRING.timestamp() + offset),
    st.floats(-6 * 3600, 6 * 3600).map(lambda offset: AUTUMN.timestamp() + offset),
)


@settings(max_examples=100, deadline=None)
@given(CRONS, ZONES, MOMENTS, st.floats(0, 3 * 86400))
@example("30 2 * * *", BERLIN, AUTUMN.timestamp() - 1800, 2 * 3600.0)
@example("30 2 * * *", BERLIN, SPRING.timestamp(), 2 * 3600.0)
def test_what_is_due_is_the_latest_tick_that_was_not_dealt_with(cron, zone, last, waited):
    schedule = Schedule(cron, zone)
    now = last + waited

    assert due(schedule, last, now) == max(ticks(schedule, last, now), default=None)


@settings(max_examples=30, deadline=None)
@given(CRONS, ZONES, MOMENTS, st.floats(600, 7200))
def test_who_looks_often_enough_runs_every_tick_once(cron, zone, start, pause):
    schedule = Schedule(cron, zone)
    end = start + 2 * 86400
    last, now, ran = start, start, []
    while now < end:
        now = min(end, now + pause)
        tick = due(schedule, last, now)
        if tick is not None:
            last = tick
            ran.append(tick)

    assert ran == sorted(set(ran)), "no tick twice, none out of order"
    every = ticks(schedule, start, end)
    assert set(ran) <= set(every)
    if all(later - sooner >= pause for sooner, later in pairwise(every)):
        assert ran == every


@settings(max_examples=30, deadline=None)
@given(CRONS, ZONES, MOMENTS)
def test_the_upcoming_tick_is_the_next_that_will_be_due(cron, zone, now):
    schedule = Schedule(cron, zone)
    coming = upcoming(schedule, now)

    assert coming > now
    assert due(schedule, now, coming) == coming
    assert due(schedule, now, coming - 1) is None or coming - 1 < now


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("0 3 * *", "UTC", "five fields"),
        ("0 0 3 * * *", "UTC", "five fields"),
        ("0 25 * * *", "UTC", "bad hour"),
        ("x 3 * * *", "UTC", "bad minute"),
        ("0 3 30 2 *", "UTC", "bad day-of-month"),
        ("0 3 * 2 MON#5 ", "Europe/Berlinn", "time zone"),
        ("0 3 * * *", "../../etc/passwd", "time zone"),
        ("0 3 * * *", "", "time zone"),
    ],
)
def test_a_schedule_that_cannot_work_is_refused_with_what_is_wrong(cron, zone, words):
    with pytest.raises(ValueError, match=words):
        check(Schedule(cron, zone))


def test_a_spider_has_a_schedule():
    spider = Spider("shop", schedule="0  3 * * *", timezone=BERLIN, overlap="wait")

    assert spider.schedule == Schedule("0 3 * * *", BERLIN, Overlap.WAIT)
    assert Spider("shop").schedule is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"schedule": "0 3 * *"}, "schedule: '0 3 \\* \\*' does not have five fields"),
        ({"schedule": 3}, "schedule is 3"),
        ({"schedule": "0 3 * * *", "timezone": "Berlin"}, "time zone 'Berlin'"),
        ({"schedule": "0 3 * * *", "overlap": "queue"}, "overlap is 'queue'"),
        ({"timezone": BERLIN}, "timezone or overlap without a schedule"),
    ],
)
def test_a_spider_with_a_schedule_that_cannot_work_is_refused_at_once(settings, words):
    with pytest.raises(SpiderRefused, match=words):
        Spider("shop", **settings)
