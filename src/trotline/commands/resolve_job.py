"""Which job is meant."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from trotline.config import backends
from trotline.errors import SettingsError
from trotline.model.job import Job, State
from trotline.model.queue_job import is_queue, made_by
from trotline.ports.jobs import Jobs
from trotline.spider.spider import Spider


class JobFound(NamedTuple):
    job: Job
    resumed: bool
    """It was there already."""
    before: Job | None
    """The latest job of this name until now: the same one, if it goes on."""


async def _nothing() -> None:
    """There are no checks."""


async def open_job(
    frontier: str,
    spider: Spider,
    version: str,
    *,
    fresh: bool,
    source: str = "",
    allowed: Sequence[str] = (),
    check: Callable[[], Awaitable[None]] = _nothing,
) -> JobFound:
    """The unfinished job of this spider, or one whose end was not announced; else a new one. `check` is called before a
    new one is made, perhaps twice: what it raises leaves nothing behind.

    A command that resumes a job by name runs the code that is here now: its version is accepted.
    """
    if backends.is_missing(frontier):
        await check()
    jobs = await backends.open_jobs(frontier)
    try:
        latest = await _resumable(jobs, frontier, spider, fresh=fresh)
        if latest is None:
            await check()
            # That took its time: another command may have started one.
            latest = await _resumable(jobs, frontier, spider, fresh=fresh)
        if latest is None:
            rules = msgspec.structs.replace(spider.rules, source=source, allowed=tuple(allowed))
            before = await jobs.latest(spider.name)
            return JobFound(await jobs.start(spider.name, rules, version), False, before)
        if not latest.accepts(version):
            latest = await jobs.admit(latest.id, version)
        return JobFound(latest, True, latest)
    finally:
        await jobs.close()


async def _resumable(jobs: Jobs, frontier: str, spider: Spider, *, fresh: bool) -> Job | None:
    latest = await jobs.latest(spider.name)
    if latest is None or latest.announced:
        return None
    refuse_queue(latest, spider)
    return None if fresh or await is_cancelled(frontier, latest) else latest


def refuse_queue(job: Job, spider: Spider) -> None:
    """The tasks of a queue are not for the routes of a spider."""
    if is_queue(job):
        raise SettingsError(
            f"{job.id} is a job of {made_by(job.rules)} that is named like spider {spider.name!r}",
            hint=f"Rename one of them, or end that job: trotline cancel {job.id}",
        )


async def is_cancelled(frontier: str, job: Job) -> bool:
    opened = await backends.open_frontier(frontier, job)
    try:
        progress = await opened.console.progress()
        # One that stopped at its limit goes on with the next one.
        return progress.state is State.CANCELLED and not progress.spent
    finally:
        await opened.close()
