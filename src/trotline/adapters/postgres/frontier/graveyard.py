"""The graveyard of a job: buried tasks and rejected records."""

from collections import Counter
from collections.abc import Sequence

from trotline.adapters.postgres.pool import Connection
from trotline.model.job import Grave
from trotline.rules import grave_redaction
from trotline.rules.chain_failures import shown_counts
from trotline.rules.counter_limits import NOT_KEPT, bad_record, bounded

_BAD = bad_record("")


class Graveyard:
    def __init__(self, job: int, redact: Sequence[str]) -> None:
        self._job = job
        self._redact = redact

    async def page(self, db: Connection, why: str, limit: int, after: str) -> list[Grave]:
        """Tasks by the time of their burial, then records."""
        tasks = await self._tasks(db, why, limit, after) if not after.startswith("r") else []
        if len(tasks) >= limit:
            return tasks
        return tasks + await self._records(db, why, limit - len(tasks), after)

    async def reasons(self, db: Connection) -> dict[str, int]:
        reasons = dict(await db.fetch(f"SELECT why, count(*) FROM grave_{self._job} GROUP BY why ORDER BY 2 DESC, 1"))
        rows = await db.fetch("SELECT why, count(*) FROM reject WHERE job = $1 GROUP BY why", self._job)
        rejects = Counter({bad_record(why): count for why, count in rows})
        lost = await db.fetchval("SELECT sum(n)::bigint FROM tally WHERE job = $1 AND name = $2", self._job, NOT_KEPT)
        if lost:
            rejects[bad_record("others")] += lost
        return {**shown_counts(bounded(reasons), self._redact), **bounded(rejects)}

    async def _tasks(self, db: Connection, why: str, limit: int, after: str) -> list[Grave]:
        since: tuple[float, int] = (0.0, 0)
        if after:
            found = await db.fetchrow(
                f"SELECT died_at, id FROM grave_{self._job} WHERE fp = $1 ORDER BY 1, 2 LIMIT 1", fingerprint_of(after)
            )
            since = found or since
        rows = await db.fetch(
            f"SELECT fp, body, why, detail, attempt, died_at FROM grave_{self._job}"
            " WHERE starts_with(why, $1) AND (died_at, id) > ($2, $3) ORDER BY died_at, id LIMIT $4",
            why,
            *since,
            limit,
        )
        return [self._shown(grave_redaction.task_grave(*row)) for row in rows]

    async def _records(self, db: Connection, why: str, limit: int, after: str) -> list[Grave]:
        since = int(after[1:19]) if after.startswith("r") and after[1:].isdecimal() else 0
        rows = await db.fetch(
            "SELECT id, url, route, why, kind, data, seen_at FROM reject"
            " WHERE job = $1 AND id > $2 AND starts_with($3 || why, $4) ORDER BY id LIMIT $5",
            self._job,
            since,
            _BAD,
            why,
            limit,
        )
        return [
            self._shown(
                Grave(id=f"r{number}", url=url, route=route, why=_BAD + why, detail=kind, died_at=at, record=data)
            )
            for number, url, route, why, kind, data, at in rows
        ]

    def _shown(self, grave: Grave) -> Grave:
        return grave_redaction.shown(grave, self._redact)


def fingerprint_of(name: str) -> int:
    """The fingerprint of a task's id; 0, which no task has, if `name` is not an id."""
    try:
        number = int(name, 16)
    except ValueError:
        return 0
    if not 0 <= number < 1 << 64:
        return 0
    return number - (1 << 64) if number >= 1 << 63 else number
