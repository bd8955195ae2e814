"""Requests of a spider as tasks of the frontier: their identity, their pool, and the cookies that they carry."""

import hashlib
import secrets
from collections.abc import Callable
from typing import Any, cast

import msgspec
from scrapy import Request
from scrapy.crawler import Crawler

from trotline.bridges.scrapy.cookie_jars import CookieJars
from trotline.bridges.scrapy.imported_filter import ImportedFilter
from trotline.bridges.scrapy.options import Options
from trotline.bridges.scrapy.pools import POOL, Pools
from trotline.bridges.scrapy.request_codec import RequestCodec
from trotline.bridges.scrapy.visits import Visit
from trotline.model.proxy_pool import names_account
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules import pool_names, scrapy_redis
from trotline.rules.scrapy_identity import START, filtered, unfiltered
from trotline.rules.tagged_json import NotData


class Start:
    """In place of a page, for what `start()` yields."""


STARTED = Start()
Parent = Visit | Start


class RequestTasks:
    def __init__(
        self,
        crawler: Crawler,
        options: Options,
        codec: RequestCodec,
        jars: CookieJars,
        pools: Pools | None,
        now: Callable[[], Moment],
    ) -> None:
        """`now`: the frontier's time."""
        self.imported: ImportedFilter | None = None
        self._fingerprinter = cast(Any, crawler.request_fingerprinter)
        self._unfiltered = options.unfiltered
        self._codec = codec
        self._jars = jars
        self._pools = pools
        self._now = now
        self._started: dict[tuple[str, str, bytes], int] = {}

    def task(self, request: Request, fingerprint: int, parent: str, *, before: Task | None = None) -> Task:
        """NotData: it cannot be stored. `before`: the task whose retry or redirect it is."""
        return self._codec.encode(
            request,
            fingerprint,
            now=self._now(),
            parent=parent,
            jar=self._jars.snapshot(request),
            before=before,
            pool=self._pool_of(request),
        )

    def continued(self, request: Request, own: Task) -> Task:
        """The same task with the request of a retry, or of a redirect that is not filtered."""
        task = self.task(request, own.fingerprint, own.url, before=own)
        times = request.meta.get("retry_times", 0)
        return msgspec.structs.replace(
            task,
            parent=own.parent,
            attempt=times if type(times) is int and times >= 0 else own.attempt,
            created_at=own.created_at,
            blocked_by=own.blocked_by if own.lane == task.lane else (),
        )

    def of_entry(self, request: Request) -> Task:
        """Of the inbox: each is a request of its own, as often as it is written there."""
        return self.task(request, self.fingerprint(request, None), "")

    def is_filtered(self, request: Request) -> bool:
        return not request.dont_filter and not self._unfiltered

    def fingerprint(self, request: Request, parent: Parent | None) -> int:
        if self.is_filtered(request):
            return self.filtered(request)
        same = (request.method, request.url, request.body)
        if isinstance(parent, Visit):
            parent.occurrences[same] += 1
            return unfiltered(parent.lease.task.fingerprint, parent.occurrences[same] - 1, *same)
        if parent is None:
            # Of an extension, or of a handler of `spider_idle`: new each time.
            return unfiltered(secrets.randbits(63), 0, *same)
        self._started[same] = occurrence = self._started.get(same, -1) + 1
        return unfiltered(START, occurrence, *same)

    def filtered(self, request: Request) -> int:
        pool = request.meta.get(POOL)
        if pool and names_account(str(pool)):
            # Every account sees a page of its own.
            whole = self._fingerprinter.fingerprint(request) + str(pool).encode()
            return filtered(hashlib.sha256(whole).digest())
        if self.imported is not None:
            return filtered(scrapy_redis.fingerprint(request.method, request.url, request.body))
        return filtered(self._fingerprinter.fingerprint(request))

    def _pool_of(self, request: Request) -> str:
        if self._pools is not None:
            return self._pools.name_of(request)
        if why := pool_names.refusal(str(request.meta.get(POOL) or ""), ()):
            raise NotData(f"{why} (the setting TROTLINE_PROXIES)")
        return ""
