"""How numbers, times and foreign text look on a screen."""

import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from trotline.config.backend_urls import public
from trotline.model.job import LaneView, Progress, State
from trotline.model.time import Seconds
from trotline.rules import printable_text, redaction
from trotline.rules.duration_text import between
from trotline.rules.duration_text import length as length
from trotline.rules.eta import Range, Unknown
from trotline.rules.pace import FAILING, RETRY_DRIP
from trotline.rules.refusal_words import plain

LONGEST = 300
NO_INTERVAL = "-"
LONGEST_OF_ERRORS = 2000
"""Characters of one line of an error: paths and hints are long."""
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Characters that move the cursor, turn the writing direction or show nothing at all."""


def safe(text: str, longest: int = LONGEST) -> str:
    """Text from a page, for a terminal: control characters become symbols, and it is cut."""
    return printable_text.cut(text, longest)


def safe_text(text: str, longest: int = LONGEST) -> str:
    """Words that may quote a URL: without secrets, and then as `safe`."""
    return safe(redaction.text(text), longest)


def safe_lines(text: str) -> str:
    """An error with its hint: each line as `safe_text`."""
    return "\n".join(safe(line, LONGEST_OF_ERRORS) for line in redaction.text(text).split("\n"))


def json_line(value: Any) -> str:
    """One line of JSON: characters that would move the cursor or turn the line round are written as escapes."""
    line = msgspec.json.encode(value).decode()
    return line if line.isprintable() else "".join(map(_escaped, line))


def _escaped(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    # The one character of ASCII that JSON leaves as it is.
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


def safe_url(url: str, longest: int = LONGEST) -> str:
    """A URL for a terminal: no user name and password, no control characters."""
    return safe(public(url), longest)


def count(number: int, noun: str = "") -> str:
    """`1,234`, or with a noun `1 page`, `2 pages`."""
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def task_counts(progress: Progress) -> dict[str, int]:
    """The counters under the names that every view of a job has."""
    names = ("admitted", "waiting", "delayed", "leased", "done", "dead")
    return {name: getattr(progress, name) for name in names}


def task_states(progress: Progress, separator: str = "  ") -> str:
    """`waiting 14  leased 8  done 21  dead 0`."""
    return separator.join(f"{name} {count(getattr(progress, name))}" for name in ("waiting", "leased", "done", "dead"))


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows as lines whose columns stand under each other; those in `right` end at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        placed = (
            text.rjust(width) if place in right else text.ljust(width) for place, (text, width) in enumerate(cells)
        )
        lines.append("  ".join(placed).rstrip())
    return lines


def rate(per_second: float | None, noun: str = "pages") -> str:
    if per_second is None:
        return f"unknown {noun}/s"
    if 0 < per_second < 0.5:
        return f"{per_second * 60:.1f} {noun}/min"
    return f"{per_second:,.1f} {noun}/s" if per_second < 100 else f"{per_second:,.0f} {noun}/s"


def clock(seconds: Seconds) -> str:
    """A running time that keeps its width: `0:07`, `12:05`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def eta(found: Range | Unknown) -> str:
    """`2 to 5 min`, or why there is no estimate."""
    if isinstance(found, Unknown):
        return found.value
    return between(found.low, found.high)


def size(octets: int) -> str:
    for unit, step in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if octets >= step:
            return f"{octets / step:.1f} {unit}"
    return count(octets, "byte")


def rest(lane: LaneView) -> str:
    """Why nothing of the lane is visited now; empty when it may be."""
    if lane.state is not State.RUNNING:
        return lane.state.value
    if lane.rests_for <= 0:
        return ""
    return f"{length(lane.rests_for)}: {safe(lane.why, 100)}" if lane.why else length(lane.rests_for)


def retries_limited(lane: LaneView) -> str:
    """Why the retries of a lane are slow although it does not rest; empty if they are not."""
    return f"most visits fail: one retry per {1 / RETRY_DRIP:.0f} s" if lane.trouble > FAILING else ""


def every(lane: LaneView) -> str:
    """The interval of a lane; NO_INTERVAL if it has none, as with a pace per proxy."""
    return length(lane.interval) if lane.interval >= 0.0005 else NO_INTERVAL


def by_number(counts: Mapping[str, int], most: int) -> list[tuple[str, int]]:
    """The most frequent first."""
    return sorted(counts.items(), key=lambda item: -item[1])[:most]


def reason(why: str) -> str:
    """The reason of a refusal, in plain words."""
    return safe(plain(why), 100)
