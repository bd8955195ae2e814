"""Leases under way, as operators see them."""

import sqlite3
from collections.abc import Sequence

from trotline.adapters.sqlite.schema import LEASED
from trotline.model import task_json
from trotline.model.job import InFlight
from trotline.rules import redaction


def in_flight(db: sqlite3.Connection, job: int, limit: int, redact: Sequence[str]) -> list[InFlight]:
    """The longest first, after those whose time is unknown."""
    rows = db.execute(
        "SELECT t.body, l.name, t.worker, t.attempt, t.leased_at, t.starts_at, t.member"
        f" FROM task t JOIN lane l ON l.id = t.lane WHERE t.state = {LEASED} AND t.job = ?"
        " ORDER BY t.leased_at, t.id LIMIT ?",
        (job, max(0, limit)),
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
