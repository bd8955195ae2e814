"""A coordinator for the fleet: the spiders that it schedules, seeds and watches."""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from os import getpid

import msgspec

from trotline.commands import inbox
from trotline.commands.advice_inputs import ServerExtras
from trotline.commands.archive import keep_to_retention
from trotline.commands.background_merge import merged_after
from trotline.commands.merge import MergePlan
from trotline.commands.put_with_retries import LoopClock, open_feed
from trotline.commands.seed import Seeded, Seeds, seed
from trotline.commands.serve_metrics import Metrics, metrics_at
from trotline.config import backends, components
from trotline.config.backend_urls import public
from trotline.config.code_version import code_version
from trotline.config.settings import Settings
from trotline.config.spider_loader import load
from trotline.coordinator.alert_watch import AlertPlan
from trotline.coordinator.coordinator import Coordinator
from trotline.coordinator.dependencies import (
    CoordinatorEvent,
    CoordinatorParts,
    CoordinatorPolicy,
    IsLeader,
    SpiderConfig,
)
from trotline.coordinator.frontier_outage_alert import FrontierWatch
from trotline.errors import SettingsError
from trotline.model.job import Job
from trotline.model.time import Moment, Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import HIGH_WATER
from trotline.ports.sink import Sink
from trotline.processes.signals import obeyed
from trotline.rules import merge_note
from trotline.rules.known_pools import KnownPools
from trotline.rules.merge_note import MergeNote
from trotline.spider.spider import Spider

REPORT_EVERY = 50_000
"""Seeds between two reports."""


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """A spider, and where its tasks and rows are."""

    ref: str
    spider: Spider
    frontier: str
    sink: str
    archive: str = ""
    """Empty: its pages are not archived, or that is not known here."""

    def config(self, during: str) -> SpiderConfig:
        return SpiderConfig(
            spider=self.spider.name,
            rules=self.spider.rules,
            version=code_version(self.ref),
            schedule=None if during else self.spider.schedule,
            during=during,
        )


class CoordinatePlan(msgspec.Struct, frozen=True, kw_only=True):
    posts: tuple[Post, ...]
    during: str = ""
    """A command that has started a job itself: no schedule then."""
    keep: Seconds = CoordinatorPolicy().keep
    """Jobs that ended longer ago are forgotten."""
    pools: KnownPools | None = None
    """The pools that exist; None: not known here."""
    high_water: int = HIGH_WATER
    inbox: str = ""
    """Tasks of other programs, for scheduled jobs; empty: there is none."""
    metrics: str = ""
    """The address of the metrics endpoint; empty: there is none."""
    alerts: AlertPlan = AlertPlan()


def posts_of(refs: Sequence[str], settings: Settings, pools: Collection[str] | None = None) -> tuple[Post, ...]:
    """The spiders that were named; SettingsError if two of them have the same name."""
    posts: dict[str, Post] = {}
    for ref in refs:
        spider = load(ref, pools)
        if spider.name in posts:
            raise SettingsError(
                f"{ref} and {posts[spider.name].ref} are both spider {spider.name!r}",
                hint="Name each spider once: jobs and files are known by its name.",
            )
        frontier, sink = settings.frontier_of(spider.name), settings.sink_of(spider.name)
        posts[spider.name] = Post(ref=ref, spider=spider, frontier=frontier, sink=sink, archive=settings.archive_place)
    return tuple(posts.values())


async def coordinate(plan: CoordinatePlan, emit: Callable[[CoordinatorEvent], None]) -> None:
    """Until a signal asks us to stop; then every term is resigned at once."""
    if plan.inbox and len(plan.posts) > 1:
        raise SettingsError(
            "an inbox belongs to one spider, and several are named",
            hint="Run a coordinator for each of them, with an inbox of its own.",
        )
    await inbox.check(plan.inbox)
    async with metrics_at(plan.metrics, jobs=True) as metrics:
        await _coordinate(plan, emit, metrics)


