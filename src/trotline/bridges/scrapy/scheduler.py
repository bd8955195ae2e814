"""Scrapy's scheduler on a frontier of ours: leases instead of a queue, and a settlement for each finished request."""

import hashlib
import logging
import secrets
import time
from collections.abc import Sequence
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

import msgspec
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from trotline.bridges.scrapy import engine_hooks, fleet_stats
from trotline.bridges.scrapy.client_thread import ClientThread, into_this_thread
from trotline.bridges.scrapy.cookie_jars import CookieJars
from trotline.bridges.scrapy.feeds import Feeds
from trotline.bridges.scrapy.frontier_client import NEVER, FrontierClient, Ready
from trotline.bridges.scrapy.held_account import HeldAccount
from trotline.bridges.scrapy.imported_filter import ImportedFilter
from trotline.bridges.scrapy.log_in import METHOD, LogIn
from trotline.bridges.scrapy.options import Options
from trotline.bridges.scrapy.pools import POOL, Pools, schemes
from trotline.bridges.scrapy.proxy_middlewares import GoOut, Judge
from trotline.bridges.scrapy.request_codec import ACCOUNT, SLOT, RequestCodec
from trotline.bridges.scrapy.result_writer import Written
from trotline.bridges.scrapy.start_urls import StartUrls, Tasks, request_of, tasks_of
from trotline.bridges.scrapy.visits import Visit, asked_rest
from trotline.bridges.scrapy.way_out import WayOut
from trotline.model.account import StoredCookie
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Bury, Snooze
from trotline.model.proxy_pool import names_account
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.rules import pool_names, redaction, scrapy_redis
from trotline.rules.scrapy_identity import START, filtered, unfiltered
from trotline.rules.tagged_json import BadData, NotData

log = logging.getLogger("trotline.scrapy")

MOST_CHILDREN = 500
"""Requests of one page that wait for its end; more are sent before."""
OLD: Seconds = 0.5
"""The same for pages that take longer than this."""
MOST_UNSENT = 5_000
"""While so many requests are on their way to the frontier, `start()` waits."""
NO_LIMIT = 100
"""Requests at a time of a process whose CONCURRENT_REQUESTS is 0, which means no limit."""
CLOSE_WITHIN: Seconds = 30.0
"""How long the last results are sent for while the frontier does not answer."""
_HINT = (
    "Requests are stored as data, so that any process can visit them: callbacks must be methods of the spider, "
    "meta and cb_kwargs plain values or items."
)


class _Start:
    """In place of a page, for what `start()` yields."""


_START = _Start()
_Parent = Visit | _Start


