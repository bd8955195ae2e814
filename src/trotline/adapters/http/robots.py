"""robots.txt: fetched once per origin and day.

With a shared cache, once for a whole fleet: the site's reply (status and text) is shared, and each process parses it.
Failures that may be local (no answer, no such name, the proxy) are not shared: other workers may succeed. A file that
was read through one proxy holds for all proxies, over https also for direct requests; a failure or refusal holds for
that proxy only.
"""

import asyncio
import time
import zlib
from contextlib import suppress

import msgspec
from protego import Protego

from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Way
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.ports.clock import Clock
from trotline.ports.fetcher import Fetcher
from trotline.ports.robots import UNMARKED, UNREADABLE, Marked, Permission
from trotline.ports.shared_cache import SharedCache
from trotline.rules.charset import decode
from trotline.rules.robots import Prefilter, for_agent
from trotline.rules.verdicts import judge

GOOD_FOR: Seconds = 24 * 3600.0
FIRST_WAIT: Seconds = 60.0
LONGEST_WAIT: Seconds = 3600.0
_ASKED_WITHIN_PATIENCE = 10
"""The first wait for a host that does not answer is at most this part of the time after which it is given up."""
HOPS = 5
ORIGINS = 10_000
"""Cached origins; the oldest entry is evicted first."""
MOST_TEXT = 16 * 1024 * 1024
"""Total bytes of the cached files."""
WAIT_FOR_OTHERS: Seconds = 30.0
"""Limit: the worker that fetches it for all may have died."""

_MAY_BE_A_BAN = frozenset({401, 403, 407, 429, 451}) | frozenset(range(500, 600))
"""Statuses that a site also sends to single addresses that it bans."""
_NOT_ASKED = frozenset(
    {
        FailureKind.DNS,
        FailureKind.NO_SUCH_HOST,
        FailureKind.CONNECT,
        FailureKind.TLS,
        FailureKind.GUARD,
        FailureKind.PROXY,
        FailureKind.PROXY_REFUSED,
    }
)
"""Failures before a request was sent."""
_Place = tuple[str, Way | None]
"""Origin, and the way whose failure it is."""
_PROXIED = " through proxies"
_DISALLOWED = Permission(False, why="robots.txt")


class _CachedRules(msgspec.Struct):
    """The rules of one origin's robots.txt, valid until `until`."""

    until: Seconds
    allowed: Permission = Permission(True)
    parser: Protego | None = None
    """None: nothing is disallowed."""
    prefilter: Prefilter | None = None
    unreadable: str = ""
    """Why it could not be read: everything is disallowed until it can."""
    throttled: bool = False
    """The site rate limits us until then."""
    way_failed: bool = False
    """The proxy failed."""
    of_way: bool = False
    """Seen through a proxy, and possibly because of it: other ways ask by themselves."""
    failures: int = 0
    size: int = 0
    """Bytes of the file."""


class _SiteReply(msgspec.Struct, array_like=True):
    """A site's reply as workers share it: a version byte, then deflated msgpack."""

    status: int
    body: bytes
    rest: Seconds | None = None
    """Retry-After, if the site is rate limiting."""


_VERSION = b"\x01"


