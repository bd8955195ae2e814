"""Leases under way, as operators see them."""

import sqlite3
from collections.abc import Sequence

from trotline.adapters.sqlite.schema import LEASED
from trotline.model.job import InFlight
from trotline.rules import frontier_views


def in_flight(db: sqlite3.Connection, job: int, limit: int, redact: Sequence[str]) -> list[InFlight]:
    """The longest first, after those whose time is unknown."""
    rows = db.execute(
        "SELECT t.body, p.name, t.worker, t.attempt, t.leased_at, t.starts_at, t.member"
        " FROM task t JOIN lane l ON l.id = t.lane JOIN pace p ON p.id = l.pace"
        f" WHERE t.state = {LEASED} AND t.job = ?"
        " ORDER BY t.leased_at, t.id LIMIT ?",
        (job, max(0, limit)),
    )
    return frontier_views.in_flight(rows, redact)