class Scheduler(BaseScheduler):
    """The port of Scrapy's engine. All of its methods return at once; what waits is done by the client's thread."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._options = Options.read(crawler)
        self._visits: dict[Request, Visit] = {}
        """By the request object that `next_request` returned."""
        self._parents: WeakKeyDictionary[Request, _Parent] = WeakKeyDictionary()
        """Of requests that are about to be scheduled."""
        self._continuations: WeakKeyDictionary[Request, Visit] = WeakKeyDictionary()
        self._started: dict[tuple[str, str, bytes], int] = {}
        self._drained: list[Deferred[None]] = []
        self._imported: ImportedFilter | None = None
        self._counted = Written()
        self._notified = False
        self._notified_at = 0.0
        self._closing = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    # Opening and closing

    def open(self, spider: Spider) -> "Deferred[None]":
        self._spider = spider
        self._engine = cast(Any, self._crawler.engine)
        self._stats = cast(Any, self._crawler.stats)
        self._fingerprinter = cast(Any, self._crawler.request_fingerprinter)
        engine_hooks.install(self._engine, self, SLOT)
        self._slots = self._engine.downloader.total_concurrency or NO_LIMIT
        self._back = into_this_thread()
        self._thread = ClientThread(self._back)
        options = self._options
        self._pools = self._open_pools(spider)
        self._client = FrontierClient(
            options.plan, self._slots, self._busy, self._notify, once=options.once, pools=self._pools
        )
        if options.inbox:
            spider.trotline_reads_inbox = True  # type: ignore[attr-defined]
            self._client.start_urls = StartUrls(options.inbox, self._back, self._read_entries)
        self._jars = CookieJars(self._crawler, self._client.worker)
        self._codec = RequestCodec(spider, frozenset(self._options.slots), self._jars.private)
        self._feeds = Feeds(self._crawler)
        self._crawler.signals.connect(self._item_scraped, signals.item_scraped)
        self._crawler.signals.connect(self._item_error, signals.item_error)
        self._crawler.signals.connect(self._response_downloaded, signals.response_downloaded)
        self._crawler.signals.connect(self._idle, signals.spider_idle)
        return deferred_from_coro(self._open())

    def _open_pools(self, spider: Spider) -> Pools | None:
        """SettingsError: the file cannot be used."""
        if not self._options.proxies:
            return None
        handlers = self._crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        pools = Pools(self._options.proxies, spider, self._options.pool, schemes(handlers))
        find = self._crawler.get_downloader_middleware
        go_out, judge, log_in = cast(GoOut, find(GoOut)), cast(Judge, find(Judge)), cast(LogIn, find(LogIn))
        go_out.visits = judge.visits = log_in.visits = self._visits
        go_out.chance = judge.chance = log_in.chance = pools.chance
        go_out.proxied = pools.proxied
        judge.handles = self._handles
        log_in.confirm, log_in.cookies = self._confirm, self._cookies
        return pools

    async def _confirm(self, lease: Lease) -> bool:
        return await maybe_deferred_to_future(self._thread.deferred(self._client.holds_account(lease)))

    def _cookies(self, held: HeldAccount) -> tuple[StoredCookie, ...]:
        return self._jars.session(held.jar, held.session.cookies, time.time())

    async def _open(self) -> None:
        try:
            job = await maybe_deferred_to_future(self._thread.deferred(self._client.open()))
            if job is None:
                log.info("scrapy.over the last job of %s has ended; TROTLINE_ONCE begins no other", self._spider.name)
                return
            progress = await maybe_deferred_to_future(self._thread.deferred(self._client.progress()))
            seen = self._client.imported_filter(self._options.redis)
            self._imported = await maybe_deferred_to_future(self._thread.deferred(seen))
        except BaseException as error:
            # Scrapy logs it with the causes of its causes, and closes us.
            log.error("scrapy.frontier_failed %s", error)
            self._client.over = True
            self._thread.stop()
            raise
        self._stats.set_value("trotline/job", job.id)
        what = f"joins it: {progress.done:,} done, {progress.waiting:,} waiting" if progress.admitted else "begins"
        log.info("scrapy.job %s: worker %s %s", job.id, self._client.worker, what)

    def close(self, reason: str) -> "Deferred[None]":
        self._closing = True
        return deferred_from_coro(self._close(reason))

    async def _close(self, reason: str) -> None:
        try:
            if self._client.over:
                return
            announced = await maybe_deferred_to_future(self._thread.deferred(self._client.close(CLOSE_WITHIN)))
            self._count_written()
            own = self._stats.get_stats()
            fleet = await maybe_deferred_to_future(
                self._thread.deferred(fleet_stats.add(self._client.opened.console, own))
            )
            for name, value in fleet.items():
                self._stats.set_value(f"fleet/{name}", value)
            if announced:
                log.info("scrapy.finished %s is finished, in all processes", self._client.opened.job.id)
            elif reason != "finished":
                log.info(
                    "scrapy.stopped %s (%s); the job goes on in other processes, or with the next: scrapy crawl %s",
                    self._client.opened.job.id, reason, self._spider.name,
                )  # fmt: skip
            await maybe_deferred_to_future(self._thread.deferred(self._client.disconnect()))
        finally:
            self._thread.stop()

    def has_pending_requests(self) -> bool:
        """Until the job is finished, over all processes: so `spider_idle` means the fleet."""
        if self._client.over:
            return False
        return self._options.stay or not self._client.ended or bool(self._client.unsent)

    # Requests

    def enqueue_request(self, request: Request) -> bool:
        parent = self._parents.pop(request, None)
        visit = self._continuations.pop(request, None)
        if self._client.over:
            return False
        try:
            if visit is not None:
                return self._go_on(request, visit)
            return self._add(request, parent)
        except NotData as error:
            self._refuse(request, parent or visit, str(error))
            return False

    def _add(self, request: Request, parent: _Parent | None) -> bool:
        fingerprint = self._fingerprint(request, parent)
        results = self._client.results
        known = fingerprint in results.known or fingerprint in results.pending
        if known or (self._imported is not None and fingerprint in self._imported):
            self._stats.inc_value("dupefilter/filtered")
            return False
        url = parent.lease.task.url if isinstance(parent, Visit) else ""
        task = self._task(request, fingerprint, url)
        self._stats.inc_value("scheduler/enqueued")
        if not isinstance(parent, Visit) or parent.request not in self._visits:
            self._client.add_tasks([task])
            return True
        parent.children.append(task)
        if len(parent.children) >= MOST_CHILDREN:
            self._send_children(parent)
        elif self._client.notify_at == NEVER:
            self._client.notify_at = time.monotonic() + OLD
        return True

    def _go_on(self, request: Request, visit: Visit) -> bool:
        """A retry takes the place of its task, and so does a redirect that is not filtered. Another redirect is a new
        task: if its target is known, there is nothing left to do."""
        if visit.way is not None and visit.way.outcome is not None:
            # It goes out through another proxy, and as it is.
            return True
        own = visit.lease.task
        if not request.dont_filter and not self._options.unfiltered:
            fingerprint = self._filtered(request)
            if fingerprint != own.fingerprint:
                return self._add(request, visit)
        task = self._task(request, own.fingerprint, own.url, again=True)
        times = request.meta.get("retry_times", 0)
        visit.again = msgspec.structs.replace(
            task,
            parent=own.parent,
            attempt=times if type(times) is int and times >= 0 else own.attempt,
            created_at=own.created_at,
            blocked_by=own.blocked_by if own.lane == task.lane else (),
        )
        return True

    def _task(self, request: Request, fingerprint: int, parent: str, *, again: bool = False) -> Task:
        return self._codec.encode(
            request,
            fingerprint,
            now=self._client.now(),
            parent=parent,
            jar=self._jars.snapshot(request),
            again=again,
            pool=self._pool_of(request),
        )

    def _pool_of(self, request: Request) -> str:
        if self._pools is not None:
            return self._pools.name_of(request)
        if why := pool_names.refusal(str(request.meta.get(POOL) or ""), ()):
            raise NotData(f"{why} (the setting TROTLINE_PROXIES)")
        return ""

    def _fingerprint(self, request: Request, parent: _Parent | None) -> int:
        if not request.dont_filter and not self._options.unfiltered:
            return self._filtered(request)
        same = (request.method, request.url, request.body)
        if isinstance(parent, Visit):
            parent.occurrences[same] += 1
            return unfiltered(parent.lease.task.fingerprint, parent.occurrences[same] - 1, *same)
        if parent is None:
            # Of an extension, or of a handler of `spider_idle`: new each time.
            return unfiltered(secrets.randbits(63), 0, *same)
        self._started[same] = occurrence = self._started.get(same, -1) + 1
        return unfiltered(START, occurrence, *same)

    def _filtered(self, request: Request) -> int:
        pool = request.meta.get(POOL)
        if pool and names_account(str(pool)):
            # Every account sees a page of its own.
            whole = self._fingerprinter.fingerprint(request) + str(pool).encode()
            return filtered(hashlib.sha256(whole).digest())
        if self._imported is not None:
            return filtered(scrapy_redis.fingerprint(request.method, request.url, request.body))
        return filtered(self._fingerprinter.fingerprint(request))

    def _read_entries(self, entries: Sequence[bytes]) -> Tasks:
        """Of the inbox: each is a request of its own, as often as it is written there."""
        make = getattr(self._spider, "make_request_from_data", request_of)

        def task(request: Request) -> Task:
            return self._task(request, self._fingerprint(request, None), "")

        found = tasks_of(entries, make, task)
        self._stats.inc_value("trotline/inbox", len(entries))
        return found

    def _refuse(self, request: Request, parent: _Parent | None, why: str) -> None:
        self._stats.inc_value("trotline/not_stored")
        log.error(
            "scrapy.not_stored %s is not scheduled: %s. %s", redaction.url(request.url), redaction.text(why), _HINT
        )
        if isinstance(parent, Visit):
            parent.refused = parent.refused or f"{redaction.url(request.url)}: {why}"

    def next_request(self) -> Request | None:
        self._notified = False
        if time.monotonic() >= self._client.notify_at:
            self._flush_old()
        while self._client.ready:
            ready = self._client.ready.popleft()
            self._client.popped += 1
            if time.monotonic() > ready.latest:
                # The next starts of its lane are reserved for others.
                self._client.give_back(ready.lease)
                continue
            request = self._request(ready)
            if request is not None:
                self._stats.inc_value("scheduler/dequeued")
                return request
        return None

    def _request(self, ready: Ready) -> Request | None:
        """None: what is in the queue is no request of this spider. It must not stop the others."""
        lease, way = ready.lease, self._way_out(ready)
        if isinstance(way, Snooze | Bury):
            self._client.add_settlement(Settlement(lease, way))
            return None
        try:
            request, jar = self._codec.decode(lease.task)
            if jar is not None:
                self._jars.restore(request, jar)
        except (BadData, ValueError, TypeError) as error:
            why = redaction.text(str(error), about=lease.task)
            log.error("scrapy.not_read %s is buried: %s", redaction.url(lease.task.url), why)
            self._client.add_settlement(Settlement(lease, Bury(f"not read: {why[:200]}")))
            return None
        self._visits[request] = Visit(lease, request, way)
        if way is not None and way.account is not None:
            self._jars.open_session(way.account.jar, way.account.session.cookies, time.time())
            request.meta.update({"cookiejar": way.account.jar, ACCOUNT: way.account.account.name})
        return request

    def _way_out(self, ready: Ready) -> WayOut | Snooze | Bury | None:
        """None: directly. Snooze: not by this process, or not yet."""
        if self._pools is None:
            return None
        if ready.session is None:
            way = self._pools.way(ready.lease)
            return way if way is None or isinstance(way, Snooze) else WayOut(way)
        found = self._pools.account(ready.lease, ready.session, ready.asked_at)
        if isinstance(found, Snooze):
            return found
        proxy, held = found
        if held.account.user and not hasattr(self._spider, METHOD):
            return Bury(f"no login for {held.account.pool}: the spider has no method {METHOD}")
        return WayOut(proxy, held)

    def _flush_old(self) -> None:
        """Pages that take long: their requests do not wait for their end."""
        self._client.notify_at = NEVER
        for visit in self._visits.values():
            if visit.children:
                self._send_children(visit)

    def _send_children(self, visit: Visit) -> None:
        tasks, visit.children = visit.children, []
        visit.sent = True
        self._client.add_tasks(tasks)

    # What the engine does (engine_hooks.Watcher)

    def born(self, child: Request, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is not None:
            self._parents[child] = visit

    def continued(self, successor: Request, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is not None:
            self._continuations[successor] = visit

    def started(self, request: Request) -> None:
        self._parents[request] = _START

    def start_is_over(self) -> None:
        if not self._options.stay and not self._options.inbox and not self._client.over:
            self._client.seal()

    async def start_may_go_on(self) -> None:
        while self._client.unsent > MOST_UNSENT and not self._closing:
            drained: Deferred[None] = Deferred()
            self._drained.append(drained)
            await maybe_deferred_to_future(drained)

    def downloaded(self, result: Response | Failure, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is None:
            return
        if isinstance(result, Failure):
            visit.failure = result
            return
        visit.status = result.status
        visit.unhandled = result.status >= 300 and request.errback is None and not self._handles(result, request)

    def _handles(self, response: Response, request: Request) -> bool:
        """Does Scrapy's HttpErrorMiddleware let this response pass?"""
        meta, codes = request.meta, self._options.allowed_codes
        if codes is None or meta.get("handle_httpstatus_all"):
            return True
        listed = meta.get("handle_httpstatus_list", getattr(self._spider, "handle_httpstatus_list", codes))
        return response.status in (listed or ())

    def failed(self, failure: Failure, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is not None and visit.spider_error is None:
            visit.spider_error = failure

    def finished(self, request: Request) -> None:
        visit = self._visits.pop(request, None)
        if visit is None:
            return
        if visit.items:
            try:
                self._feeds.flush()
            except OSError as error:
                visit.item_error = Failure(error)
        settlement, held = visit.settlement(), visit.way.account if visit.way is not None else None
        if held is None:
            self._client.add_settlement(settlement)
        else:
            self._client.add_settlement(*held.closed(settlement, self._cookies(held)))

    def slot_of(self, request: Request) -> str | None:
        return SLOT if request in self._visits else None

    # Signals

    def _response_downloaded(self, response: Response, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is None:
            return
        visit.size += len(response.body)
        visit.status = response.status
        visit.rest = asked_rest(response.status, response.headers.get("Retry-After"))
        if self._options.adaptive:
            latency = request.meta.get("download_latency", 0.0)
            visit.latency = latency if isinstance(latency, float) else 0.0

    def _item_scraped(self, response: Any) -> None:
        visit = self._visits.get(getattr(response, "request", None))  # type: ignore[arg-type]
        if visit is not None:
            visit.items += 1

    def _item_error(self, response: Any, failure: Failure) -> None:
        visit = self._visits.get(getattr(response, "request", None))  # type: ignore[arg-type]
        if visit is not None:
            visit.item_error = failure

    def _idle(self) -> None:
        if self._client.why_ended:
            raise CloseSpider(self._client.why_ended)

    # Between the threads

    def _busy(self) -> int | None:
        """Asked by the client's thread."""
        engine = self._engine
        slot = engine.scraper.slot
        if not engine.running or engine.paused or slot is None or slot.needs_backout():
            return None
        return len(engine.downloader.active)

    def _notify(self) -> None:
        """Called by the client's thread: leases are ready, results were sent, or the job has ended."""
        if not self._notified:
            self._notified = True
            self._notified_at = time.monotonic()
            self._back(self._go)

    def _go(self) -> None:
        self._notified = False
        self._client.lag += (time.monotonic() - self._notified_at - self._client.lag) / 8
        self._count_written()
        if self._client.unsent <= MOST_UNSENT:
            waiting, self._drained = self._drained, []
            for one in waiting:
                one.callback(None)
        if self._engine._slot is not None:
            self._engine._slot.nextcall.schedule()

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
