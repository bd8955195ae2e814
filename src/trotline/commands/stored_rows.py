"""What a sink holds, by its own count."""

from trotline.config import backends
from trotline.errors import SinkError
from trotline.model.job import Job
from trotline.model.row_counts import Stored
from trotline.ports.sink import Sink


async def ask(sink: Sink, *, rows: bool) -> Stored | None:
    """None: this sink cannot count, or cannot be reached now. That is no reason for a view to fail."""
    try:
        return await sink.count(rows=rows)
    except SinkError:
        return None


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