class RobotsTxt:
    """Implements `ports.robots.Robots` after RFC 9309."""

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        agent: str,
        limits: Limits,
        clock: Clock | None = None,
        cache: SharedCache | None = None,
        patience: Seconds | None = None,
    ) -> None:
        """`patience`: after this time with failures only a host is given up; it is asked some times before."""
        self._first_wait = FIRST_WAIT if patience is None else min(FIRST_WAIT, patience / _ASKED_WITHIN_PATIENCE)
        self._fetcher = fetcher
        self._cache = cache
        self._agent = agent
        self._limits = limits
        self._now = clock.now if clock else time.monotonic
        self._cached: dict[_Place, _CachedRules] = {}
        self._text = 0
        """Bytes of the cached files."""
        self._asking: dict[_Place, asyncio.Task[_CachedRules]] = {}
        self._first_asking: dict[str, asyncio.Task[_CachedRules]] = {}
        """Origin -> the fetch that the other ways wait for."""

    async def ask(self, url: str, marked: Marked = UNMARKED, way: Way | None = None) -> Permission:
        origin = _origin(url)
        # Over plain http a proxy can write what it likes: its answer does not count for direct requests.
        name = origin if way is None or origin.startswith("https:") else f"{origin}{_PROXIED}"
        rules = self._known(name, way) or await self._learn(name, marked, way)
        if rules.unreadable:
            wait = max(1.0, rules.until - self._now())
            return Permission(
                False,
                ask_again=wait,
                why=f"{UNREADABLE}{rules.unreadable}",
                throttled=rules.throttled,
                way_failed=rules.way_failed,
                asked=rules.allowed.asked,
            )
        if rules.parser is None:
            return rules.allowed
        path = url[len(origin) :] or "/"
        if rules.prefilter is not None and rules.prefilter.surely_allowed(path):
            return rules.allowed
        with marked:
            allowed = rules.parser.can_fetch(url, self._agent)
        if allowed:
            return rules.allowed
        return msgspec.structs.replace(_DISALLOWED, delay=rules.allowed.delay)

    def _known(self, origin: str, way: Way | None) -> _CachedRules | None:
        """The site's rules are the same for every way; a failure is of one way."""
        now = self._now()
        rules = self._cached.get((origin, None))
        if way is not None and (rules is None or rules.until <= now or rules.unreadable):
            rules = self._cached.get((origin, way))
        return None if rules is None or rules.until <= now else rules

    async def _learn(self, origin: str, marked: Marked, way: Way | None) -> _CachedRules:
        """Fetch it, or wait for a fetch that is running already."""
        place = (origin, way)
        # Shielded: a cancelled caller must not cancel the fetch for the others.
        if place not in self._asking and (other := self._first_asking.get(origin)) is not None:
            rules = await asyncio.shield(other)
            if not rules.of_way and not rules.unreadable:
                return rules
        asking = self._asking.get(place)
        if asking is None:
            asking = self._asking[place] = asyncio.create_task(self._read(origin, marked, way))
            self._first_asking.setdefault(origin, asking)
            asking.add_done_callback(lambda done: self._asked(place, done))
        return await asyncio.shield(asking)

    def _asked(self, place: _Place, done: "asyncio.Task[_CachedRules]") -> None:
        del self._asking[place]
        if self._first_asking.get(place[0]) is done:
            del self._first_asking[place[0]]

    async def _read(self, origin: str, marked: Marked, way: Way | None) -> _CachedRules:
        rules = await self._from_cache(self._cache, origin, marked) if self._cache is not None else None
        rules = rules or await self._from_site(origin, marked, way)
        place = (origin, way if rules.of_way else None)
        self._forget(place)
        while self._cached and (len(self._cached) >= ORIGINS or self._text + rules.size > MOST_TEXT):
            self._forget(next(iter(self._cached)))
        self._cached[place] = rules
        self._text += rules.size
        return rules

    def _forget(self, place: _Place) -> None:
        rules = self._cached.pop(place, None)
        self._text -= rules.size if rules else 0

    async def _from_cache(self, cache: SharedCache, origin: str, marked: Marked) -> _CachedRules | None:
        """From another worker's fetch; None if this worker has to fetch."""
        kept = await cache.find(origin, WAIT_FOR_OTHERS)
        reply = _unpacked(kept.value) if kept is not None else None
        if kept is None or reply is None:
            return None
        return msgspec.structs.replace(self._interpret(origin, reply, marked), until=self._now() + kept.left)

    async def _from_site(self, origin: str, marked: Marked, way: Way | None) -> _CachedRules:
        shared = False
        try:
            answer = await self._fetch(origin, way)
            if isinstance(answer, Failure):
                rules = self._no_answer(origin, answer, way)
                allowed = Permission(True, asked=_was_asked(origin, answer))
                return msgspec.structs.replace(rules, of_way=way is not None, allowed=allowed)
            reply = self._reply(answer)
            rules = self._interpret(origin, reply, marked, way)
            if way is not None and reply.status in _MAY_BE_A_BAN:
                # Of this proxy, perhaps: not for other ways, and not for a day. The page's own visit reports it.
                until = rules.until if rules.unreadable else self._now() + FIRST_WAIT
                return msgspec.structs.replace(rules, until=until, of_way=True)
            if self._cache is not None:
                await self._cache.put(origin, _packed(reply), max(1.0, rules.until - self._now()))
                shared = True
            return rules
        finally:
            if self._cache is not None and not shared:
                await self._cache.leave(origin)

    async def _fetch(self, origin: str, way: Way | None) -> Answer | Failure | None:
        """The last answer after redirects; None if there are too many, or one is refused."""
        task = Task(url=_file_of(origin), route="robots.txt")
        limits = msgspec.structs.replace(self._limits, redirects=HOPS)
        while True:
            answer = await self._fetcher.fetch_start(task, self._limits.robots, way)
            verdict = judge(task, answer, limits=limits, now=0.0)
            if verdict.kind is Kind.REFUSED and isinstance(answer, Failure) and not _was_asked(origin, answer):
                return answer
            if verdict.kind is Kind.REFUSED:
                return None
            if verdict.kind is not Kind.MOVED:
                return answer
            task = msgspec.structs.replace(task, url=verdict.location, hops=task.hops + 1)

    def _reply(self, answer: Answer | None) -> _SiteReply:
        if answer is None:
            return _SiteReply(404, b"")
        if answer.status < 400:
            return _SiteReply(answer.status, answer.body if 200 <= answer.status < 300 else b"")
        # By the wall clock: a Retry-After may be a date.
        verdict = judge(Task(url=answer.url, route=""), answer, limits=self._limits, now=time.time())
        rest = verdict.retry_after if verdict.kind is Kind.THROTTLED else None
        return _SiteReply(answer.status, b"", rest)

    def _no_answer(self, origin: str, failure: Failure, way: Way | None) -> _CachedRules:
        now = self._now()
        verdict = judge(Task(url=origin.removesuffix(_PROXIED), route=""), failure, limits=self._limits, now=0.0)
        if verdict.free:
            # The proxy is unreachable, or an idle connection was closed: retried soon.
            return _CachedRules(
                now + (FIRST_WAIT if verdict.retry_after is None else verdict.retry_after),
                unreadable=failure.why,
                way_failed=failure.trouble is FailureKind.PROXY,
            )
        if verdict.final or verdict.of_proxy:
            # No such host, a bad certificate, a forbidden address, or refused by the proxy: no rules; the page's own
            # visit reports why.
            return _CachedRules(now + FIRST_WAIT)
        return self._unreadable((origin, way), failure.why, now, self._first_wait)

    def _interpret(self, origin: str, reply: _SiteReply, marked: Marked, way: Way | None = None) -> _CachedRules:
        now = self._now()
        if reply.rest is not None:
            return _CachedRules(now + reply.rest, unreadable=str(reply.status), throttled=True)
        if reply.status == 429 or reply.status >= 500:
            rules = self._unreadable((origin, way), str(reply.status), now, FIRST_WAIT)
            return msgspec.structs.replace(rules, throttled=reply.status == 429)
        if not 200 <= reply.status < 300:
            return _CachedRules(now + GOOD_FOR)
        with marked:
            return self._parse(origin, reply.body, now)

    def _unreadable(self, place: _Place, why: str, now: Seconds, first: Seconds) -> _CachedRules:
        before = self._cached.get(place)
        failures = before.failures + 1 if before else 1
        wait = min(LONGEST_WAIT, first * 2.0 ** min(failures - 1, 10))
        return _CachedRules(now + wait, unreadable=why, failures=failures)

    def _parse(self, origin: str, body: bytes, now: Seconds) -> _CachedRules:
        text = decode(body, None)[0].lstrip("\ufeff \t\r\n")
        if text[:1] == "<":
            # An HTML page: this server answers everything with 200.
            return _CachedRules(now + GOOD_FOR)
        parser = Protego.parse(for_agent(text, self._agent))
        delay = parser.crawl_delay(self._agent) or 0.0
        prefilter = Prefilter(text)
        return _CachedRules(
            now + GOOD_FOR,
            allowed=Permission(True, delay=float(delay)),
            parser=None if prefilter.empty else parser,
            prefilter=prefilter,
            size=len(body),
        )


def _packed(reply: _SiteReply) -> bytes:
    return _VERSION + zlib.compress(msgspec.msgpack.encode(reply), 1)


def _unpacked(value: bytes) -> _SiteReply | None:
    """None if another version of Trotline wrote it."""
    if value[:1] != _VERSION:
        return None
    with suppress(zlib.error, msgspec.MsgspecError):
        # Bounded: the shared server may hold a decompression bomb. Truncated msgpack fails to decode.
        return msgspec.msgpack.decode(zlib.decompressobj().decompress(value[1:], MOST_TEXT), type=_SiteReply)
    return None


def _file_of(origin: str) -> str:
    return f"{origin.removesuffix(_PROXIED)}/robots.txt"


def _was_asked(origin: str, failure: Failure) -> bool:
    """Did this origin get the request? It did if the failure is of a redirect."""
    return failure.trouble not in _NOT_ASKED or failure.url != _file_of(origin)


def _origin(url: str) -> str:
    end = url.find("/", 8)
    return url if end < 0 else url[:end]
