"""Unknown keys and values of a recipe, answered with the valid ones and the nearest of them."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trotline.errors import SpiderRefused


def check(where: str, table: Any, known: Iterable[str], file: Path) -> None:
    """SpiderRefused if the table has another key. What is not a table is refused elsewhere, for its type."""
    keys = list(known)
    for key in table if isinstance(table, dict) else ():
        if key not in keys:
            raise SpiderRefused(f"{file}: {where} has no key {key!r}", hint=_hint(key, "Keys", keys))


def check_value(where: str, table: Any, key: str, known: Iterable[str], file: Path) -> None:
    """SpiderRefused if the key has another value."""
    values = sorted(known)
    if isinstance(table, dict) and key in table and table[key] not in values:
        given = table[key]
        shown = ["a comma" if value == "," else "a full stop" if value == "." else value for value in values]
        raise SpiderRefused(f"{file}: {where} is {given!r}", hint=_hint(str(given), "Values", shown))


def _hint(given: str, what: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1, cutoff=0.5)
    return (f"Did you mean {near[0]}? " if near else "") + f"{what}: {', '.join(known)}."
