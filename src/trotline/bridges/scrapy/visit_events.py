"""What Scrapy's engine and its signals say about requests under way, noted in their visits (engine_hooks.Watcher)."""

import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from trotline.bridges.scrapy.cookie_jars import CookieJars
from trotline.bridges.scrapy.errbacks import has_errback
from trotline.bridges.scrapy.feeds import Feeds
from trotline.bridges.scrapy.frontier_client import FrontierClient
from trotline.bridges.scrapy.held_account import HeldAccount
from trotline.bridges.scrapy.held_back import HeldBack
from trotline.bridges.scrapy.options import Options
from trotline.bridges.scrapy.request_codec import SLOT
from trotline.bridges.scrapy.request_tasks import STARTED, Parent
from trotline.bridges.scrapy.unwritten import Unwritten
from trotline.bridges.scrapy.visits import Visit, asked_rest
from trotline.model.account import StoredCookie

MOST_UNSENT = 5_000
"""While so many requests are on their way to the frontier, `start()` waits."""


class VisitEvents:
    def __init__(
        self,
        crawler: Crawler,
        spider: Spider,
        options: Options,
        client: FrontierClient,
        jars: CookieJars,
        visits: dict[Request, Visit],
        held: HeldBack,
    ) -> None:
        """`visits`: by the request object that the engine was given."""
        self.parents: WeakKeyDictionary[Request, Parent] = WeakKeyDictionary()
        """Of requests that are about to be scheduled."""
        self.continuations: WeakKeyDictionary[Request, Visit] = WeakKeyDictionary()
        self._spider = spider
        self._options = options
        self._client = client
        self._jars = jars
        self._visits = visits
        self._feeds = Feeds(crawler, self._item_lost)
        self._unwritten = Unwritten(held, self._feeds.flush, self._settle)
        self._drained: list[Deferred[None]] = []
        self._closing = False
        handlers: dict[object, Callable[..., None]] = {
            signals.item_scraped: self._item_scraped,
            signals.item_error: self._item_error,
            signals.request_reached_downloader: self._reached,
            signals.response_downloaded: self._response_downloaded,
        }
        for signal, handler in handlers.items():
            crawler.signals.connect(handler, signal)

    def close(self) -> None:
        """`start()` does not wait any more."""
        self._closing = True

    # engine_hooks.Watcher

    def born(self, child: Request, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is not None:
            self.parents[child] = visit

    def continued(self, successor: Request, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is not None:
            self.continuations[successor] = visit

    def started(self, request: Request) -> None:
        self.parents[request] = STARTED

    def start_is_over(self) -> None:
        if not self._options.stay and not self._options.inbox and not self._client.end.over:
            self._client.seal()

    async def start_may_go_on(self) -> None:
        while self._client.unsent > MOST_UNSENT and not self._closing:
            drained: Deferred[None] = Deferred()
            self._drained.append(drained)
            await maybe_deferred_to_future(drained)

    def results_were_sent(self) -> None:
        if self._client.unsent <= MOST_UNSENT:
            waiting, self._drained = self._drained, []
            for one in waiting:
                one.callback(None)

    def downloaded(self, result: Response | Failure, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is None:
            return
        if isinstance(result, Failure):
            visit.failure = result
            return
        visit.status = result.status
        visit.unhandled = result.status >= 300 and not has_errback(request) and not self.handles(result, request)

    def handles(self, response: Response, request: Request) -> bool:
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
        if not visit.items:
            self._settle(visit)
            return
        try:
            self._unwritten.add(visit)
        except BrokenPipeError as error:
            visit.item_error = Failure(error)  # type: ignore[no-untyped-call]
            self._settle(visit)

    def flush_again(self) -> None:
        """Called often: pages may wait for a feed that could not be written."""
        self._unwritten.again()

    def flush_last(self) -> None:
        self._unwritten.close()

    def _settle(self, visit: Visit) -> None:
        settlement, held = visit.settlement(), visit.way.account if visit.way is not None else None
        if held is None:
            self._client.add_settlement(settlement)
        else:
            self._client.add_settlement(*held.closed(settlement, self.cookies(held)))

    def cookies(self, held: HeldAccount) -> tuple[StoredCookie, ...]:
        return self._jars.session(held.jar, held.session.cookies, time.time())

    def slot_of(self, request: Request) -> str | None:
        return SLOT if request in self._visits else None

    # Signals

    def _reached(self, request: Request) -> None:
        visit = self._visits.get(request)
        if visit is not None:
            visit.reach_downloader()

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

    def _item_lost(self, response: Any, failure: Failure) -> None:
        self._item_error(response, failure)
        self._unwritten.lost(str(failure.value))

    def _item_error(self, response: Any, failure: Failure) -> None:
        visit = self._visits.get(getattr(response, "request", None))  # type: ignore[arg-type]
        if visit is not None:
            visit.item_error = failure
