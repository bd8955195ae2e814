"""The job behind a `Queue`: the unfinished one of its name, or a new one; and the settings of the queue."""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any, ClassVar, TypeVar

import msgspec

from trotline.commands.queue_input import QueueInput
from trotline.config import backends, components, settings
from trotline.config.backend_urls import frontier_url, inbox_url
from trotline.errors import SettingsError, SpiderRefused
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.job import Job, LaneRules, State
from trotline.model.queue_job import SOURCE, made_by
from trotline.model.time import Moment, Seconds, seconds
from trotline.ports.backend import OpenJob
from trotline.rules.job_rule_differences import differences
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

    resumes: ClassVar[bool] = True
    """A job that has finished without an announcement (a crash at its end) is joined: what comes in reopens it."""


class QueuePlan(JobPlan, frozen=True):
    """The settings of a queue, checked."""

    resumes: ClassVar[bool] = False
    """Few programs ask for the announcement: what has finished has ended."""
    hold: Seconds
    inbox: str
    """Where other programs leave tasks; empty: there is none."""
    waits: bool
    """Consumers wait for the next job, if there is none that is unfinished."""
    input: QueueInput


def queue_plan(
    name: str, frontier: str | None, hold: Any, inbox: str | None, wait_for_job: Any = True, **arguments: Any
) -> QueuePlan:
    """`arguments`: those of a spider. SettingsError says what is wrong."""
    try:
        spider = Spider(name, robots=False, **arguments)
        checks = Checks(f"spider {name!r}")
        held, waits = _length(checks, hold), checks.instance("wait_for_job", wait_for_job, bool)
    except SpiderRefused as error:
        raise SettingsError(error.what.replace("spider", "queue", 1), hint=error.hint) from error
    rules = msgspec.structs.replace(spider.rules, source=SOURCE)
    return QueuePlan(
        spider.name,
        _frontier(spider.name, frontier),
        rules,
        held,
        _url(inbox, inbox_url) if inbox else "",
        waits,
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
        self.last: Job | None = None
        """The newest job of this name, also if it has ended."""
        self._ended = False
        """It has ended, and nothing was added since."""
        self._waits = False

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

    async def wait(self, within: Seconds | None, *, for_next: bool = True) -> QueueJob | None:
        """None: nothing was added in time; or, if it does not wait `for_next`, there is no unfinished job."""
        clock = asyncio.get_running_loop().time
        until = None if within is None else clock() + within
        while self.found is None:
            await self.patiently(self.look)
            left = _LOOK_EVERY if until is None else until - clock()
            if self.found is None:
                if left <= 0 or not for_next:
                    return None
                self._report_waiting()
                await asyncio.sleep(min(_LOOK_EVERY, left))
        return self.found

    def _report_waiting(self) -> None:
        if self._waits:
            return
        self._waits = True
        past = f"{self.last.id} has ended" if self.last is not None else "nothing was added yet"
        log.warning(
            "queue.waiting queue %r: %s; waiting for the next job, which the next add starts (to end instead: "
            "wait_for_job=False)", self._plan.name, past,
        )  # fmt: skip

    async def of_newest(self, ask: Callable[[OpenJob], Awaitable[T]], otherwise: T) -> T:
        """The answer of the newest job, also if it has ended; `otherwise`, if there was none."""
        if self.found is not None:
            return await self.patiently(partial(ask, self.found.opened))
        if self.last is None:
            return otherwise
        opened = await backends.open_frontier(self._plan.frontier, self.last)
        try:
            return await self.patiently(partial(ask, opened))
        finally:
            await opened.close()

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry while the server is unreachable; a file that cannot be written stays so until a person acts."""
        within = 0.0 if backends.is_local(self._plan.frontier) else PATIENCE
        return await until_reachable(call, self._outage.report, within=within)

    async def close(self) -> None:
        """The finish is not announced: that is for the program that asks for it."""
        if self.found is not None:
            await self.found.opened.close()

    def _checked(self, found: Found) -> Found:
        if found is not None and (others := differences(found.opened.job.rules, self._plan.rules)):
            log.warning(
                "queue.other_rules %s was started with other settings, which are in force until it ends: %s",
                found.opened.job.id, "; ".join(others),
            )  # fmt: skip
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
        self.last = latest
        self._ended = latest is not None and found is None
        return found

    async def _joinable(self, job: Job) -> QueueJob | None:
        """None: it has ended."""
        if job.announced:
            return None
        if made_by(job.rules) != (ours := made_by(self._plan.rules)):
            raise SettingsError(
                f"{job.id} is an unfinished job of {made_by(job.rules)}, and not of {ours}",
                hint=f"Give one of them another name, or end that job: trotline cancel {job.id}",
            )
        found = await self._open(job)
        if await self._is_over(found.opened):
            await found.opened.close()
            return None
        return found

    async def _is_over(self, opened: OpenJob) -> bool:
        if not self._plan.resumes:
            return await opened.frontier.finished()
        return (await opened.console.progress()).state is State.CANCELLED

    async def _started(self) -> QueueJob:
        jobs = await backends.open_jobs(self._plan.frontier)
        try:
            job = await jobs.start(self._plan.name, self._plan.rules)
        finally:
            await jobs.close()
        self.last, self._ended = job, False
        return await self._open(job)

    async def _open(self, job: Job) -> QueueJob:
        opened = await backends.open_frontier(self._plan.frontier, job)
        try:
            return QueueJob(opened, (await opened.console.progress()).now - time.time())
        except BaseException:
            await opened.close()
            raise
