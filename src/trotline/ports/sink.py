"""Where records go."""

from collections.abc import Sequence
from typing import Protocol

from trotline.model.record import Record
from trotline.model.row_counts import Stored
from trotline.model.visit_row import VisitRow


class Sink(Protocol):
    """S1 the same batch twice leaves the same state
    S2 an older sighting does not overwrite a newer one
    S3 a batch is stored whole or not at all; when `write` returns, it is durable
    S4 an empty batch is harmless
    S5 one (site, kind, key) is one row, however many workers write at once
    S6 what is counted is what is there: rows, and how many of a job's records were new, changed or seen again
    """

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        """Store the batch. `SinkUnreachable` means: nothing of it was stored, try again later.
        `SinkRejects` means: nothing of it was stored, and without the records it names the rest can be.

        `visits` are the ledger's lines of the same batch: a sink that is a Ledger too stores them in the same
        transaction, any other leaves them out.
        """
        ...

    async def close(self) -> None: ...


class CountingSink(Sink, Protocol):
    """A sink that can say what it holds. One that cannot has no `count`, and is not asked."""

    async def count(self, *, rows: bool = True) -> Stored:
        """What became of this job's records; with `rows` also how many rows there are now, which takes longer."""
        ...
