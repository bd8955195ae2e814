"""What a sink holds, by its own count."""

from trotline.config import backends
from trotline.config.backend_urls import shown
from trotline.errors import SinkError, SinkGone
from trotline.model.job import Job
from trotline.model.row_counts import Stored
from trotline.ports.backend import OpenJob
from trotline.ports.sink import Sink

_REMEDY = "Name the sink of before (--sink), or put its rows back; or visit all pages again, with --fresh."


async def ask(sink: Sink, *, rows: bool) -> Stored | None:
    """None: this sink cannot count, or is unreachable; views go on without the count."""
    try:
        return await sink.count(rows=rows)
    except SinkError:
        return None


async def refuse_missing_file(url: str, opened: OpenJob) -> None:
    """SinkGone before the sink is opened, which would leave an empty file behind: the job has settled records, and
    the database that should have them is not there."""
    if not backends.has_rows(url) or not backends.is_missing(url):
        return
    if records := (await opened.console.progress()).tallies.get("records", 0):
        raise SinkGone(_lost(url, opened, records, 0), hint=_REMEDY)


async def refuse_lost_rows(sink: Sink, url: str, opened: OpenJob) -> None:
    """SinkGone if the job has settled more records than its sink has counted: to go on would end as "finished" without
    them."""
    if lost := await lost_rows(sink, url, opened):
        raise SinkGone(lost, hint=_REMEDY)


async def lost_rows(sink: Sink, url: str, opened: OpenJob) -> str:
    """A sentence if the job has settled more records than this sink has counted: some went to another sink, or they are
    gone. A sink counts before the job does. Empty if it has all of them, or cannot say."""
    records = (await opened.console.progress()).tallies.get("records", 0)
    if not records:
        return ""
    stored = await ask(sink, rows=True)
    if stored is None or stored.rows is None:
        return ""
    written = stored.new + stored.changed + stored.again
    if any(stored.rows.values()) and written >= records:
        return ""
    return _lost(url, opened, records, written if any(stored.rows.values()) else 0)


def _lost(url: str, opened: OpenJob, records: int, written: int) -> str:
    missing = f"{written:,} of them are" if written else "none of them is"
    stored = "1 record" if records == 1 else f"{records:,} records"
    return (
        f"{opened.job.id} has stored {stored}, and {missing} in {shown(url)}:"
        " it is another sink than before, or its rows were deleted"
    )


async def count_rows(sink_url: str, job: Job) -> Stored | None:
    """What became of the job's records, and how many rows there are now. Looking makes no file."""
    if backends.is_missing(sink_url):
        return None
    try:
        sink = backends.open_sink(sink_url, job.id, job.started_at)
    except SinkError:
        return None
    try:
        return await ask(sink, rows=True)
    finally:
        await sink.close()
