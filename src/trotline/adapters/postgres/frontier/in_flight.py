"""Leases under way, as operators see them."""

from collections.abc import Sequence

from trotline.adapters.postgres.pool import Connection
from trotline.model import task_json
from trotline.model.job import InFlight
from trotline.rules import redaction


async def in_flight(db: Connection, job: int, limit: int, redact: Sequence[str]) -> list[InFlight]:
    """The longest first."""
    rows = await db.fetch(
        "SELECT h.body, l.name, h.worker, h.attempt, h.leased_at, h.starts_at, h.member"
        " FROM held h JOIN lane l ON l.id = h.lane WHERE h.job = $1 ORDER BY h.leased_at, h.token LIMIT $2",
        job,
        max(0, limit),
    )
    found = []
    for body, lane, worker, attempt, leased_at, starts_at, member in rows:
        url, route = _page(body)
        found.append(
            InFlight(
                url=redaction.url(url, redact),
                lane=lane,
                worker=worker,
                route=route,
                attempt=attempt,
                leased_at=leased_at,
                starts_at=starts_at,
                member=member or 0,
            )
        )
    return found


def _page(body: bytes) -> tuple[str, str]:
    try:
        task = task_json.decode(body)
    except task_json.Undecodable:
        return "(undecodable)", ""
    return task.url, task.route
