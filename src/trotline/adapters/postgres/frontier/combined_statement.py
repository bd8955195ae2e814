"""Several changes in one statement: each part is a data-modifying WITH query. All of them see the tables as they were
before the statement."""

from collections.abc import Sequence
from typing import Any

Part = tuple[str, list[Any]]
"""A statement with %s for its parameters, and their values."""


def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """For unnest; there is at least one row."""
    return [list(column) for column in zip(*rows, strict=True)]


def composed(parts: Sequence[Part], last: str = "SELECT 1", values: Sequence[Any] = ()) -> list[Any]:
    """One statement of these parts with numbered parameters, and their values."""
    text = ", ".join(f"p{number} AS ({sql})" for number, (sql, _) in enumerate(parts))
    pieces = f"WITH {text} {last}".split("%s")
    numbered = pieces[0] + "".join(f"${number}{piece}" for number, piece in enumerate(pieces[1:], 1))
    return [numbered, *(value for _, given in parts for value in given), *values]
