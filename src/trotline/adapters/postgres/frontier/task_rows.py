"""Tasks as rows, and the statements that add them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from trotline.model.time import Moment


class TaskRow(NamedTuple):
    """A task that is not leased."""

    id: int
    lane: int
    level: int
    attempt: int
    deaths: int
    kills: int
    fp: int
    chain: str
    body: bytes

    @property
    def untried(self) -> bool:
        """It was never leased, and belongs to no chain, as most tasks."""
        return not (self.attempt or self.deaths or self.kills or self.chain)


class Held(NamedTuple):
    """A leased task."""

    token: int
    task: int
    lane: int
    level: int
    attempt: int
    deaths: int
    kills: int
    member: int | None
    chain: str
    fp: int
    body: bytes

    def row(self, *, level: int | None = None, attempts: int = 0, deaths: int = 0, kills: int = 0) -> TaskRow:
        """The task after its lease; the numbers are added."""
        return TaskRow(
            self.task,
            self.lane,
            self.level if level is None else level,
            self.attempt + attempts,
            self.deaths + deaths,
            self.kills + kills,
            self.fp,
            self.chain,
            self.body,
        )


HELD = "token, task, lane, level, attempt, deaths, kills, member, chain, fp, body"
"""The columns of a Held."""
TASK = "id, lane, level, attempt, deaths, kills, fp, chain, body"
"""The columns of a TaskRow."""
_TYPES = ("bigint[]", "bigint[]", "integer[]", "integer[]", "integer[]", "integer[]", "bigint[]", "text[]", "bytea[]")


class Grave(NamedTuple):
    row: TaskRow
    why: str
    detail: str
    died_at: Moment


class Late(NamedTuple):
    row: TaskRow
    due: Moment


def add_waiting(job: int, rows: Sequence[TaskRow]) -> tuple[str, list[Any]]:
    if all(row.untried for row in rows):
        # Each array of a statement costs the server as much as a column of its table.
        columns = zip(*((row.id, row.lane, row.level, row.fp, row.body) for row in rows), strict=True)
        return (
            f"INSERT INTO waiting_{job} (attempt, deaths, kills, chain, id, lane, level, fp, body)"
            " SELECT 0, 0, 0, '', * FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bytea[])",
            [list(column) for column in columns],
        )
    return _add(f"waiting_{job}", TASK, rows, (), ())


def add_late(job: int, rows: Sequence[Late], table: str = "late") -> tuple[str, list[Any]]:
    """`table`: late, or chained."""
    return _add(
        f"{table}_{job}", f"{TASK}, due", [late.row for late in rows], ("float8[]",), ([late.due for late in rows],)
    )


def add_graves(job: int, rows: Sequence[Grave]) -> tuple[str, list[Any]]:
    more = ([grave.why for grave in rows], [grave.detail for grave in rows], [grave.died_at for grave in rows])
    return _add(
        f"grave_{job}",
        f"{TASK}, why, detail, died_at",
        [grave.row for grave in rows],
        ("text[]", "text[]", "float8[]"),
        more,
    )


def _add(
    table: str, columns: str, rows: Sequence[TaskRow], types: Sequence[str], more: Sequence[Any]
) -> tuple[str, list[Any]]:
    """A statement with %s for its parameters, and their values."""
    marks = ", ".join(f"%s::{kind}" for kind in (*_TYPES, *types))
    return f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({marks})", [
        *(list(column) for column in zip(*rows, strict=True)),
        *more,
    ]
