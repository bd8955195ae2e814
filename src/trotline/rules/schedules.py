"""Which tick of a schedule is due.

A tick is a moment that the cron expression names in its time zone. Where clocks are turned, this is Debian's cron:
a fixed time that does not exist (02:30 on the night that has no 02:30) comes at the next one that does, a fixed time
that exists twice comes once, at its first. An expression with a star for minutes or hours means "every so often":
it follows the time that really passes.
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
"""No clock is turned by more: ticks that lie this far ahead by their name may have passed already."""
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
"""From here we look whether an expression ever comes true; any day would do."""


def check(schedule: Schedule) -> None:
    """ValueError says what is wrong with it."""
    if len(schedule.cron.split()) != _FIELDS:
        raise ValueError(f"{schedule.cron!r} has not five parts (minute, hour, day, month, day of the week)")
    try:
        zone = _zone(schedule)
    except (OSError, ValueError, LookupError) as error:
        raise ValueError(f"there is no time zone {schedule.timezone!r}") from error
    try:
        soon = list(islice(CronSim(schedule.cron, _SOME_DAY.astimezone(zone)), 1))
    except CronSimError as error:
        raise ValueError(f"{schedule.cron!r} is no cron expression: {str(error).lower()}") from error
    if not soon:
        raise ValueError(f"{schedule.cron!r} never comes true")


def due(schedule: Schedule, last: Moment, now: Moment) -> Moment | None:
    """The tick that is to run now: the latest one after `last`, the tick that was dealt with. None: none is due.

    Ticks that were missed while nobody looked are one run, not many.
    """
    latest = next((at for at in _back(schedule, now) if at <= now), None)
    return latest if latest is not None and latest > last else None


def upcoming(schedule: Schedule, now: Moment) -> Moment:
    """The next tick after `now`."""
    return next(at for at in _forth(schedule, now) if at > now)


def shown(schedule: Schedule, moment: Moment) -> str:
    """The moment as the clocks of the schedule's zone show it: `2026-03-01 03:00 CET`."""
    return f"{_local(schedule, moment):%Y-%m-%d %H:%M %Z}"


def _back(schedule: Schedule, now: Moment) -> Iterator[Moment]:
    # One second later, because the iteration begins with the moment before.
    start = _local(schedule, now) + timedelta(seconds=1)
    return (at.timestamp() for at in CronSim(schedule.cron, start + _turned(start), reverse=True))


def _forth(schedule: Schedule, now: Moment) -> Iterator[Moment]:
    start = _local(schedule, now)
    return (at.timestamp() for at in CronSim(schedule.cron, start - _turned(start)))


def _turned(local: datetime) -> timedelta:
    """By how much ticks may be out of order around this moment: not at all, if no clock is turned near it."""
    before, after = (local - _TURNED).utcoffset(), (local + _TURNED).utcoffset()
    return timedelta(0) if before == after else _TURNED


def _local(schedule: Schedule, moment: Moment) -> datetime:
    # Whole seconds, downwards: ticks have no fractions.
    return datetime.fromtimestamp(moment // 1, UTC).astimezone(_zone(schedule))


def _zone(schedule: Schedule) -> ZoneInfo:
    return ZoneInfo(schedule.timezone)
