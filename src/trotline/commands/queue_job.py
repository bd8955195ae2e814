"""The job behind a `Queue`: the unfinished one of its name, or a new one; and the settings of the queue."""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from socket import gethostname
from typing import Any, TypeVar

import msgspec

from trotline.commands.queue_input import QueueInput
from trotline.config import backends, components, settings
from trotline.config.urls import frontier_url, inbox_url
from trotline.errors import FrontierError, SettingsError, SpiderRefused
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.job import Job, LaneRules, State
from trotline.model.queue_job import SOURCE, made_by
from trotline.model.time import Moment, Seconds, seconds
from trotline.ports.backend import OpenJob
from trotline.spider.spider import Spider
from trotline.spider.spider_checks import Checks

log = logging.getLogger("trotline.queue")
T = TypeVar("T")
Found = TypeVar("Found", "QueueJob", "QueueJob | None")

PATIENCE: Seconds = 60.0
"""How long an unreachable server is retried before its error is raised."""
_ASK_AGAIN: Seconds = 0.1
"""While another process starts the job."""
_LOOK_EVERY: Seconds = 1.0
"""How often a consumer looks for the first job."""


class JobPlan(msgspec.Struct, frozen=True):
    """What is needed to find or start a job that no spider of ours works on."""

    name: str
    frontier: str
    rules: LaneRules


class QueuePlan(JobPlan, frozen=True):
    """The settings of a queue, checked."""

    hold: Seconds
    inbox: str
    """Where other programs leave tasks; empty: there is none."""
    input: QueueInput


def queue_plan(name: str, frontier: str | None, hold: Any, inbox: str | None, **arguments: Any) -> QueuePlan:
    """`arguments`: those of a spider. SettingsError says what is wrong."""
    try:
        spider = Spider(name, robots=False, **arguments)
        held = _length(Checks(f"spider {name!r}"), hold)
    except SpiderRefused as error:
        raise SettingsError(error.what.replace("spider", "queue", 1), hint=error.hint) from error
    rules = msgspec.structs.replace(spider.rules, source=SOURCE)
    return QueuePlan(
        spider.name,
        _frontier(spider.name, frontier),
        rules,
        held,
        _url(inbox, inbox_url) if inbox else "",
        QueueInput(components.open_gate(spider), spider.retries),
    )


def _frontier(name: str, given: str | None) -> str:
    url = settings.read({}, os.environ, Path()).frontier_of(name) if given is None else _url(given, frontier_url)
    if backends.in_memory(url):
        raise SettingsError(
            "a queue in memory could not be seen by any other program",
            hint='Name a file or a server: "sqlite:PATH" or "redis://HOST:PORT/0"',
        )
    return url


def _url(given: str, parse: Callable[[str], str]) -> str:
    try:
        return parse(given)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _length(check: Checks, given: Any) -> Seconds:
    if isinstance(given, timedelta):
        return check.patience("hold", given)
    try:
        found = seconds(check.text("hold", given))
    except ValueError as error:
        raise check.refuse(f"hold: {error}", 'For example hold="10m".') from error
    return check.patience("hold", timedelta(seconds=found))


class QueueJob(msgspec.Struct, frozen=True):
    """An open job, and the difference between the frontier's clock and ours."""

    opened: OpenJob
    ahead: Seconds

    def now(self) -> Moment:
        """The frontier's time, within the time that a call takes."""
        return time.time() + self.ahead


class JobFinder:
    """Finds the job of a queue, or starts it. Consumers wait for it, the first producer makes it."""

    def __init__(self, plan: JobPlan) -> None:
        self._plan = plan
        self._lock = asyncio.Lock()
        self._outage = OutageLog(log)
        self.found: QueueJob | None = None
        self._ended = False
        """The last job of this name has ended, and nothing was added since."""

    @property
    def ended(self) -> bool:
        return self._ended

    async def look(self) -> None:
        """Join the unfinished job, if there is one."""
        async with self._lock:
            if self.found is None:
                self.found = self._checked(await self._unfinished())

    async def find_or_start(self) -> QueueJob:
        """One process at a time looks and starts: two that begin at the same moment get the same job."""
        async with self._lock:
            if self.found is None:
                self.found = self._checked(await self._elected())
            return self.found

    async def wait(self, within: Seconds | None) -> QueueJob | None:
        """None: the last job has ended, or nothing was added in time."""
        clock = asyncio.get_running_loop().time
        until = None if within is None else clock() + within
        while self.found is None and not self._ended:
            await self.patiently(self.look)
            left = _LOOK_EVERY if until is None else until - clock()
            if self.found is None and not self._ended:
                if left <= 0:
                    return None
                await asyncio.sleep(min(_LOOK_EVERY, left))
        return self.found

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry while the server is unreachable; a file that cannot be written stays so until a person acts."""
        within = 0.0 if backends.is_local(self._plan.frontier) else PATIENCE
        return await until_reachable(call, self._outage.report, within=within)

    async def close(self) -> None:
        if self.found is None:
            return
        try:
            # Exactly one of all that took part gets True here or in `Queue.announce_finish`.
            await self.found.opened.frontier.announce_finish()
        except FrontierError as error:
            log.warning("queue.trouble the end of %s is not announced yet: %s", self._plan.name, error.what)
        finally:
            await self.found.opened.close()

    def _checked(self, found: Found) -> Found:
        if found is not None and found.opened.job.rules != self._plan.rules:
            log.warning(
                "queue.other_rules %s was started with another pace or other limits, which are in force until it ends",
                found.opened.job.id,
            )
        return found

    async def _elected(self) -> QueueJob:
        leadership = await backends.open_leadership(self._plan.frontier)
        election, candidate = f"queue {self._plan.name}", f"{gethostname()}-{secrets.token_hex(6)}"
        try:
            term = await leadership.campaign(election, candidate)
            while term.holder != candidate:
                await asyncio.sleep(_ASK_AGAIN)
                term = await leadership.campaign(election, candidate)
            try:
                return await self._unfinished() or await self._started()
            finally:
                await leadership.resign(term)
        finally:
            await leadership.close()

    async def _unfinished(self) -> QueueJob | None:
        if backends.is_missing(self._plan.frontier):
            return None
        jobs = await backends.open_jobs(self._plan.frontier)
        try:
            latest = await jobs.latest(self._plan.name)
        finally:
            await jobs.close()
        found = await self._joinable(latest) if latest is not None else None
        self._ended = latest is not None and found is None
        return found

    async def _joinable(self, job: Job) -> QueueJob | None:
        """None: it has ended. One that finished without an announcement is joined: what comes in reopens it."""
        if job.announced:
            return None
        if made_by(job.rules) != (ours := made_by(self._plan.rules)):
            raise SettingsError(
                f"{job.id} is an unfinished job of {made_by(job.rules)}, and not of {ours}",
                hint=f"Give one of them another name, or end that job: trotline cancel {job.id}",
            )
        found = await self._open(job)
        if (await found.opened.console.progress()).state is State.CANCELLED:
            await found.opened.close()
            return None
        return found

    async def _started(self) -> QueueJob:
        jobs = await backends.open_jobs(self._plan.frontier)
        try:
            job = await jobs.start(self._plan.name, self._plan.rules)
        finally:
            await jobs.close()
        self._ended = False
        return await self._open(job)

    async def _open(self, job: Job) -> QueueJob:
        opened = await backends.open_frontier(self._plan.frontier, job)
        try:
            return QueueJob(opened, (await opened.console.progress()).now - time.time())
        except BaseException:
            await opened.close()
            raise
