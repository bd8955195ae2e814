"""The head of a locked lane's queue, read in portions."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.lane_row import LaneRow

_COLUMNS = "ctid, level, id, attempt, deaths, kills, fp, chain, body"
_READ = f"""
SELECT u.lane, {", ".join(f"w.{column}" for column in _COLUMNS.split(", "))}
FROM unnest($1::bigint[], $2::integer[]) u (lane, most)
JOIN turn t ON t.lane = u.lane
CROSS JOIN LATERAL (
    SELECT {_COLUMNS} FROM waiting_{{job}} WHERE lane = u.lane AND (level, id) > (t.level, t.position)
    ORDER BY level, id LIMIT u.most
) w
"""
"""The position is read again here: it may have changed before the lane was locked."""
_FIRST_ATTEMPTS = (
    f"SELECT {_COLUMNS} FROM waiting_{{job}} WHERE lane = $1 AND attempt <= deaths ORDER BY level, id LIMIT $2"
)


class Waiting(NamedTuple):
    """A waiting task; `place` is its ctid."""

    place: tuple[int, int]
    level: int
    id: int
    attempt: int
    deaths: int
    kills: int
    fp: int
    chain: str
    body: bytes

    @property
    def is_retry(self) -> bool:
        """A retry after a worker's death needs no credit."""
        return self.attempt > self.deaths


class LaneQueue:
    def __init__(self, lane: LaneRow) -> None:
        self.lane = lane
        self.rows: list[Waiting] = []
        """The next tasks, in their order."""
        self.more = True
        """Are there further ones?"""
        self.open = True
        """False: it gets no more in this call."""
        self._taken: set[int] = set()

    def take(self, rows: Collection[Waiting]) -> None:
        """These are leased: they are deleted at the end of the transaction."""
        ids = {row.id for row in rows}
        self._taken |= ids
        self.rows = [row for row in self.rows if row.id not in ids]

    def clear(self) -> None:
        """Nothing waits any more."""
        self.rows, self.more, self.open = [], False, False

    @property
    def taken(self) -> int:
        return len(self._taken)

    def read(self, rows: Sequence[Waiting], limit: int) -> None:
        self.more = len(rows) == limit
        self.rows = [row for row in rows if row.id not in self._taken]

    def without_taken(self, rows: Sequence[Waiting]) -> list[Waiting]:
        return [row for row in rows if row.id not in self._taken]


async def fill(tx: JobTransaction, queues: Sequence[LaneQueue], wanted: int) -> None:
    """Read so many tasks of each."""
    hungry = [queue for queue in queues if queue.more]
    if not hungry:
        return
    found: dict[int, list[Waiting]] = {queue.lane.id: [] for queue in hungry}
    limits = [wanted + queue.taken for queue in hungry]
    for row in await tx.db.fetch(_READ.format(job=tx.job), list(found), limits):
        found[row[0]].append(Waiting(*row[1:]))
    for queue, limit in zip(hungry, limits, strict=True):
        queue.read(found[queue.lane.id], limit)


async def first_attempts(tx: JobTransaction, queue: LaneQueue, limit: int) -> list[Waiting]:
    """Tasks that need no retry credit, of any level."""
    text = _FIRST_ATTEMPTS.format(job=tx.job)
    rows = await tx.db.fetch(text, queue.lane.id, limit + queue.taken)
    return queue.without_taken([Waiting(*row) for row in rows])[:limit]
