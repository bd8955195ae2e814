"""What a sink holds, by its own count."""

from typing import TYPE_CHECKING, Any

from trotline.config import wiring
from trotline.config.urls import REDIS, is_file, scheme_of
from trotline.errors import SinkError
from trotline.model.job import Job
from trotline.model.row_counts import Stored

if TYPE_CHECKING:
    from trotline.ports.sink import Sink


async def ask(sink: "Sink", *, rows: bool) -> Stored | None:
    """None: this sink cannot count, or cannot be reached now. That is no reason for a view to fail."""
    count: Any = getattr(sink, "count", None)
    if count is None:
        return None
    try:
        found: Stored = await count(rows=rows)
    except SinkError:
        return None
    return found


async def count_rows(sink_url: str, job: Job) -> Stored | None:
    """What became of the job's records, and how many rows there are now. Looking makes no file."""
    if scheme_of(sink_url) in REDIS or (is_file(sink_url) and not wiring.has_rows(sink_url)):
        return None
    try:
        sink = wiring.open_sink(sink_url, job.id, job.started_at)
    except SinkError:
        return None
    try:
        return await ask(sink, rows=True)
    finally:
        await sink.close()
