"""How numbers, times and foreign text look on a page. What is unknown is "unknown", never 0."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from trotline.model.proxy_pool import without_pool
from trotline.model.time import Moment, Seconds
from trotline.rules import duration_text, printable_text
from trotline.web.job_views import EtaView

UNKNOWN = "unknown"
LONGEST = 300
"""Characters of foreign text in one cell; the whole of it is one click away."""


def foreign(text: str, longest: int = LONGEST) -> str:
    """Text of a page, a URL or an error, in one line: hidden characters become visible, and it is cut."""
    return printable_text.cut(text, longest)


def lines(text: str, longest: int = 64 * 1024) -> str:
    """The same for text with line breaks, as it came."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "\n".join(foreign(line.replace("\t", "    "), longest) for line in cut.splitlines())


def count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def counted(number: int | None, noun: str) -> str:
    """`1 page`, `2 pages`."""
    return f"{count(number)} {noun if number == 1 else noun + 's'}"


def size(octets: int | None) -> str:
    if octets is None:
        return UNKNOWN
    for unit, step in (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if octets >= step:
            return f"{octets / step:.1f} {unit}"
    return f"{octets:,} B"


def rate(per_second: float | None) -> str:
    """Per second; the unit stands in the heading."""
    if per_second is None:
        return UNKNOWN
    return (
        f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.1f}" if per_second >= 0.95 else _slow(per_second)
    )


def _slow(per_second: float) -> str:
    return f"{per_second:.2f}" if per_second else "0"


def percent(share: float | None) -> str:
    if share is None:
        return UNKNOWN
    if 0 < share < 0.001:
        return "< 0.1 %"
    # 99.96 % is not all of it.
    return f"{min(share, 0.999) * 100:.1f} %" if 0 < share < 1 else f"{share * 100:.0f} %"


def length(seconds: Seconds | None) -> str:
    """In its two largest units: `0.4 s`, `42 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    return UNKNOWN if seconds is None else duration_text.length(seconds)


def eta(found: EtaView | None) -> str:
    """`2 to 5 min`; empty: there is no estimate."""
    if found is None or found.low is None or found.high is None:
        return ""
    return duration_text.between(found.low, found.high)


def deadline(left: Seconds | None) -> str:
    """`deadline in 2 h`; empty: there is none."""
    if left is None:
        return ""
    return f"deadline in {duration_text.length(left)}" if left > 0 else f"deadline {duration_text.length(-left)} ago"


def clock(at: Moment) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def moment(at: Moment | None) -> str:
    """`2026-11-17 12:03:05`, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") if at else UNKNOWN


def part(text: str) -> str:
    """For one segment of a path."""
    return quote(text, safe="")


def plain_iso(text: str) -> str:
    """`2026-11-17T12:03:05.123Z` as people read it."""
    return text.replace("T", " ")[:19]


FILTERS: dict[str, Callable[..., Any]] = {
    "foreign": foreign, "lines_of": lines, "count": count, "counted": counted, "size": size, "rate": rate,
    "percent": percent, "lasting": length, "eta": eta, "clock": clock, "moment": moment, "part": part,
    "plain_iso": plain_iso, "host": without_pool,
}  # fmt: skip
"""Of the templates. Jinja has a `count` of its own, for lists: here it is for numbers, and lists have `length`."""
