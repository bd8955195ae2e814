"""A job's lanes as operators see them."""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier.job_control import STATES
from trotline.adapters.postgres.frontier.lane_row import decode_pace
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import LaneView
from trotline.model.time import Moment
from trotline.rules import frontier_views

PAGE = 1_000
"""Lanes per statement: the event loop decodes them in one go."""

_Row = tuple[str, int, int, int, bytes]
"""name, waiting, leased, state, pace"""

_FOREMOST = """
SELECT c.name, c.waiting, c.leased, c.paused, p.lane FROM (
    SELECT l.name, l.waiting, coalesce(h.leased, 0) AS leased, l.paused, l.pace,
        coalesce(t.ready_at > $2 AND t.ready_at < 'infinity', false) AS rests
    FROM lane l LEFT JOIN turn t ON t.lane = l.id
    LEFT JOIN (SELECT lane, count(*) AS leased FROM held WHERE job = $1 GROUP BY lane) h ON h.lane = l.id
    WHERE l.job = $1 AND (l.waiting > 0 OR h.leased > 0 OR l.paused <> 0)
    ORDER BY l.paused > 0 DESC, rests DESC, l.waiting DESC, l.name LIMIT $3
) c JOIN pace p ON p.id = c.pace ORDER BY c.paused > 0 DESC, c.rests DESC, c.waiting DESC, c.name
"""
_NAMED = """
SELECT l.name, l.waiting, h.leased, l.paused, p.lane FROM lane l JOIN pace p ON p.id = l.pace
CROSS JOIN LATERAL (SELECT count(*) AS leased FROM held WHERE job = $1 AND lane = l.id) h
WHERE l.job = $1 AND l.name = ANY($2::text[]) AND (l.waiting > 0 OR h.leased > 0 OR l.paused <> 0) ORDER BY l.name
"""
_PAGE = """
SELECT l.id, l.name, l.waiting, l.paused, p.lane FROM lane l JOIN pace p ON p.id = l.pace
WHERE l.job = $1 AND l.name > $2 ORDER BY l.name LIMIT $3
"""


class LaneViews:
    def __init__(self, job: int, *, heeds: bool) -> None:
        """`heeds`: the job obeys robots.txt."""
        self._job = job
        self._heeds = heeds

    async def foremost(self, db: Connection, limit: int, now: Moment) -> list[LaneView]:
        return [self._view(tuple(row), now) for row in await db.fetch(_FOREMOST, self._job, now, limit)]

    async def named(self, db: Connection, now: Moment, names: Sequence[str]) -> list[LaneView]:
        return [self._view(tuple(row), now) for row in await db.fetch(_NAMED, self._job, list(names))]

    async def leased(self, db: Connection) -> dict[int, int]:
        """Lane -> visits under way."""
        return dict(await db.fetch("SELECT lane, count(*) FROM held WHERE job = $1 GROUP BY lane", self._job))

    async def page(self, db: Connection, now: Moment, after: str, leased: dict[int, int]) -> tuple[list[LaneView], str]:
        """The next PAGE lanes by name, without idle ones; and the last name, empty at the end."""
        rows = await db.fetch(_PAGE, self._job, after, PAGE)
        views = [
            self._view((name, waiting, leased.get(number, 0), wanted, packed), now)
            for number, name, waiting, wanted, packed in rows
            if waiting or wanted or number in leased
        ]
        return views, rows[-1][1] if len(rows) == PAGE else ""

    def _view(self, row: _Row, now: Moment) -> LaneView:
        name, waiting, leased, wanted, packed = row
        return frontier_views.lane_view(
            name, waiting, leased, STATES[wanted], decode_pace(packed), now, heeds=self._heeds
        )
