"""Notes of a job (N1 to N4 of ports/console.py)."""

from collections.abc import Sequence

from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.pool import Connection
from trotline.model.note import Note


async def read(db: Connection, job: int, names: Sequence[str]) -> list[Note | None]:
    rows = await db.fetch(
        "SELECT name, data, version FROM note WHERE job = $1 AND name = ANY($2)", job, [_key(name) for name in names]
    )
    found = {name: Note(data, version) for name, data, version in rows}
    return [found.get(_key(name)) for name in names]


async def write(db: Connection, job: int, name: str, data: bytes, version: int) -> bool:
    # The lock of the job's row: the job is not deleted meanwhile, and its notes with it.
    if await db.fetchval("SELECT 1 FROM job WHERE id = $1 FOR KEY SHARE", job) is None:
        raise gone()
    if version:
        written = await db.fetchval(
            "UPDATE note SET data = $4, version = version + 1 WHERE job = $1 AND name = $2 AND version = $3"
            " RETURNING 1",
            job,
            _key(name),
            version,
            data,
        )
    else:
        written = await db.fetchval(
            "INSERT INTO note (job, name, data, version) VALUES ($1, $2, $3, 1) ON CONFLICT DO NOTHING RETURNING 1",
            job,
            _key(name),
            data,
        )
    return written is not None


def _key(name: str) -> bytes:
    """As bytes: PostgreSQL's text cannot hold every character."""
    return name.encode("utf-8", "surrogatepass")
