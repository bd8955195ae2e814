"""May a re-parse write into the default sink? Only if that is where the runs of its spider have stored records."""

import msgspec

from trotline.commands.sink_row_counts import lost_rows
from trotline.config import backends
from trotline.config.backend_urls import shown
from trotline.config.settings import Settings
from trotline.errors import SinkGone
from trotline.model.archive import ArchiveQuery, CaptureKind
from trotline.model.job import Job
from trotline.ports.archive import Archive
from trotline.rules.archive_queries import SkippedCaptures


async def refuse_other_sink(spider: str, settings: Settings, archive: Archive, query: ArchiveQuery) -> None:
    """SinkGone before anything is parsed: the default sink is not there, which would be a new one beside that of the
    runs; or the job that is parsed again has stored its records elsewhere."""
    sink = settings.sink
    if backends.is_missing(sink):
        raise SinkGone(
            f"there is no {shown(sink)}, where runs of {spider} store records unless another sink is named",
            hint=f"Name the sink of those runs: --sink URL. For a new one: --sink {shown(sink)}",
        )
    if backends.in_memory(settings.frontier) or backends.is_missing(settings.frontier):
        return
    job = await _parsed_again(spider, settings.frontier, query)
    if job is None:
        return
    lost = await _lost_rows(job, settings)
    if lost and await _has_page(archive, msgspec.structs.replace(query, job=job.id)):
        raise SinkGone(
            lost, hint=f"Name the sink of that job: --sink URL. For this one all the same: --sink {shown(sink)}"
        )


async def _lost_rows(job: Job, settings: Settings) -> str:
    opened = await backends.open_frontier(settings.frontier, job)
    sink = backends.open_sink(settings.sink, job.id, job.started_at)
    try:
        return await lost_rows(sink, settings.sink, opened)
    finally:
        await sink.close()
        await opened.close()


async def _parsed_again(spider: str, frontier: str, query: ArchiveQuery) -> Job | None:
    """The job that is named, or the newest of the spider: rows of older ones may have been given up since."""
    jobs = await backends.open_jobs(frontier)
    try:
        if not query.job:
            return await jobs.latest(spider)
        return next((job for job in await jobs.all() if job.id == query.job), None)
    finally:
        await jobs.close()


async def _has_page(archive: Archive, query: ArchiveQuery) -> bool:
    wanted = msgspec.structs.replace(query, kind=CaptureKind.RESPONSE)
    async for _ in archive.entries(wanted, SkippedCaptures().add):
        return True
    return False
