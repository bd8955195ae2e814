"""A visit in the ledger."""

import msgspec

from trotline.model.time import Moment, Seconds

REFUSED = "refused"
"""The outcome of a link that was not visited: a limit or a trap rule dropped it from the page in `parent`."""


class VisitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one task, written with the records of its batch. (job, token) is its identity.

    A new field needs a default: existing files and tables get it for the visits that they have.
    """

    job: str
    token: int
    site: str
    url: str
    """Redacted."""
    fingerprint: int
    route: str
    lane: str
    worker: str
    leased_at: Moment
    """The frontier's time."""
    attempt: int = 0
    depth: int = 0
    parent: str = ""
    """The page that links here."""
    found_at: Moment = 0.0
    """When the task was created."""
    proxy: str = ""
    status: int = 0
    """0: no response."""
    took: Seconds = 0.0
    size: int = 0
    """Bytes of the body."""
    verdict: str = ""
    outcome: str = ""
    """"done", "retry", "snooze" or "bury"; "refused" for a link that was dropped (REFUSED)."""
    why: str = ""
    records: int = 0
    children: int = 0
    """New tasks of the page, without duplicates."""
    moved_to: str = ""
    archive: str = ""
    """The id of its record in the archive, or why it has none; empty without an archive."""
