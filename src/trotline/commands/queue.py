"""The queue as a library, for those who keep their own worker: leases, deduplication, pace per host, retries.

async with Queue("shop", "redis://localhost:6379/0", pace="2/s") as queue:
    await queue.add_urls(["https://shop.example/1", "https://shop.example/2"])
    await queue.seal()
    async for task in queue:
        links = await visit(task.url)
        await queue.done(task, children=links)
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self

from trotline.commands.queue_inbox import reading_inbox
from trotline.commands.queue_input import Added
from trotline.commands.queue_job import JobFinder, QueueJob, queue_plan
from trotline.commands.queue_leases import Leases, failed
from trotline.commands.queue_task import QueueTask, pause, reason
from trotline.config import components
from trotline.errors import LeaseLost, SettingsError
from trotline.model.job import Job, Progress
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.pace import Pace, Rate
from trotline.model.record_row import whole
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.processes.supervised_child import worker_name
from trotline.rules import redaction, retries
from trotline.rules.task_checks import checked
from trotline.rules.task_checks import whole as whole_number
from trotline.rules.traps import TrapRules
from trotline.rules.urls import UrlRules
from trotline.spider.spider_checks import Checks

MOST_RECORDS = 1_000_000_000
KINDS = {"broken": Kind.BROKEN, "blocked": Kind.BLOCKED, "unreachable": Kind.UNREACHABLE}
"""What a retry may say about the site."""
_SHORTEST: Seconds = 0.05
"""A lease that does not wait still has to be asked for."""


class Queue:
    """A named queue of URLs in a frontier: a file, or a server that other machines share.

    `frontier` is a URL (`sqlite:crawl.db`, `redis://...`); without one that of the settings, or a file in `.trotline`.
    `pace`, `lanes`, `concurrency` and `slowest` are those of a spider; so are `hosts`, `include`, `exclude` and
    `max_depth`, which say what may be added (without `hosts`: any host). `hold`: a task that is not settled for so long
    is retried. `inbox`: where other programs leave tasks (`redis://...?inbox=NAME`); consumers read it, too.
    `wait_for_job`: consumers wait if there is no unfinished job; False: their loops end.
    """

    def __init__(
        self,
        name: str,
        frontier: str | None = None,
        *,
        pace: str | Rate = "1/s",
        lanes: Mapping[str, str | Rate | Pace] | None = None,
        concurrency: int | None = None,
        slowest: str | Rate | None = None,
        retries: int = 3,
        hosts: Iterable[str] = ("*",),
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        max_depth: int | None = None,
        urls: UrlRules | None = None,
        traps: TrapRules | None = None,
        limits: Limits | None = None,
        hold: str | timedelta = "10m",
        inbox: str | None = None,
        wait_for_job: bool = True,
    ) -> None:
        self._plan = queue_plan(
            name,
            frontier,
            hold,
            inbox,
            wait_for_job,
            pace=pace,
            lanes=lanes,
            concurrency=concurrency,
            slowest=slowest,
            retries=retries,
            hosts=hosts,
            include=include,
            exclude=exclude,
            max_depth=max_depth,
            urls=urls,
            traps=traps,
            limits=limits,
        )
        self.name = self._plan.name
        self._input = self._plan.input
        self._chance = components.open_chance()
        self._finder: JobFinder | None = None
        """None: it is not open."""
        self._leases: Leases | None = None
        self._reading = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """FrontierUnreachable if the server does not answer: that is a mistake in the settings."""
        if self._finder is not None:
            raise SettingsError(f"queue {self.name!r} is open already", hint="Make another Queue for another user.")
        finder = JobFinder(self._plan)
        await finder.look()
        self._finder = finder
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """If the program fails, what it was working on counts an attempt: it may be the cause, in every restart."""
        leases, finder = self._leases, self._finder
        self._leases = self._finder = None
        await self._reading.aclose()
        if leases is not None:
            await leases.close(error)
        if finder is not None:
            await finder.close()

    # Producers

    async def add_urls(self, urls: Iterable[str], **fields: Any) -> Added:
        """Add URLs, all with the same fields as in `add`. How many are new."""
        if isinstance(urls, str):
            raise TypeError("add_urls takes a list of URLs; for one URL: queue.add(url)")
        return await self.add_all({"url": url, **fields} for url in urls)

    async def add(self, url: str, **fields: Any) -> bool:
        """Add one task; False if the job knows it already. ValueError if it is refused.

        `job_type`, `priority` (smaller goes sooner), `meta`, `key` (identity instead of the URL), `lane` (whose pace
        it has; the host by default), `delay` (seconds from now), `max_retries`, `depth`, `site`, `chain`.
        """
        added = await self.add_all([{"url": url, **fields}])
        for why in added.refused:
            raise ValueError(f"{redaction.url(str(url)[:200])} was not added: {why}")
        return bool(added.new)

    async def add_all(self, tasks: Iterable[str | Mapping[str, Any] | Task]) -> Added:
        """Add URLs, JSON objects in the form of seeds, or tasks. A generator is read in pieces of 500."""
        finder = self._open
        found = await finder.find_or_start()
        added = Added()
        for drafts in self._input.pieces(tasks, found.now):
            result = self._input.gate.seeds(drafts, found.now())
            added.count(result, await finder.patiently(partial(found.opened.frontier.put, result.tasks)))
        return added

    async def seal(self) -> None:
        """Nothing more comes from outside: when all tasks have ended, so have the loops over this queue."""
        finder = self._open
        await finder.patiently((await finder.find_or_start()).opened.frontier.seal)

    async def set_pace(self, lane: str, pace: str | None) -> None:
        """How fast a host is visited from now on, by all jobs of this frontier; None: as they say themselves."""
        chosen = None if pace is None else Checks(f"queue {self.name!r}").pace("pace", pace, None, None)
        finder = self._open
        console = (await finder.find_or_start()).opened.console
        await finder.patiently(lambda: console.set_pace(lane, chosen))

    # Consumers

    async def lease(self, wait: Seconds | None = 1.0) -> QueueTask | None:
        """The next task, at the moment when it may start; None if none came within `wait` seconds (None: without
        limit), or the job has ended. A task of a host that has to be waited for takes up to a second more."""
        finder = self._open
        found = await (finder.find_or_start() if self._plan.inbox else finder.wait(wait, for_next=self._plan.waits))
        if found is None:
            return None
        if self._leases is None:
            name = worker_name(0)
            self._leases = Leases(name, found.opened.frontier, hold=self._plan.hold, chance=self._chance)
            if self._plan.inbox:
                await self._reading.enter_async_context(reading_inbox(self._plan, found))
        lease = await self._leases.next(None if wait is None else max(wait, _SHORTEST))
        return None if lease is None else QueueTask(lease, asyncio.get_running_loop().time())

    async def __aiter__(self) -> AsyncIterator[QueueTask]:
        while (task := await self.lease(wait=None)) is not None:
            yield task

    async def done(
        self, task: QueueTask, *, children: Iterable[str | Mapping[str, Any] | Task] = (), records: int = 0
    ) -> Added:
        """It ended well. Its children are added in the same step, one level deeper; what was refused is in the answer.

        `records`: how many it gave, for the views of the job. Duplicates are known after the call: `stats()`.
        """
        found = self._held(task)
        checked("records", records, whole_number(0, MOST_RECORDS))
        drafts = self._input.all(children, found.now)
        page = self._input.gate.filter(drafts, (), task.lease.task, task.url, found.now())
        tallies = Counter({f"links refused: {why}": count for why, count in page.refused.items()})
        tallies.update({"links known": page.known, "records": records})
        generation = found.opened.frontier.generation
        await self._settle(task, Done(), Kind.OK, children=tuple(page.tasks), tallies=+tallies)
        if generation == found.opened.frontier.generation:
            self._input.gate.confirm(page.tasks)
        else:
            self._input.gate.forget()
        added = Added()
        added.passed(page)
        return added

    async def retry(
        self, task: QueueTask, why: str | BaseException = "", *, after: Seconds | None = None, kind: str = "broken"
    ) -> bool:
        """It failed: try it again later, with backoff. False: its attempts are spent, and it was buried.

        `kind`: "broken", "blocked" or "unreachable"; a host that only fails rests for a while.
        """
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; give one of: {', '.join(KINDS)}")
        self._held(task)
        wait = None if after is None else checked("after", after, pause)
        outcome = failed(task.lease, reason(why, task), KINDS[kind], wait, self._chance)
        await self._settle(task, outcome, KINDS[kind])
        return isinstance(outcome, Retry)

    async def snooze(self, task: QueueTask, after: Seconds, why: str = "", *, rate_limited: bool = False) -> None:
        """Come back to it after so many seconds, with no attempt counted. `rate_limited`: the site asked for it (429,
        Retry-After), and the whole host rests."""
        self._held(task)
        after = checked("after", after, pause)
        text = reason(why or "snoozed", task)
        if not rate_limited:
            await self._settle(task, Snooze(after, text), None)
            return
        verdict = Verdict(Kind.THROTTLED, text, retry_after=after)
        await self._settle(task, retries.plan(task.lease.task, verdict, self._chance), Kind.THROTTLED, rest=after)

    async def bury(self, task: QueueTask, why: str | BaseException, detail: str = "") -> None:
        """No retry can help: `trotline dead` shows it with the reason, and can revive it."""
        self._held(task)
        await self._settle(task, Bury(reason(why, task), redaction.text(whole(detail), about=task.lease.task)), None)

    # Both

    async def stats(self) -> Progress:
        """The counters of the job, or of the last one: waiting, leased, done, dead, and by reason. `finished_at` says
        whether it has ended."""
        nothing = Progress(waiting=0, leased=0, done=0, dead=0)
        return await self._open.of_newest(lambda opened: opened.console.progress(), nothing)

    async def announce_finish(self) -> bool:
        """True exactly once per finish of the job, for one of all programs that ask."""
        return await self._open.of_newest(lambda opened: opened.frontier.announce_finish(), otherwise=False)

    @property
    def job(self) -> Job | None:
        """None: nothing was added yet."""
        return self._finder.found.opened.job if self._finder is not None and self._finder.found is not None else None

    def __repr__(self) -> str:
        return f"<Queue {self.name}: {self.job.id if self.job else 'no job'}>"

    @property
    def _open(self) -> JobFinder:
        if self._finder is None:
            raise SettingsError(
                f"queue {self.name!r} is not open", hint="Use it inside of: async with Queue(...) as queue:"
            )
        return self._finder

    def _held(self, task: QueueTask) -> QueueJob:
        found = self._open.found
        if not isinstance(task, QueueTask):
            raise TypeError(f"give the task that the queue handed out, not a {type(task).__name__}")
        if found is None or self._leases is None:
            raise LeaseLost(
                f"this queue has not handed out {redaction.url(task.url)}",
                hint="Settle a task in the queue that leased it, while that is open.",
            )
        return found

    async def _settle(
        self, task: QueueTask, outcome: Outcome, kind: Kind | None, *, rest: Seconds = 0.0, **more: Any
    ) -> None:
        took = max(0.0, asyncio.get_running_loop().time() - task.started_at)
        news = None if kind is None else LaneFeedback(kind, took=took, rest=rest)
        assert self._leases is not None  # noqa: S101 - asked by `_held`
        await self._leases.settle(Settlement(task.lease, outcome, news=news, **more))
