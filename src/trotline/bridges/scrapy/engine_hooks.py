"""The places in Scrapy's engine that the bridge needs, which its scheduler port does not have.

They are the same in Scrapy 2.13 to 2.19, with and without a reactor. Each is checked when the spider opens: a version
without one is refused, as a request that is never settled would be visited for ever.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Protocol

import scrapy
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from twisted.python.failure import Failure

from trotline.errors import SettingsError

UNLIMITED = 1_000_000


class Watcher(Protocol):
    """Called for events of requests. `request` is the object that `next_request` returned."""

    def born(self, child: Request, request: Request) -> None:
        """The callback or errback of `request` has yielded it."""
        ...

    def continued(self, successor: Request, request: Request) -> None:
        """A downloader middleware wants it instead: a retry, a redirect."""
        ...

    def started(self, request: Request) -> None:
        """`start()` has yielded it."""
        ...

    def start_is_over(self) -> None: ...

    async def start_may_go_on(self) -> None:
        """Waits while too much is on its way to the frontier."""
        ...

    def downloaded(self, result: Response | Failure, request: Request) -> None: ...

    def failed(self, failure: Failure, request: Request) -> None:
        """The callback or errback has raised."""
        ...

    def finished(self, request: Request) -> None:
        """Its output is used up, its items have passed the pipelines, and its new requests are scheduled."""
        ...

    def slot_of(self, request: Request) -> str | None:
        """The downloader slot of a leased request."""
        ...


def check(engine: Any) -> None:
    """SettingsError names what this version of Scrapy lacks."""
    wanted: dict[str, Callable[[], Any]] = {
        "engine._start": lambda: engine._start,
        "engine._slot.remove_request": lambda: engine._slot.remove_request,
        "engine._slot.nextcall.schedule": lambda: engine._slot.nextcall.schedule,
        "engine._handle_downloader_output": lambda: engine._handle_downloader_output,
        "engine.downloader.active": lambda: engine.downloader.active,
        "engine.downloader.get_slot_key": lambda: engine.downloader.get_slot_key,
        "engine.downloader.per_slot_settings": lambda: engine.downloader.per_slot_settings,
        "engine.scraper.handle_spider_output_async": lambda: engine.scraper.handle_spider_output_async,
        "engine.scraper.handle_spider_error": lambda: engine.scraper.handle_spider_error,
    }
    for name, find in wanted.items():
        try:
            find()
        except AttributeError as error:
            raise SettingsError(
                f"Scrapy {scrapy.__version__} has no {name}, which the Trotline add-on needs",
                hint="Use Scrapy 2.13 to 2.19: pip install '.[scrapy]'",
            ) from error


def install(engine: Any, watcher: Watcher, slot: str) -> None:
    check(engine)
    _watch_downloads(engine, watcher)
    _watch_output(engine.scraper, watcher)
    _watch_end(engine._slot, watcher)
    _give_slot(engine.downloader, watcher, slot)
    if engine._start is not None:
        engine._start = _watched_start(engine._start, watcher)


def _watch_downloads(engine: Any, watcher: Watcher) -> None:
    handle = engine._handle_downloader_output

    def handle_downloader_output(result: Any, request: Request) -> Any:
        if isinstance(result, Request):
            watcher.continued(result, request)
        elif isinstance(result, Response | Failure):
            watcher.downloaded(result, request)
        return handle(result, request)

    engine._handle_downloader_output = handle_downloader_output


def _watch_output(scraper: Any, watcher: Watcher) -> None:
    handle_output, handle_error = scraper.handle_spider_output_async, scraper.handle_spider_error

    async def handle_spider_output(result: Any, request: Request, response: Any) -> None:
        watched = _watched_later if isinstance(result, AsyncIterator) else _watched
        await handle_output(watched(result, request, watcher), request, response)

    def handle_spider_error(failure: Failure, request: Request, response: Any, *more: Any) -> None:
        if not isinstance(failure.value, CloseSpider):
            watcher.failed(failure, request)
        handle_error(failure, request, response, *more)

    scraper.handle_spider_output_async = handle_spider_output
    scraper.handle_spider_error = handle_spider_error


def _watched(result: Iterable[Any], request: Request, watcher: Watcher) -> Iterable[Any]:
    for one in result:
        if isinstance(one, Request):
            watcher.born(one, request)
        yield one


async def _watched_later(result: AsyncIterator[Any], request: Request, watcher: Watcher) -> AsyncIterator[Any]:
    async for one in result:
        if isinstance(one, Request):
            watcher.born(one, request)
        yield one


def _watch_end(slot: Any, watcher: Watcher) -> None:
    remove: Callable[[Request], None] = slot.remove_request

    def remove_request(request: Request) -> None:
        # Before it: removing the last one closes the spider.
        watcher.finished(request)
        remove(request)

    slot.remove_request = remove_request


def _give_slot(downloader: Any, watcher: Watcher, slot: str) -> None:
    """Leased requests have the pace of the frontier; what the engine downloads besides them (robots.txt, files and
    images) keeps the delays of the project."""
    usual: Callable[[Request], str] = downloader.get_slot_key

    def get_slot_key(request: Request) -> str:
        return watcher.slot_of(request) or usual(request)

    downloader.get_slot_key = get_slot_key
    # A copy: it is that of the settings, which are frozen.
    downloader.per_slot_settings = {
        **downloader.per_slot_settings,
        slot: {"concurrency": UNLIMITED, "delay": 0.0},
    }


async def _watched_start(start: AsyncIterator[Any], watcher: Watcher) -> AsyncIterator[Any]:
    try:
        async for one in start:
            if isinstance(one, Request):
                watcher.started(one)
                await watcher.start_may_go_on()
            yield one
    except Exception:
        # As without the bridge: what it has yielded is crawled to its end.
        watcher.start_is_over()
        raise
    # Not after a shutdown: the next process runs it from its beginning.
    watcher.start_is_over()
