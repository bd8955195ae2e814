"""Leases under way, as operators see them."""

from collections.abc import Sequence

from trotline.adapters.postgres.pool import Connection
from trotline.model.job import InFlight
from trotline.rules import frontier_views


async def in_flight(db: Connection, job: int, limit: int, redact: Sequence[str]) -> list[InFlight]:
    """The longest first."""
    rows = await db.fetch(
        "SELECT h.body, p.name, h.worker, h.attempt, h.leased_at, h.starts_at, h.member"
        " FROM held h JOIN lane l ON l.id = h.lane JOIN pace p ON p.id = l.pace"
        " WHERE h.job = $1 ORDER BY h.leased_at, h.token LIMIT $2",
        job,
        max(0, limit),
    )
    return frontier_views.in_flight(rows, redact)
