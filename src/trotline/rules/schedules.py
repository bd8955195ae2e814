"""The ticks of a cron schedule in its time zone.

Daylight saving time as in Debian's cron: a fixed time that does not exist (02:30 in the night without 02:30) runs at
the next time that does, a fixed time that exists twice runs once, at its first. An expression with a star for minutes
or hours follows elapsed time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from trotline.model.schedule import Schedule
from trotline.model.time import Moment

_FIELDS = 5
_TURNED = timedelta(hours=3)
"""An upper bound of clock changes: local times this far ahead may have passed already."""
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
"""Any day, from which an expression is checked for ticks."""


def check(schedule: Schedule) -> None:
    """ValueError says what is wrong with it."""
    if len(schedule.cron.split()) != _FIELDS:
        raise ValueError(f"{schedule.cron!r} does not have five fields (minute, hour, day, month, day of the week)")
    try:
        zone = _zone(schedule)
    except (OSError, ValueError, LookupError) as error:
        raise ValueError(f"there is no time zone {schedule.timezone!r}") from error
    try:
        soon = list(islice(CronSim(schedule.cron, _SOME_DAY.astimezone(zone)), 1))
    except CronSimError as error:
        raise ValueError(f"{schedule.cron!r} is not a cron expression: {str(error).lower()}") from error
    if not soon:
        raise ValueError(f"{schedule.cron!r} never matches a date")


def due(schedule: Schedule, last: Moment, now: Moment) -> Moment | None:
    """The tick to run now: the latest one after `last`, the last tick that was started or skipped. None: none is due.

    Missed ticks start one run, not many.
    """
    latest = next((at for at in _back(schedule, now) if at <= now), None)
    return latest if latest is not None and latest > last else None


def upcoming(schedule: Schedule, now: Moment) -> Moment:
    """The next tick after `now`."""
    return next(at for at in _forth(schedule, now) if at > now)


def shown(schedule: Schedule, moment: Moment) -> str:
    """The moment in the schedule's time zone: `2026-03-01 03:00 CET`."""
    return f"{_local(schedule, moment):%Y-%m-%d %H:%M %Z}"


def _back(schedule: Schedule, now: Moment) -> Iterator[Moment]:
    # One second later, because the iteration begins with the moment before.
    start = _local(schedule, now) + timedelta(seconds=1)
    return (at.timestamp() for at in CronSim(schedule.cron, start + _turned(start), reverse=True))


def _forth(schedule: Schedule, now: Moment) -> Iterator[Moment]:
    start = _local(schedule, now)
    return (at.timestamp() for at in CronSim(schedule.cron, start - _turned(start)))


def _turned(local: datetime) -> timedelta:
    """By how much ticks may be out of order around this moment: 0 unless clocks change near it."""
    before, after = (local - _TURNED).utcoffset(), (local + _TURNED).utcoffset()
    return timedelta(0) if before == after else _TURNED


def _local(schedule: Schedule, moment: Moment) -> datetime:
    # Whole seconds, downwards: ticks have no fractions.
    return datetime.fromtimestamp(moment // 1, UTC).astimezone(_zone(schedule))


def _zone(schedule: Schedule) -> ZoneInfo:
    return ZoneInfo(schedule.timezone)
