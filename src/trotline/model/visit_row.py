"""What the ledger keeps of one visit."""

import msgspec

from trotline.model.time import Moment, Seconds

REFUSED = "refused"
"""The outcome of a link that was never visited: a limit or a trap left it out of the page in `parent`."""


class VisitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one task: the ledger's line, written in bulk with the records of its batch.

    (job, token) names it: the same line twice is one line.
    """

    job: str
    token: int
    site: str
    url: str
    """As it was asked for, with what must not be shown taken out."""
    fingerprint: int
    route: str
    lane: str
    worker: str
    leased_at: Moment
    """The frontier's time."""
    attempt: int = 0
    depth: int = 0
    parent: str = ""
    """The page that led here."""
    found_at: Moment = 0.0
    """When the task was made."""
    proxy: str = ""
    status: int = 0
    """0: no answer."""
    took: Seconds = 0.0
    size: int = 0
    """Bytes of the body."""
    verdict: str = ""
    outcome: str = ""
    """"done", "retry", "snooze" or "bury"; "refused" is no visit but a link that a limit or a trap left out."""
    why: str = ""
    records: int = 0
    children: int = 0
    """Links that it offered to the frontier; those that were known are not among them."""
    moved_to: str = ""
