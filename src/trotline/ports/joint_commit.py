"""Rows and settles of a batch in one transaction, where frontier and sink are the same database."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from trotline.model.lease import Settled, Settlement
from trotline.model.record import Record
from trotline.model.visit_row import VisitRow


class Page(NamedTuple):
    """The end of a lease, and what is stored with it."""

    settlement: Settlement
    records: Sequence[Record]
    visits: Sequence[VisitRow]


class JointCommit(Protocol):
    """J1 the rows of a page and its settle are stored together or not at all, whatever dies in between
    J2 of a page whose lease is not held any more nothing is stored
    J3 one page that is stale, or whose rows are refused (SinkRejects), does not affect the others
    """

    async def settle(self, worker: str, pages: Sequence[Page]) -> list[Settled]:
        """As `Frontier.settle`, with the rows. `SinkRejects`: nothing was stored; the numbers are those of the records
        of all pages, in order."""
        ...
