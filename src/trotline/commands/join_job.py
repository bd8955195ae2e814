"""Which job may a worker take part in? The newest unfinished one of its spider that lets its code version in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from trotline.config import backends
from trotline.config.code_version import code_version
from trotline.model.job import Job, State
from trotline.model.queue_job import is_queue
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.jobs import Jobs

LOOK_BACK: Seconds = 15.0
"""How often jobs before the newest one are looked at, too: one that was resumed, or left behind by a newer."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a look: a job to take part in, or those that are for other versions of the code."""

    opened: OpenJob | None = None
    version: str = ""
    """Ours."""
    upgraded: bool = False
    """It was let in just now, by us."""
    others: tuple[Job, ...] = ()
    missed: Job | None = None
    """A job that was started after the first look, and was cancelled or at its limit before we could take part."""
    unreadable: tuple[str, ...] = ()
    """Jobs of any spider that were left out: their entries are damaged."""


class Search:
    """Polls for jobs, at a low cost for the server."""

    def __init__(self, frontier: str, ref: str, spider: str, *, upgrade: bool) -> None:
        self._frontier = frontier
        self._ref = ref
        self._spider = spider
        self._upgrade = upgrade
        self._jobs: Jobs | None = None
        self._looked_back: Seconds | None = None
        self._first: str | None = None
        """The newest job at the first look."""
        self._newest = ""

    def look_back(self) -> None:
        """A job has ended: next time the older ones are looked at as well."""
        self._looked_back = None

    async def look(self) -> Found:
        # Looking makes no file: the command that starts the job makes it.
        if backends.is_missing(self._frontier):
            self._first = self._first or ""
            return Found()
        # The file may have been replaced since we last looked.
        version = code_version(self._ref)
        others: list[Job] = []
        missed: Job | None = None
        async with self._opened() as jobs:
            for job in await self._unfinished(jobs):
                welcome = job.accepts(version)
                opened = await self._taken_up(job)
                if opened is None:
                    missed = missed or job
                    continue
                if welcome or self._upgrade:
                    if not welcome:
                        await jobs.admit(job.id, version)
                    return Found(opened=opened, version=version, upgraded=not welcome, unreadable=jobs.unreadable())
                await opened.close()
                others.append(job)
            return Found(version=version, others=tuple(others), missed=self._new(missed), unreadable=jobs.unreadable())

    def _new(self, job: Job | None) -> Job | None:
        """The job, if it is the newest, and was not at the first look: older ones were cancelled for other reasons."""
        return job if job is not None and job.id == self._newest != self._first else None

    async def close(self) -> None:
        if self._jobs is not None:
            jobs, self._jobs = self._jobs, None
            await jobs.close()

    async def _unfinished(self, jobs: Jobs) -> list[Job]:
        """The newest first. A server may know a thousand old ones: they are not asked for at every look."""
        now = asyncio.get_running_loop().time()
        latest = await jobs.latest(self._spider)
        self._newest = latest.id if latest is not None else ""
        if self._first is None:
            self._first = self._newest
        found = [latest] if latest is not None and not latest.announced and not is_queue(latest) else []
        if self._looked_back is None or now - self._looked_back >= LOOK_BACK:
            self._looked_back = now
            every = [job for job in await jobs.all() if job.spider == self._spider and not job.announced]
            every = [job for job in every if not is_queue(job)]
            found += [job for job in reversed(every) if latest is None or job.id != latest.id]
        return found

    async def _taken_up(self, job: Job) -> OpenJob | None:
        """The job's frontier; None if the job was cancelled, or has reached its limit."""
        opened = await backends.open_frontier(self._frontier, job)
        try:
            progress = await opened.console.progress()
            cancelled = progress.state is State.CANCELLED or bool(progress.spent)
        except BaseException:
            await opened.close()
            raise
        if cancelled:
            await opened.close()
            return None
        return opened

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Jobs]:
        """A server's jobs stay open from look to look. A file is reopened: it may have been replaced."""
        jobs = self._jobs or await backends.open_jobs(self._frontier)
        self._jobs = jobs
        try:
            yield jobs
        except BaseException:
            await self.close()
            raise
        if backends.is_local(self._frontier):
            await self.close()
