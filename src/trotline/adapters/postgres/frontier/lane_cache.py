"""What a process knows of the lanes of its job: what never changes about them. To lock known lanes is one walk through
the index of paces, instead of a look at each lane and then at its pace."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trotline.adapters.postgres.frontier.lane_row import Columns
from trotline.adapters.postgres.pool import Connection

_MOST = 100_000
_ODD = """
ARRAY(SELECT ARRAY[l.id, l.paused, l.waits] FROM lane l
    WHERE l.id = ANY($2::bigint[]) AND (l.paused <> 0 OR l.waits <> 0))
"""
"""What may change about a lane; read once for all rows, and empty as a rule."""
_LOCK = f"""
SELECT p.id, p.running, p.lane, p.ctid, {_ODD}, (SELECT extract(epoch FROM pg_postmaster_start_time())::float8)
FROM pace p WHERE p.id = ANY($1::bigint[]) ORDER BY p.id FOR NO KEY UPDATE OF p
"""
"""As `lane_row.LOCK`. The array of paces is sorted: their index is walked through once."""


class _Known(NamedTuple):
    name: str
    pool: str
    member: int
    pace: int


class KnownLanes:
    def __init__(self) -> None:
        self._server = 0.0
        """When the server was started that they are of. One that took over from it, also behind a pooler, may have lost
        the last lanes, and given their ids to others."""
        self._ids: dict[str, int] = {}
        self._lanes: dict[int, _Known] = {}

    def ids(self, names: Iterable[str]) -> dict[str, int]:
        """Of those that are known."""
        known = self._ids
        return {name: known[name] for name in names if name in known}

    def add_ids(self, ids: Mapping[str, int]) -> None:
        if len(self._ids) + len(ids) > _MOST:
            self._ids.clear()
        self._ids.update(ids)

    def add(self, rows: Iterable[Columns]) -> None:
        """Lanes as they were read; not those that this transaction made, which may be rolled back."""
        if len(self._lanes) > _MOST:
            self._lanes.clear()
        for row in rows:
            if row[0] not in self._lanes:
                self._lanes[row[0]] = _Known(row[1], row[2], row[3], row[6])

    async def lock(self, db: Connection, ids: Sequence[int]) -> list[Columns] | None:
        """Lock these lanes. None: something about them is not known; what was locked stays so."""
        found = [self._lanes.get(lane_id) for lane_id in ids]
        lanes = {lane_id: lane for lane_id, lane in zip(ids, found, strict=True) if lane is not None}
        if len(lanes) < len(ids):
            return None
        wanted = sorted({lane.pace for lane in lanes.values()})
        rows = await db.fetch(_LOCK, wanted, sorted(lanes))
        if len(rows) < len(wanted) or not self._is_of(rows[0][5]):
            return None
        paces: dict[int, Any] = {row[0]: row for row in rows}
        odd = {lane_id: (paused, waits) for lane_id, paused, waits in rows[0][4]}
        return [
            (lane_id, lane.name, lane.pool, lane.member, *odd.get(lane_id, (0, 0)), *paces[lane.pace][:4])
            for lane_id, lane in lanes.items()
        ]

    def _is_of(self, server: float) -> bool:
        """Are they of the server that was started then? If not they are forgotten: so are the first ones, whose server
        is not known yet."""
        if server == self._server:
            return True
        self._server = server
        self._ids.clear()
        self._lanes.clear()
        return False
