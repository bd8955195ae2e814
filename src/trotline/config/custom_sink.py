"""A sink that is an object of the program which embeds Trotline."""

from collections.abc import Sequence

from trotline.model.record import Record
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow
from trotline.ports.sink import RecordWriter, Sink


def as_sink(given: Sink | RecordWriter) -> Sink:
    """The object itself if it is a whole sink; else one that does nothing beyond writing."""
    return given if isinstance(given, Sink) else WriterSink(given)


class WriterSink:
    keeps_visits = False

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer

    async def open(self) -> None:
        """The caller has opened the writer."""

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        await self._writer.write(batch)

    async def count(self, *, rows: bool = True) -> None:
        """A writer does not know."""

    async def finish(self) -> None:
        """Every batch is where it belongs."""

    async def maintain(self, now: Moment) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        await self._writer.close()
