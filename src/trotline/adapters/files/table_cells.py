"""Columns and cells of tables: names, types, and text that is safe in a spreadsheet."""

import re
from collections.abc import Iterable
from typing import Any

from trotline.model.record_row import REPLACEMENT, json_text

MOST_COLUMNS = 1000
"""Further fields share the last column: field names come from pages, which may be hostile."""
OVERFLOW = "_more"

# Formulas, also behind spaces, quotes and invisible characters.
_FORMULA = re.compile("[\\s\\x00-\\x20'\"`\u200b\u2060\ufeff]*[=+\\-@＝＋－＠]|[\\t\\r\\n]")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")


def formula_safe(text: str) -> str:
    """The text with a leading quote if a spreadsheet would run it. Numbers written as text stay as they are."""
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return "'" + text
    return text


def cell(value: Any, raw: bool = False) -> str | int | float:
    """The value as a CSV cell: None is empty, nested values are JSON text, numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    # Many readers stop at a NUL.
    text = (value if isinstance(value, str) else json_text(value)).replace("\0", REPLACEMENT)
    return text if raw else formula_safe(text)


class Columns:
    """The fields of all rows in order of appearance, and the kinds of values of each."""

    def __init__(self) -> None:
        self.kinds: dict[str, set[str]] = {}
        self._full = False

    def learn(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if name in self.kinds:
                self.kinds[name].add(_kind(value))
            elif len(self.kinds) < MOST_COLUMNS - 1:
                self.kinds[name] = {_kind(value)}
            else:
                self._full = True
                self.kinds.setdefault(OVERFLOW, set()).add("nested")

    @classmethod
    def of(cls, all_fields: Iterable[dict[str, Any]]) -> "Columns":
        columns = cls()
        for fields in all_fields:
            columns.learn(fields)
        return columns

    def values(self, fields: dict[str, Any]) -> list[Any]:
        """The row's values, one per column."""
        if self._full:
            fields = self._folded(fields)
        return [fields.get(name) for name in self.kinds]

    def _folded(self, fields: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in fields.items() if name in self.kinds and name != OVERFLOW}
        more = {name: value for name, value in fields.items() if name not in kept}
        return {**kept, OVERFLOW: more or None}

    def type_of(self, name: str) -> str:
        """bool, int, float or text: the narrowest that holds every value exactly."""
        kinds = self.kinds[name] - {"nothing"}
        if kinds in ({"bool"}, {"int"}, {"float"}):
            return next(iter(kinds))
        # Integers beyond 2**53 are not exact as floats.
        if kinds in ({"small", "int"}, {"small"}):
            return "int"
        if kinds == {"small", "float"}:
            return "float"
        return "text"


def typed(value: Any, kind: str) -> Any:
    """The value for a column of that type."""
    if value is None or kind != "text":
        return value
    return value if isinstance(value, str) else json_text(value)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "small" if abs(value) <= 2**53 else "int" if -(2**63) <= value < 2**63 else "huge"
    if isinstance(value, float):
        return "float"
    return "text" if isinstance(value, str) else "nested"
