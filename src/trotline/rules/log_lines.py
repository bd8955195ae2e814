"""Log lines as JSON: one object per line, ASCII only, redacted and cut."""

import json
import re
from collections.abc import Mapping
from typing import Any

from trotline.model.time import Moment, iso
from trotline.rules import redaction

LONGEST_MESSAGE = 8_000
"""Characters of a message or a traceback; the last ones of a traceback are kept."""
LONGEST_FIELD = 1_000
MOST_FIELDS = 32
LEVELS = ("debug", "info", "warning", "error", "critical")
TRACEBACK = "error"
"""The field of a traceback: its end is what matters, and is kept."""
OTHER = "log"
"""The event of a line that has none, as those of other libraries."""

EVENT = re.compile(r"[a-z]+(?:[._-][a-z]+){1,4}", re.ASCII)
_OURS = ("ts", "level", "event", "logger", "message")
"""In this order; fields of the same name are left out."""


def log_line(
    at: Moment,
    *,
    level: str,
    event: str,
    message: str,
    logger: str,
    context: Mapping[str, str] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> str:
    """With a newline. `context`: job, worker and spider, if they are known."""
    line: dict[str, Any] = {
        "ts": iso(at),
        "level": level if level in LEVELS else "info",
        "event": event if EVENT.fullmatch(event) else OTHER,
        "logger": logger[:LONGEST_FIELD],
        "message": _text(message, LONGEST_MESSAGE),
    }
    line |= {name: value[:LONGEST_FIELD] for name, value in (context or {}).items() if value}
    for name, value in list((fields or {}).items())[:MOST_FIELDS]:
        if name not in _OURS:
            line[str(name)[:100]] = _end(value) if name == TRACEBACK and isinstance(value, str) else _plain(value)
    # ASCII has one control character that JSON leaves as it is.
    return json.dumps(line, allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def event_of(text: str) -> tuple[str, str]:
    """The event that a message begins with ("child.hangs ..."), and the rest of it."""
    first, _, rest = text.partition(" ")
    return (first, rest) if EVENT.fullmatch(first) else (OTHER, text)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        # JSON has no NaN.
        return value if abs(value) < float("inf") else str(value)
    return _text(str(value), LONGEST_FIELD)


def _end(text: str) -> str:
    """Redacted before it is cut, as below. What was cut once is not cut again: a supervisor does this after a child."""
    shown = redaction.text(text[-4 * LONGEST_MESSAGE :])
    if len(shown) <= LONGEST_MESSAGE:
        return shown
    begin = f"({len(text) - LONGEST_MESSAGE:,} characters cut) ..."
    return begin + shown[len(begin) - LONGEST_MESSAGE :]


def _text(text: str, longest: int) -> str:
    # Redacted before it is cut: half a secret would not be recognised. Not much more, as the cost grows with it.
    shown = redaction.text(text[: 4 * longest])
    return shown if len(shown) <= longest else f"{shown[:longest]}... ({len(text) - longest:,} characters cut)"
