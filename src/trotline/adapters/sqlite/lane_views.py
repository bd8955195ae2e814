"""A job's lanes as operators see them."""

import sqlite3
from collections.abc import Sequence

from trotline.adapters.sqlite.job_control import STATES
from trotline.adapters.sqlite.lane_row import decode_pace
from trotline.adapters.sqlite.schema import LEASED, RESTING
from trotline.model.job import LaneView
from trotline.model.time import Moment
from trotline.rules import frontier_views

PAGE = 1_000
"""Lanes per transaction: the event loop, and other processes' checkpoints, wait for it."""

_Row = tuple[str, int, int, int, bytes]
"""name, waiting, leased, state, pace"""


class LaneViews:
    def __init__(self, job: int, *, heeds: bool) -> None:
        """`heeds`: the job obeys robots.txt."""
        self._job = job
        self._heeds = heeds

    def foremost(self, db: sqlite3.Connection, limit: int, now: Moment) -> list[LaneView]:
        rows = db.execute(
            "SELECT l.name, waiting, coalesce(leased, 0), paused, p.lane FROM lane l JOIN pace p ON p.id = l.pace"
            f" LEFT JOIN (SELECT lane, count(*) AS leased FROM task WHERE job = ? AND state = {LEASED} GROUP BY lane) t"
            " ON t.lane = l.id WHERE job = ? AND (waiting > 0 OR leased > 0 OR paused)"
            f" ORDER BY paused > 0 DESC, state = {RESTING} DESC, waiting DESC LIMIT ?",
            (self._job, self._job, limit),
        ).fetchall()
        return [self._view(row, now) for row in rows]

    def leased(self, db: sqlite3.Connection) -> dict[int, int]:
        """Lane -> visits under way."""
        query = f"SELECT lane, count(*) FROM task WHERE state = {LEASED} AND job = ? GROUP BY lane"
        return dict(db.execute(query, (self._job,)))

    def page(
        self, db: sqlite3.Connection, after: str, leased: dict[int, int], now: Moment
    ) -> tuple[list[LaneView], str]:
        """The next PAGE lanes by name, without idle ones; and the last name, empty at the end."""
        rows = db.execute(
            "SELECT l.id, l.name, waiting, paused, p.lane FROM lane l JOIN pace p ON p.id = l.pace"
            " WHERE job = ? AND l.name > ? ORDER BY l.name LIMIT ?",
            (self._job, after, PAGE),
        ).fetchall()
        views = [
            self._view((name, waiting, leased.get(number, 0), wanted, packed), now)
            for number, name, waiting, wanted, packed in rows
            if waiting or wanted or number in leased
        ]
        return views, rows[-1][1] if len(rows) == PAGE else ""

    def named(self, db: sqlite3.Connection, names: Sequence[str], now: Moment) -> list[LaneView]:
        query = (
            "SELECT l.name, waiting,"
            f" (SELECT count(*) FROM task WHERE lane = l.id AND state = {LEASED}) AS leased, paused, p.lane"
            " FROM lane l JOIN pace p ON p.id = l.pace"
            " WHERE job = ? AND l.name = ? AND (waiting > 0 OR leased > 0 OR paused)"
        )
        found = [db.execute(query, (self._job, name)).fetchone() for name in dict.fromkeys(names)]
        return [self._view(row, now) for row in found if row is not None]

    def _view(self, row: _Row, now: Moment) -> LaneView:
        name, waiting, leased, wanted, packed = row
        return frontier_views.lane_view(
            name, waiting, leased, STATES[wanted], decode_pace(packed), now, heeds=self._heeds
        )
