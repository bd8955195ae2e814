"""One archived page through its handler, as if it had just been fetched."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from trotline.model.archive import ArchivedPage, CaptureKind
from trotline.model.harvest import Artifact, Harvest
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.verdicts import judge
from trotline.rules.warc_writer import TOO_LARGE
from trotline.spider import harvest, hook_calls
from trotline.spider.page import Page
from trotline.spider.reparsed_page import ReparsedPage
from trotline.spider.route import Route
from trotline.spider.spider import Spider


class NotRead(Exception):
    """Why a page is not parsed: not a failure of the handler."""


class Reparse:
    """For one spider: its routes, limits and checks as they are now."""

    def __init__(self, spider: Spider, *, any_spider: bool = False) -> None:
        """`any_spider`: pages that another spider fetched, too. An archive may be that of many, and their routes may
        have the same names."""
        self._spider = spider
        self._any_spider = any_spider
        self._limits = spider.limits or Limits()
        self._tried = set[str]()

    async def read(self, page: ArchivedPage) -> tuple[Harvest, list[Artifact]]:
        """What its handler gives and keeps. `NotRead`, or HandlerFailed."""
        if page.entry.kind is not CaptureKind.RESPONSE:
            raise NotRead("files that handlers kept")
        if TOO_LARGE in page.about:
            raise NotRead("the data of its task was too large to be archived")
        if not page.entry.route:
            raise NotRead("robots.txt and sitemaps")
        fetched_by = page.entry.job.rpartition("-")[0]
        if fetched_by and fetched_by != self._spider.name and not self._any_spider:
            raise NotRead(f"pages of the spider {fetched_by!r} (--job takes those of a job all the same)")
        if len(page.answer.body) > self._limits.largest_body:
            raise NotRead(f"pages over the limit of {self._limits.largest_body:,} bytes (decoded_body)")
        task = task_of(page)
        route = self._spider.routes.get(task.route)
        if route is None:
            raise NotRead(f"the spider has no route {task.route!r} now")
        verdict = judge(task, page.answer, limits=self._limits, now=page.entry.at, wanted_statuses=route.status)
        if verdict.kind is not Kind.OK:
            raise NotRead(f"{verdict.kind.value} pages")
        seen: Page = self._page(task, page, route)
        if self._spider.hooks.after_answer:
            hooked = hook_calls.after_answer(self._spider.hooks.after_answer, seen)
            if isinstance(hooked, str):
                raise NotRead(hooked)
            seen = hooked
        if self._spider.blocked and (why := self._spider.says_blocked(seen)):
            raise NotRead(f"blocked pages ({why})")
        if route.is_async:
            reading = harvest.read_async(self._spider, route, seen, site=task.site, seen_at=page.entry.at)
            return await asyncio.wait_for(reading, self._limits.handler), seen.kept
        # A sync handler that hangs is interrupted, and fails; see `interruptible`.
        signal.setitimer(signal.ITIMER_REAL, self._limits.parse)
        try:
            return harvest.read(self._spider, route, seen, site=task.site, seen_at=page.entry.at), seen.kept
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Once for all pages: handlers that take too long get a TimeoutError."""

        def late(number: int, frame: FrameType | None) -> None:
            raise TimeoutError(f"the handler took more than {self._limits.parse:g} s")

        before = signal.signal(signal.SIGALRM, late)
        try:
            yield
        finally:
            signal.signal(signal.SIGALRM, before)

    def _page(self, task: Task, page: ArchivedPage, route: Route) -> ReparsedPage:
        seen = ReparsedPage(task, page.answer, route, _text(page.about.get("account")))
        seen.tried = self._tried
        return seen


def task_of(page: ArchivedPage) -> Task:
    """The task as far as a handler can see it. The archive may have been written by others: odd values become the
    defaults."""
    about = page.about
    meta, key = about.get("meta"), about.get("key")
    return Task(
        url=page.answer.url,
        route=page.entry.route,
        lane=_text(about.get("lane")),
        fingerprint=_fingerprint(about.get("task")),
        key=key if isinstance(key, str) else None,
        depth=_number(about.get("depth")),
        attempt=_number(about.get("attempt")),
        site=_text(about.get("site")),
        pool=_text(about.get("pool")),
        parent=_text(about.get("parent")),
        session=_text(about.get("session")),
        chain=_text(about.get("chain")),
        method=page.method,
        meta=meta if isinstance(meta, dict) else {},
    )


def _fingerprint(value: object) -> int:
    try:
        found = int(value, 16) if isinstance(value, str) else 0
    except ValueError:
        return 0
    return found - 2**64 if 2**63 <= found < 2**64 else found if 0 <= found < 2**63 else 0


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
