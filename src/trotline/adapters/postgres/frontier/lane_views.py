"""A job's lanes as operators see them."""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier.job_control import STATES
from trotline.adapters.postgres.frontier.lane_row import decode_pace
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import LaneRules, LaneView
from trotline.model.time import Moment
from trotline.rules import frontier_views, route_queues

PAGE = 1_000
"""Lanes per statement: the event loop decodes them in one go."""

_FOREMOST = """
SELECT c.name, c.waiting, c.leased, c.paused, p.lane FROM (
    SELECT l.name, l.later + coalesce(t.waiting, 0) AS waiting, coalesce(h.leased, 0) AS leased, l.paused, l.pace,
        coalesce(t.ready_at > $2 AND t.ready_at < 'infinity', false) AS rests
    FROM lane l LEFT JOIN turn t ON t.lane = l.id
    LEFT JOIN (SELECT lane, count(*) AS leased FROM held WHERE job = $1 GROUP BY lane) h ON h.lane = l.id
    WHERE l.job = $1 AND (l.later > 0 OR t.waiting > 0 OR h.leased > 0 OR l.paused <> 0)
    ORDER BY l.paused > 0 DESC, rests DESC, waiting DESC, l.name LIMIT $3
) c JOIN pace p ON p.id = c.pace ORDER BY c.paused > 0 DESC, c.rests DESC, c.waiting DESC, c.name
"""
_NAMED = """
SELECT l.name, l.later + coalesce(t.waiting, 0), h.leased, l.paused, p.lane
FROM lane l JOIN pace p ON p.id = l.pace LEFT JOIN turn t ON t.lane = l.id
CROSS JOIN LATERAL (SELECT count(*) AS leased FROM held WHERE job = $1 AND lane = l.id) h
WHERE l.job = $1 AND l.name = ANY($2::text[]) AND (l.later > 0 OR t.waiting > 0 OR h.leased > 0 OR l.paused <> 0)
ORDER BY l.name
"""
_PAGE = """
SELECT l.id, l.name, l.later + coalesce(t.waiting, 0), l.paused, p.lane
FROM lane l JOIN pace p ON p.id = l.pace LEFT JOIN turn t ON t.lane = l.id
WHERE l.job = $1 AND l.name > $2 ORDER BY l.name LIMIT $3
"""
_BY_ROUTE = """
SELECT $2 || reverse(split_part(reverse(l.name), $2, 1)), sum(l.later + coalesce(t.waiting, 0))::bigint
FROM lane l LEFT JOIN turn t ON t.lane = l.id WHERE l.job = $1 AND (l.later > 0 OR t.waiting > 0)
GROUP BY 1
"""


class LaneViews:
    def __init__(self, job: int, rules: LaneRules) -> None:
        self._job = job
        self._heeds = rules.robots
        self._queues = rules.queues

    async def foremost(self, db: Connection, limit: int, now: Moment) -> list[LaneView]:
        rows = await db.fetch(_FOREMOST, self._job, now, limit * (1 + len(self._queues)))
        return self._views(rows, now)[:limit]

    async def named(self, db: Connection, now: Moment, names: Sequence[str]) -> list[LaneView]:
        wanted = [queue for name in names for queue in route_queues.queue_names(self._queues, name)]
        return self._views(await db.fetch(_NAMED, self._job, wanted), now)

    async def routes(self, db: Connection) -> dict[str, int]:
        """Route -> waiting tasks, of a job with a queue per route."""
        rows = await db.fetch(_BY_ROUTE, self._job, route_queues.MARK)
        return route_queues.by_route(self._queues, rows)

    async def leased(self, db: Connection) -> dict[int, int]:
        """Lane -> visits under way."""
        return dict(await db.fetch("SELECT lane, count(*) FROM held WHERE job = $1 GROUP BY lane", self._job))

    async def page(self, db: Connection, now: Moment, after: str, leased: dict[int, int]) -> tuple[list[LaneView], str]:
        """The next PAGE lanes by name, without idle ones; and the last name, empty at the end."""
        rows = await db.fetch(_PAGE, self._job, after, PAGE)
        full = len(rows) == PAGE
        if full and self._queues:
            rows = rows[: route_queues.whole_lanes(self._queues, [row[1] for row in rows])]
        shown = [
            (name, waiting, leased.get(number, 0), wanted, packed)
            for number, name, waiting, wanted, packed in rows
            if waiting or wanted or number in leased
        ]
        return self._views(shown, now), rows[-1][1] if full else ""

    def _views(self, rows: Sequence[route_queues.LaneTotals], now: Moment) -> list[LaneView]:
        return [
            frontier_views.lane_view(name, waiting, leased, STATES[wanted], decode_pace(packed), now, heeds=self._heeds)
            for name, waiting, leased, wanted, packed in route_queues.merged(self._queues, rows)
        ]
