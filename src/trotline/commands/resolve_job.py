"""Which job is meant."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from trotline.config import backends
from trotline.errors import SettingsError
from trotline.model.job import Job, State
from trotline.model.queue_job import is_queue, made_by
from trotline.spider.spider import Spider


class JobFound(NamedTuple):
    job: Job
    resumed: bool
    """It was there already."""
    before: Job | None
    """The latest job of this name until now: the same one, if it goes on."""


async def open_job(
    frontier: str, spider: Spider, version: str, *, fresh: bool, source: str = "", allowed: Sequence[str] = ()
) -> JobFound:
    """The unfinished job of this spider, or one whose end was not announced; else a new one.

    A command that resumes a job by name runs the code that is here now: its version is accepted.
    """
    jobs = await backends.open_jobs(frontier)
    try:
        latest = await jobs.latest(spider.name)
        if latest is not None and not latest.announced:
            refuse_queue(latest, spider)
        if fresh or latest is None or latest.announced or await is_cancelled(frontier, latest):
            rules = msgspec.structs.replace(spider.rules, source=source, allowed=tuple(allowed))
            return JobFound(await jobs.start(spider.name, rules, version), False, latest)
        if not latest.accepts(version):
            latest = await jobs.admit(latest.id, version)
        return JobFound(latest, True, latest)
    finally:
        await jobs.close()


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
