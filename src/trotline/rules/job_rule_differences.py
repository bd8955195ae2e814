"""In what the rules of a job differ from those of a program that joins it: for one line of a log."""

from collections.abc import Iterator
from typing import Any

from trotline.model.job import LaneRules
from trotline.model.pace import Pace

_NAMES = {"rate": "pace", "own_limits": "limits or traps", "retry_share": "retry share", "give_up": "give up after"}
"""As authors write them, where that differs from our fields."""
_LONGEST = 60


def differences(there: LaneRules, here: LaneRules) -> list[str]:
    """Such as "pace 2/s (here 5/s)"."""
    found = [_line(field, *both) for field, *both in _changed(there.default, here.default, Pace)]
    found += [_line(field, *both) for field, *both in _changed(there, here, LaneRules) if field != "default"]
    return found


def _changed(there: Any, here: Any, kind: type[Pace] | type[LaneRules]) -> Iterator[tuple[str, Any, Any]]:
    for field in kind.__struct_fields__:
        one, other = getattr(there, field), getattr(here, field)
        if one != other:
            yield field, one, other


def _line(field: str, there: Any, here: Any) -> str:
    return f"{_NAMES.get(field, field)} {_short(there)} (here {_short(here)})"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{key}={_short(one)}" for key, one in value.items())
    if isinstance(value, Pace):
        value = value.rate
    text = str(value) or "none"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
