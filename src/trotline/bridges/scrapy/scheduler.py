"""Scrapy's scheduler on a frontier of ours: leases instead of a queue, and a settlement for each finished request."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Self, cast

import msgspec
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from trotline.bridges.scrapy import engine_hooks, fleet_stats, held_back
from trotline.bridges.scrapy.captive_proxies import CaptiveProxies
from trotline.bridges.scrapy.client_thread import ClientThread, into_this_thread
from trotline.bridges.scrapy.cookie_jars import CookieJars
from trotline.bridges.scrapy.download_handlers import DownloadHandlers
from trotline.bridges.scrapy.engine_link import EngineLink
from trotline.bridges.scrapy.frontier_client import NEVER, FrontierClient
from trotline.bridges.scrapy.lease_requests import LeaseRequests
from trotline.bridges.scrapy.log_in import LogIn
from trotline.bridges.scrapy.options import Options
from trotline.bridges.scrapy.pool_middlewares import GoOut, Judge
from trotline.bridges.scrapy.pools import Pools
from trotline.bridges.scrapy.redis_spider import TRUSTS_INBOX
from trotline.bridges.scrapy.request_codec import SLOT, RequestCodec
from trotline.bridges.scrapy.request_tasks import Parent, RequestTasks
from trotline.bridges.scrapy.result_writer import Written
from trotline.bridges.scrapy.shared_objects import SharedObjects
from trotline.bridges.scrapy.start_urls import StartUrls, Tasks, tasks_of
from trotline.bridges.scrapy.task_entries import TaskEntries
from trotline.bridges.scrapy.visit_events import VisitEvents
from trotline.bridges.scrapy.visits import Visit
from trotline.errors import TrotlineError
from trotline.model.lease import Lease
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.rules import redaction
from trotline.rules.tagged_json import NotData

log = logging.getLogger("trotline.scrapy")

MOST_CHILDREN = 500
"""Requests of one page that wait for its end; more are sent before."""
OLD: Seconds = 0.5
"""The same for pages that take longer than this."""
NO_LIMIT = 100
"""Requests at a time of a process whose CONCURRENT_REQUESTS is 0, which means no limit."""
CLOSE_WITHIN: Seconds = 30.0
"""How long the last results are sent for while the frontier does not answer."""
_HINT = (
    "Requests are stored as data, so that any process can visit them: callbacks must be methods of the spider, "
    "meta and cb_kwargs plain values or items."
)


class Scheduler(BaseScheduler):
    """The port of Scrapy's engine. All of its methods return at once; what waits is done by the client's thread."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._options = Options.read(crawler)
        self._held = held_back.of(crawler)
        self._visits: dict[Request, Visit] = {}
        """By the request object that `next_request` returned."""
        self._counted = Written()
        self._shared = SharedObjects()
        self._pageless = 0
        """Requests that were refused and have no page that could be buried,"""
        self._first_pageless = ""
        """and the first of them, with its reason."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    # Opening and closing

    def open(self, spider: Spider) -> "Deferred[None]":
        self._spider = spider
        engine = cast(Any, self._crawler.engine)
        self._stats = cast(Any, self._crawler.stats)
        back = into_this_thread()
        options, pools = self._options, self._open_pools(spider)
        slots = engine.downloader.total_concurrency or NO_LIMIT
        self._link = EngineLink(engine, back, self._news)
        self._client = FrontierClient(
            options.plan, options.spider, slots, self._link, held=self._held, once=options.once, pools=pools
        )
        if options.inbox:
            self._client.start_urls = inbox = StartUrls(options.inbox, back, self._read_entries)
            setattr(spider, TRUSTS_INBOX, inbox.trusted)
            usual = TaskEntries(spider, trusted=inbox.trusted).request
            self._make_request: Callable[[bytes], Any] = getattr(spider, "make_request_from_data", usual)
        jars = CookieJars(self._crawler, self._client.worker)
        codec = RequestCodec(spider, frozenset(options.slots), jars.private)
        self._tasks = RequestTasks(self._crawler, options, codec, jars, pools, self._client.now)
        self._requests = LeaseRequests(spider, codec, jars, pools, self._client.add_settlement)
        self._events = VisitEvents(self._crawler, spider, options, self._client, jars, self._visits, self._held)
        if pools is not None:
            self._set_middlewares(pools)
        engine_hooks.install(engine, self._events, SLOT)
        self._thread = ClientThread(back)
        self._crawler.signals.connect(self._idle, signals.spider_idle)
        return deferred_from_coro(self._open())

    def _open_pools(self, spider: Spider) -> Pools | None:
        """SettingsError: the file cannot be used."""
        if not self._options.proxies:
            return None
        handlers = DownloadHandlers.of(self._crawler.settings)
        return Pools(self._options.proxies, spider, self._options.pool, handlers, self._options.allow)

    def _set_middlewares(self, pools: Pools) -> None:
        find = self._crawler.get_downloader_middleware
        go_out, judge, log_in = cast(GoOut, find(GoOut)), cast(Judge, find(Judge)), cast(LogIn, find(LogIn))
        go_out.visits = judge.visits = log_in.visits = self._visits
        go_out.chance = judge.chance = log_in.chance = pools.chance
        go_out.proxied = pools.proxied
        go_out.captive = judge.captive = CaptiveProxies()
        judge.handles = self._events.handles
        log_in.confirm, log_in.cookies = self._confirm, self._events.cookies

    async def _confirm(self, lease: Lease) -> bool:
        return await maybe_deferred_to_future(self._thread.deferred(self._client.holds_account(lease)))

    async def _open(self) -> None:
        try:
            job = await maybe_deferred_to_future(self._thread.deferred(self._client.open()))
            if job is None:
                log.info("scrapy.over the last job of %s has ended; TROTLINE_ONCE begins no other", self._spider.name)
                return
            progress = await maybe_deferred_to_future(self._thread.deferred(self._client.progress()))
            seen = self._client.imported_filter(self._options.redis)
            self._tasks.imported = await maybe_deferred_to_future(self._thread.deferred(seen))
        except BaseException as error:
            log.error("scrapy.frontier_failed %s", error)
            self._client.end.over = True
            self._thread.stop()
            if isinstance(error, TrotlineError):
                # Scrapy logs it several times; its causes, which it names, would be hundreds of lines.
                raise error.with_traceback(None) from None
            raise
        self._stats.set_value("trotline/job", job.id)
        what = f"joins it: {progress.done:,} done, {progress.waiting:,} waiting" if progress.admitted else "begins"
        log.info("scrapy.job %s: worker %s %s", job.id, self._client.worker, what)

    def close(self, reason: str) -> "Deferred[None]":
        self._events.close()
        return deferred_from_coro(self._close(reason))

    async def _close(self, reason: str) -> None:
        try:
            if self._client.end.over:
                return
            self._events.flush_last()
            announced = await maybe_deferred_to_future(self._thread.deferred(self._client.close(CLOSE_WITHIN)))
            self._count_written()
            own = self._stats.get_stats()
            fleet = await maybe_deferred_to_future(
                self._thread.deferred(fleet_stats.add(self._client.opened.console, own))
            )
            for name, value in fleet.items():
                self._stats.set_value(f"fleet/{name}", value)
            self._name_pageless()
            job, frontier = self._client.opened.job.id, self._options.plan.frontier
            self._client.end.log(job, self._spider.name, frontier, reason, announced=announced)
            await maybe_deferred_to_future(self._thread.deferred(self._client.disconnect()))
        finally:
            self._thread.stop()

    def _name_pageless(self) -> None:
        if self._pageless:
            log.error(
                "scrapy.start_not_stored %d of the requests of start() (or of an extension) could not be stored, are "
                "in no `trotline dead`, and will not be visited. Change the spider, and crawl again. The first: %s",
                self._pageless, self._first_pageless,
            )  # fmt: skip

    def has_pending_requests(self) -> bool:
        """Until the job is finished, over all processes: so `spider_idle` means the fleet."""
        if self._client.end.over:
            return False
        return self._options.stay or not self._client.end.ended or bool(self._client.unsent)

    # Requests

    def enqueue_request(self, request: Request) -> bool:
        parent = self._events.parents.pop(request, None)
        visit = self._events.continuations.pop(request, None)
        if self._client.end.over:
            return False
        try:
            if visit is not None:
                return self._go_on(request, visit)
            added = self._add(request, parent)
        except NotData as error:
            self._refuse(request, parent or visit, str(error))
            return False
        if added and parent is not None:
            self._shared.look(request, parent)
        return added

    def _add(self, request: Request, parent: Parent | None, before: Task | None = None) -> bool:
        """`before`: the task that was redirected to it."""
        fingerprint = self._tasks.fingerprint(request, parent)
        imported = self._tasks.imported
        if self._client.results.knows(fingerprint) or (imported is not None and fingerprint in imported):
            self._stats.inc_value("dupefilter/filtered")
            return False
        url = parent.lease.task.url if isinstance(parent, Visit) else ""
        task = self._tasks.task(request, fingerprint, url, before=before)
        self._stats.inc_value("scheduler/enqueued")
        if not isinstance(parent, Visit) or parent.request not in self._visits:
            self._client.add_tasks([task])
            return True
        if not parent.children:
            parent.waits_since = time.monotonic()
            self._client.notify_at = min(self._client.notify_at, parent.waits_since + OLD)
        parent.children.append(task)
        if len(parent.children) >= MOST_CHILDREN:
            self._send_children(parent)
        return True

    def _go_on(self, request: Request, visit: Visit) -> bool:
        """A retry takes the place of its task, and so does a redirect that is not filtered. Another redirect is a new
        task: if its target is known, there is nothing left to do."""
        if visit.way is not None and visit.way.outcome is not None:
            # It goes out through another proxy, and as it is.
            return True
        own = visit.lease.task
        if self._tasks.is_filtered(request) and self._tasks.filtered(request) != own.fingerprint:
            return self._add(request, visit, before=own)
        visit.again = self._tasks.continued(request, own)
        return True

    def _read_entries(self, entries: Sequence[bytes]) -> Tasks:
        """Of the inbox."""
        found = tasks_of(entries, self._make_request, self._tasks.of_entry)
        self._stats.inc_value("trotline/inbox", len(entries))
        return found

    def _refuse(self, request: Request, parent: Parent | None, why: str) -> None:
        self._stats.inc_value("trotline/not_stored")
        log.error(
            "scrapy.not_stored %s is not scheduled: %s. %s", redaction.url(request.url), redaction.text(why), _HINT
        )
        if not isinstance(parent, Visit):
            self._stats.inc_value("trotline/not_stored/no_page")
            self._pageless += 1
            self._first_pageless = self._first_pageless or f"{redaction.url(request.url)}: {redaction.text(why)}"
        elif parent.refused:
            parent.refused_more += 1
        else:
            parent.refused = f"{redaction.url(request.url)}: {why}"

    def next_request(self) -> Request | None:
        self._link.looked()
        if time.monotonic() >= self._client.notify_at:
            self._flush_old()
        ready = self._client.feeder.ready
        while ready:
            one = ready.popleft()
            self._client.demand.popped += 1
            if self._held.feed or time.monotonic() > one.latest:
                # The next starts of its lane are reserved for others; and with a full disk none begins.
                self._client.give_back(one.lease)
                continue
            visit = self._requests.visit(one)
            if visit is not None:
                self._visits[visit.request] = visit
                self._stats.inc_value("scheduler/dequeued")
                return visit.request
        return None

    def _flush_old(self) -> None:
        """Pages that take long: their requests do not wait for their end."""
        now, self._client.notify_at = time.monotonic(), NEVER
        for visit in self._visits.values():
            if visit.children and now >= visit.waits_since + OLD:
                self._send_children(visit)
            elif visit.children:
                self._client.notify_at = min(self._client.notify_at, visit.waits_since + OLD)

    def _send_children(self, visit: Visit) -> None:
        tasks, visit.children = visit.children, []
        visit.sent = True
        known = len(tasks) - self._client.add_tasks(tasks)
        if known:
            self._stats.inc_value("dupefilter/filtered", known)

    # News

    def _idle(self) -> None:
        if self._client.end.why:
            raise CloseSpider(self._client.end.why)

    def _news(self) -> None:
        """Of the client's thread."""
        self._count_written()
        self._events.results_were_sent()
        self._events.flush_again()

    def _count_written(self) -> None:
        written, before = msgspec.structs.replace(self._client.results.written), self._counted
        self._counted = written
        for name, count in (
            ("dupefilter/filtered", written.duplicates - before.duplicates),
            ("trotline/refused", written.refused - before.refused),
            ("trotline/lost_leases", written.lost - before.lost),
        ):
            if count:
                self._stats.inc_value(name, count)