async def _coordinate(plan: CoordinatePlan, emit: Callable[[CoordinatorEvent], None], metrics: Metrics | None) -> None:
    interrupted = asyncio.Event()
    with obeyed(interrupted.set):
        stopping = asyncio.create_task(interrupted.wait())
        frontiers = dict.fromkeys(post.frontier for post in plan.posts)
        leading = [asyncio.create_task(_at(frontier, plan, emit, metrics)) for frontier in frontiers]
        try:
            await asyncio.wait([stopping, *leading], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (stopping, *leading):
                task.cancel()
            ends = await asyncio.gather(*leading, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end.exceptions[0] if isinstance(end, ExceptionGroup) else end


async def look_after(post: Post, alerts: AlertPlan, emit: Callable[[CoordinatorEvent], None]) -> None:
    """The coordinator's part of `trotline start`: rescue, alerts and the end of jobs, but no schedules and no
    retention. Until cancelled."""
    await _at(post.frontier, CoordinatePlan(posts=(post,), during="start", alerts=alerts), emit)


async def _at(
    frontier: str, plan: CoordinatePlan, emit: Callable[[CoordinatorEvent], None], metrics: Metrics | None = None
) -> None:
    """The coordinator of the spiders whose tasks are in one place."""
    posts = [post for post in plan.posts if post.frontier == frontier]
    sinks = {post.spider.name: post.sink for post in posts}
    clock = LoopClock()
    watch = FrontierWatch(public(frontier), socket.gethostname(), list(sinks), plan.alerts, clock, time.time)
    if metrics is not None:
        metrics.troubles[frontier] = lambda: watch.trouble
    jobs = await backends.open_jobs(frontier)
    try:
        leadership = await backends.open_leadership(frontier)
        try:
            parts = CoordinatorParts(
                leadership=leadership,
                jobs=jobs,
                open_frontier=lambda job: backends.open_frontier(frontier, job),
                hooks=SpiderHooks(plan, posts),
                clock=clock,
                chance=components.open_chance(),
                emit=emit,
                open_proxy_pools=lambda: backends.open_proxy_pools(frontier),
                board=None if metrics is None else metrics.jobs,
                frontier_watch=watch,
                extras=lambda job: ServerExtras(frontier, sinks.get(job.spider, ""), job.rules.default),
                alerts=plan.alerts,
            )
            configs = [post.config(plan.during) for post in posts]
            await Coordinator(coordinator_name(), configs, parts, CoordinatorPolicy(keep=plan.keep)).run()
        finally:
            await leadership.close()
    finally:
        await jobs.close()


def coordinator_name() -> str:
    """A name that no other process ever has."""
    return f"{socket.gethostname()}-{getpid()}-{secrets.token_hex(3)}"


class SpiderHooks:
    """What is done for jobs with the spider's own seeds and sink."""

    def __init__(self, plan: CoordinatePlan, posts: Sequence[Post]) -> None:
        self._plan = plan
        self._posts = {post.spider.name: post for post in posts}

    async def seed(self, job: Job, opened: OpenJob, is_leader: IsLeader, say: Callable[[str], None]) -> None:
        post = self._posts[job.spider]
        spider = post.spider
        plan = self._plan
        await opened.console.set_high_water(plan.high_water)
        async with inbox.reading(
            plan.inbox, spider, opened, post.frontier, plan.pools, say=say, high_water=plan.high_water
        ) as reading:
            seeded = await seed(
                Seeds(spider, components.open_gate(spider, plan.pools), needed=not plan.inbox),
                open_feed(opened, post.frontier, plan.high_water, say, is_leader=is_leader),
                (await opened.console.progress()).now,
                on_batch=_now_and_then(say),
            )
            say(_so_far(seeded))
            await reading.until_idle()

    async def conclude(self, job: Job) -> None:
        async with _there(self._posts[job.spider].sink) as sink:
            if sink is not None:
                await sink.finish()

    async def follow_up(self, job: Job, opened: OpenJob) -> MergeNote | None:
        post = self._posts[job.spider]
        rule = post.spider.merging
        if rule is None or backends.is_missing(post.sink):
            return None
        [before] = await opened.console.read_notes([merge_note.NOTE])
        if before is not None:
            return None
        note = await merged_after(MergePlan(sink=post.sink, rule=rule.rule, author=rule.author))
        await opened.console.write_note(merge_note.NOTE, merge_note.encode(note), 0)
        return note

    async def maintain(self, now: Moment) -> None:
        for url in dict.fromkeys(post.sink for post in self._posts.values()):
            async with _there(url) as sink:
                if sink is not None:
                    await sink.maintain(now)
        for url in dict.fromkeys(post.archive for post in self._posts.values()):
            await keep_to_retention(url, now)


@asynccontextmanager
async def _there(url: str) -> AsyncIterator[Sink | None]:
    """The sink, if there is one: a file that workers write on their own machines is not made here."""
    if backends.is_missing(url):
        yield None
        return
    sink = backends.open_sink(url)
    try:
        await sink.open()
        yield sink
    finally:
        await sink.close()


def _now_and_then(say: Callable[[str], None]) -> Callable[[Seeded], None]:
    reported = 0

    def on_batch(seeded: Seeded) -> None:
        nonlocal reported
        if seeded.new + seeded.duplicate >= reported + REPORT_EVERY:
            reported = seeded.new + seeded.duplicate
            say(_so_far(seeded))

    return on_batch


def _so_far(seeded: Seeded) -> str:
    refused = sum(seeded.refused.values())
    known = f", {seeded.duplicate:,} duplicates" if seeded.duplicate else ""
    return f"{seeded.new:,} seeds put{known}" + (f", {refused:,} refused" if refused else "")
