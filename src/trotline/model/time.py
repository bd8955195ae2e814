"""Time, as numbers.

Two names keep the units readable without paying for datetime objects on the hot path
(docs/decisions/002-time-as-floats.md). Text and CLI edges turn them into datetimes.
"""

import re
from datetime import UTC, datetime

Seconds = float
"""A length of time."""

Moment = float
"""A point in time: seconds since 1970 UTC, by the frontier's clock."""

LAST_MOMENT: Moment = 253_370_764_800.0
"""The year 9999: later moments are invalid."""


def iso(moment: Moment) -> str:
    """ISO 8601: `2026-03-01T12:00:00Z`."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(said: object, per_second: int = 1) -> Moment:
    """What another program gave as a time since 1970; 0 if it is none that `iso` can show."""
    try:
        when = float(str(said)) / per_second
    except ValueError:
        return 0.0
    return when if 0 <= when < LAST_MOMENT else 0.0


def from_iso(text: str) -> Moment:
    """The moment in `text`. Times without a zone are refused."""
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write it as 2026-03-01T12:00:00Z")
    return when.timestamp()


def seconds(text: str) -> Seconds:
    """`90`, `90s`, `10m`, `1h30m`, `2d`."""
    match = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text.strip().lower())
    if match is None or not any(match.groups()):
        raise ValueError(f'{text!r} is not a length of time; write it like "90s", "10m" or "1h30m"')
    days, hours, minutes, rest = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + rest
