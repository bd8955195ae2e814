"""Where records go."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from trotline.model.record import Record
from trotline.model.row_counts import Stored
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow


@runtime_checkable
class Sink(Protocol):
    """S1 the same batch twice leaves the same state
    S2 an older sighting does not overwrite a newer one
    S3 a batch is stored whole or not at all; when `write` returns, it is durable
    S4 an empty batch is harmless
    S5 one (site, kind, key) is one row, however many workers write at once
    S6 what is counted is what is there: rows, and how many of a job's records were new, changed or seen again
    """

    @property
    def keeps_visits(self) -> bool:
        """Does `write` store visits? Where it does not, workers make none."""
        ...

    async def open(self) -> None:
        """Make or connect to what rows go to, so that errors show before any page is fetched. Twice is harmless."""
        ...

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        """Store the batch. `SinkUnreachable` means: nothing of it was stored, try again later.
        `SinkRejects` means: nothing of it was stored, and without the records it names the rest can be.

        `visits` are the ledger's lines of the same batch, stored in the same transaction.
        """
        ...

    async def count(self, *, rows: bool = True) -> Stored | None:
        """What became of this job's records; with `rows` also how many rows there are now, which takes longer.
        None: this sink cannot count."""
        ...

    async def finish(self) -> None:
        """A job has ended: bring the rows into their last form. May be called by several processes, and many times."""
        ...

    async def maintain(self, now: Moment) -> None:
        """Housekeeping, about once an hour: create partitions ahead, drop old visits."""
        ...

    async def close(self) -> None:
        """Release files and connections; the rows are not finished by this. Twice is harmless."""
        ...


class RecordWriter(Protocol):
    """As little as a program that embeds Trotline has to give: S1 to S5, and neither counts nor visits."""

    async def write(self, batch: Sequence[Record]) -> None: ...

    async def close(self) -> None: ...
