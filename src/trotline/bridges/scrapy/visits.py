"""A leased request on its way through Scrapy, and the outcome of its lease."""

import traceback
from collections import Counter
from pathlib import Path

import scrapy
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.response import response_status_message
from twisted.python.failure import Failure

from trotline.bridges.scrapy.errbacks import has_errback
from trotline.bridges.scrapy.way_out import WayOut, failure_of
from trotline.model.job import BYTES
from trotline.model.lease import LaneFeedback, Lease, Settlement
from trotline.model.outcome import Bury, Done, Outcome, Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.record_row import whole
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.rules import pool_tallies, redaction

_LONGEST_REASON = 200
_LIBRARIES = tuple(str(Path(file).parent) for file in (scrapy.__file__, __file__))
_DROPPED = frozenset((404, 410))
_THROTTLED = 429
_BLOCKED = frozenset((401, 403, _THROTTLED))
_WEB = ("http:", "https:")
_UNAVAILABLE = 503
_SERVER_ERROR = 500
_OF_ENVIRONMENT = "_scheme_proxy"
"""In the meta of a request whose proxy is that of the environment (http_proxy): one way out for all requests."""


class Visit:
    """What happened to one lease so far. Used in Scrapy's thread only."""

    __slots__ = (
        "again", "children", "failure", "given", "item_error", "items", "latency", "lease", "occurrences",
        "proxy_of_project", "reached", "refused", "refused_more", "request", "rest", "sent", "size", "spider_error",
        "status", "unhandled", "waits_since", "way",
    )  # fmt: skip

    def __init__(self, lease: Lease, request: Request, way: WayOut | None = None) -> None:
        self.lease = lease
        self.request = request
        self.way = way
        """Through a pool; None: it has none."""
        self.children: list[Task] = []
        """Not yet with the frontier,"""
        self.waits_since: Seconds = 0.0
        """and since when the first of them is not, by the monotonic clock."""
        self.sent = False
        """Some are, before its end."""
        self.occurrences: Counter[tuple[str, str, bytes]] = Counter()
        """Of equal requests with `dont_filter`."""
        self.given: dict[int, object] = {}
        """By its id: what its requests carry that can change (shared_objects)."""
        self.again: Task | None = None
        """The same task with the request of a retry."""
        self.reached = False
        """It was given to the downloader: no middleware has answered or refused it."""
        self.proxy_of_project = False
        """It went out through a proxy that the project has chosen for it, and through no pool."""
        self.status = 0
        self.size = 0
        self.latency: Seconds = 0.0
        self.rest: Seconds | None = None
        """Rate limited: the pause that the site wants; 0: it does not say."""
        self.items = 0
        self.failure: Failure | None = None
        """Of the download, after all retries."""
        self.spider_error: Failure | None = None
        self.item_error: Failure | None = None
        self.refused = ""
        """The first request that it yielded and that cannot be stored, and why;"""
        self.refused_more = 0
        """and how many more of them there are."""
        self.unhandled = False
        """The response was an error, and the spider does not handle those."""

    def reach_downloader(self) -> None:
        """All middlewares have seen it. Those that set its proxy may remove that from `meta` after a failure."""
        self.reached = True
        of_pool = self.way is not None and self.way.proxy is not None
        meta = self.request.meta
        self.proxy_of_project = not of_pool and bool(meta.get("proxy")) and not meta.get(_OF_ENVIRONMENT)

    def settlement(self) -> Settlement:
        tallies: dict[str, int] = {}
        if self.items:
            tallies["records"] = self.items
        if self.size:
            tallies[BYTES] = self.size
        member = self._member()
        if self.lease.member and (name := pool_tallies.tally(member, self.lease.task.lane)):
            tallies[name] = 1
            if self.size:
                tallies[pool_tallies.size_tally(self.lease.task.lane)] = self.size
        return Settlement(
            self.lease,
            self._outcome(),
            children=tuple(self.children),
            news=self._feedback(),
            tallies=tallies,
            member=member,
            lift=self.way.lift if self.way is not None else (),
        )

    def _member(self) -> MemberResult:
        """A redirect is seen by no judge: the site has answered."""
        if self.way is None or not self.way.used:
            return MemberResult.UNUSED
        judged = self.way.member
        return MemberResult.GOOD if judged is MemberResult.UNUSED and self.status else judged

    def _outcome(self) -> Outcome:
        if self.way is not None and self.way.outcome is not None:
            return self.way.outcome
        if self.again is not None:
            return Snooze(0.0, self._why_again(self.again), self.again)
        if self.spider_error is not None:
            return self._buried("spider error", self.spider_error)
        if self.item_error is not None:
            return self._buried("item pipeline error", self.item_error)
        if self.refused:
            return Bury(f"not stored: {self._text(self.refused)[:_LONGEST_REASON]}{_and_more(self.refused_more)}")
        if self.failure is not None and not has_errback(self.request):
            if isinstance(self.failure.value, IgnoreRequest):
                return Done(why=f"refused: {self._said(self.failure)}")
            return Bury(f"{Kind.UNREACHABLE}: {self._said(self.failure)}")
        if self.unhandled and not (self.items or self.children or self.sent):
            if self.status in _DROPPED:
                return Done(why=f"{Kind.GONE}: {self.status}")
            return Bury(f"{_kind_of(self.status)}: {self.status}")
        return Done()

    def _why_again(self, again: Task) -> str:
        """As Scrapy's own log says it. A middleware that catches an exception keeps it for itself."""
        if again.url != self.lease.task.url:
            return "moved"
        if self.status:
            return f"retry: {response_status_message(self.status)}"
        return "retry: no response" if self.reached else "retry"

    def _buried(self, what: str, failure: Failure) -> Bury:
        return Bury(f"{what}: {self._said(failure)}", self._text(_traceback(failure.value)))

    def _said(self, failure: Failure) -> str:
        first = str(failure.value).partition("\n")[0]
        name = type(failure.value).__name__
        return self._text(f"{name}: {first}" if first else name)[:_LONGEST_REASON]

    def _text(self, text: str) -> str:
        return redaction.text(whole(text), about=self.lease.task)

    def _feedback(self) -> LaneFeedback | None:
        """Of each attempt. Which pages are tried again is the business of Scrapy's middlewares."""
        if self.rest is not None:
            return LaneFeedback(Kind.THROTTLED, rest=self.rest)
        if self.status:
            if self.status < 400:
                return LaneFeedback(Kind.OK, took=self.latency)
            return LaneFeedback(Kind.BROKEN) if self._is_broken() else None
        return LaneFeedback(Kind.UNREACHABLE) if self._is_unreachable() else None

    def _is_broken(self) -> bool:
        """A server error that the spider does not handle, or that a middleware tries again. A 403 is not reported: one
        section that is closed to all would stop the whole host. Proxies answer with 502 and 503 of their own, too."""
        if self.proxy_of_project:
            return False
        return self.status >= _SERVER_ERROR and (self.unhandled or self.again is not None)

    def _is_unreachable(self) -> bool:
        if not self.reached or self.proxy_of_project or not self.lease.task.url.startswith(_WEB):
            return False
        if self.way is not None and self.way.proxy is not None and self.way.member is not MemberResult.UNCLEAR:
            # A failure of the proxy says nothing about the host.
            return False
        if self.failure is not None and (error := self.failure.value) is not None:
            return failure_of(error) is not None or isinstance(error, OSError)
        # A middleware wants a retry, and keeps the error for itself.
        return self.again is not None


def _kind_of(error_status: int) -> Kind:
    if error_status >= _SERVER_ERROR:
        return Kind.BROKEN
    return Kind.BLOCKED if error_status in _BLOCKED else Kind.GONE


def _and_more(requests: int) -> str:
    return f"; and {requests:,} more request{'s' if requests > 1 else ''}" if requests else ""


def _traceback(error: BaseException | None) -> str:
    """Without the frames of Scrapy, which are the same for all pages; unless there are no others."""
    if error is None:
        return ""
    shown = traceback.TracebackException.from_exception(error)
    own = [frame for frame in shown.stack if not frame.filename.startswith(_LIBRARIES)]
    shown.stack = traceback.StackSummary.from_list(own or shown.stack)
    return "".join(shown.format())


def asked_rest(status: int, retry_after: bytes | None) -> Seconds | None:
    """The pause that a response asks for; None: it is not about the rate."""
    if status != _THROTTLED and not (status == _UNAVAILABLE and retry_after):
        return None
    return float(retry_after) if retry_after and retry_after.isdigit() and len(retry_after) < 8 else 0.0
