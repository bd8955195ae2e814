"""A job's lanes as operators see them."""

import sqlite3
from collections.abc import Sequence

from trotline.adapters.sqlite.job_control import STATES
from trotline.adapters.sqlite.lane_row import decode_pace
from trotline.adapters.sqlite.schema import LEASED, RESTING
from trotline.model.job import LaneRules, LaneView
from trotline.model.time import Moment
from trotline.rules import frontier_views, route_queues

PAGE = 1_000
"""Lanes per transaction: the event loop, and other processes' checkpoints, wait for it."""


class LaneViews:
    def __init__(self, job: int, rules: LaneRules) -> None:
        self._job = job
        self._heeds = rules.robots
        self._queues = rules.queues

    def foremost(self, db: sqlite3.Connection, limit: int, now: Moment) -> list[LaneView]:
        rows = db.execute(
            "SELECT l.name, waiting, coalesce(leased, 0), paused, p.lane FROM lane l JOIN pace p ON p.id = l.pace"
            f" LEFT JOIN (SELECT lane, count(*) AS leased FROM task WHERE job = ? AND state = {LEASED} GROUP BY lane) t"
            " ON t.lane = l.id WHERE job = ? AND (waiting > 0 OR leased > 0 OR paused)"
            f" ORDER BY paused > 0 DESC, state = {RESTING} DESC, waiting DESC LIMIT ?",
            (self._job, self._job, limit * (1 + len(self._queues))),
        ).fetchall()
        return self._views(rows, now)[:limit]

    def routes(self, db: sqlite3.Connection) -> dict[str, int]:
        """Route -> waiting tasks, of a job with a queue per route."""
        rows = db.execute("SELECT name, waiting FROM lane WHERE job = ? AND waiting > 0", (self._job,))
        return route_queues.by_route(self._queues, rows)

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
        full = len(rows) == PAGE
        if full and self._queues:
            rows = rows[: route_queues.whole_lanes(self._queues, [row[1] for row in rows])]
        shown = [
            (name, waiting, leased.get(number, 0), wanted, packed)
            for number, name, waiting, wanted, packed in rows
            if waiting or wanted or number in leased
        ]
        return self._views(shown, now), rows[-1][1] if full else ""

    def named(self, db: sqlite3.Connection, names: Sequence[str], now: Moment) -> list[LaneView]:
        query = (
            "SELECT l.name, waiting,"
            f" (SELECT count(*) FROM task WHERE lane = l.id AND state = {LEASED}) AS leased, paused, p.lane"
            " FROM lane l JOIN pace p ON p.id = l.pace"
            " WHERE job = ? AND l.name = ? AND (waiting > 0 OR leased > 0 OR paused)"
        )
        wanted = [queue for name in dict.fromkeys(names) for queue in route_queues.queue_names(self._queues, name)]
        found = [db.execute(query, (self._job, queue)).fetchone() for queue in wanted]
        return self._views([row for row in found if row is not None], now)

    def _views(self, rows: Sequence[route_queues.LaneTotals], now: Moment) -> list[LaneView]:
        return [
            frontier_views.lane_view(name, waiting, leased, STATES[wanted], decode_pace(packed), now, heeds=self._heeds)
            for name, waiting, leased, wanted, packed in route_queues.merged(self._queues, rows)
        ]
