"""robots.txt, obeyed: read once per origin and day, by whoever asks first.

With a cache, once for a whole fleet: what the site said (status and text) is shared, and each process parses it.
What may be our own trouble (no answer, no such name, the proxy) is not: other workers may have more luck.
"""

import asyncio
import time
import zlib
from contextlib import suppress

import msgspec
from protego import Protego

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.ports.clock import Clock
from trotline.ports.robots import UNMARKED, Marked, Permission
from trotline.ports.shared_cache import SharedCache
from trotline.rules.charset import decode
from trotline.rules.robots import Prefilter, for_agent
from trotline.rules.verdicts import judge

GOOD_FOR: Seconds = 24 * 3600.0
FIRST_WAIT: Seconds = 60.0
LONGEST_WAIT: Seconds = 3600.0
HOPS = 5
ORIGINS = 10_000
"""Origins remembered; the one learnt first is forgotten first."""
MOST_TEXT = 16 * 1024 * 1024
"""Bytes of all the files whose rules are remembered."""
WAIT_FOR_OTHERS: Seconds = 30.0
"""Whoever fetches it for all may have died."""

_DISALLOWED = Permission(False, why="robots.txt")


class _Word(msgspec.Struct):
    """What one origin's robots.txt says, until when."""

    until: Seconds
    allowed: Permission = Permission(True)
    rules: Protego | None = None
    """None: nothing is disallowed."""
    prefilter: Prefilter | None = None
    unreadable: str = ""
    """Why it could not be read: everything is disallowed until it can."""
    throttled: bool = False
    """The site asks for quiet until then."""
    failures: int = 0
    size: int = 0
    """Bytes of the file that the rules were made of."""


class _Told(msgspec.Struct, array_like=True):
    """What a site said, as workers tell each other: a version, then msgpack, then deflated."""

    status: int
    body: bytes
    rest: Seconds | None = None
    """How long it asks us to be quiet, if it does."""


_VERSION = b"\x01"


class RobotsTxt:
    """Implements `ports.robots.Robots` after RFC 9309."""

    def __init__(
        self,
        fetcher: HttpFetcher,
        *,
        agent: str,
        limits: Limits,
        clock: Clock | None = None,
        cache: SharedCache | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._cache = cache
        self._agent = agent
        self._limits = limits
        self._now = clock.now if clock else time.monotonic
        self._words: dict[str, _Word] = {}
        self._text = 0
        """Bytes of the files behind the words."""
        self._asking: dict[str, asyncio.Task[_Word]] = {}

    async def ask(self, url: str, marked: Marked = UNMARKED) -> Permission:
        origin = _origin(url)
        now = self._now()
        word = self._words.get(origin)
        if word is None or word.until <= now:
            word = await self._learn(origin, marked)
        if word.unreadable:
            wait = max(1.0, word.until - self._now())
            why = f"robots.txt: {word.unreadable}"
            return Permission(False, ask_again=wait, why=why, throttled=word.throttled)
        if word.rules is None:
            return word.allowed
        path = url[len(origin) :] or "/"
        if word.prefilter is not None and word.prefilter.surely_allowed(path):
            return word.allowed
        with marked:
            allowed = word.rules.can_fetch(url, self._agent)
        if allowed:
            return word.allowed
        return msgspec.structs.replace(_DISALLOWED, delay=word.allowed.delay)

    async def _learn(self, origin: str, marked: Marked) -> _Word:
        """Read it, or wait for whoever is reading it already."""
        asking = self._asking.get(origin)
        if asking is None:
            asking = self._asking[origin] = asyncio.create_task(self._read(origin, marked))
            asking.add_done_callback(lambda _: self._asking.pop(origin, None))
        # Shielded: one caller that is cancelled must not take the answer from the others.
        return await asyncio.shield(asking)

    async def _read(self, origin: str, marked: Marked) -> _Word:
        told = await self._heard(self._cache, origin) if self._cache is not None else None
        word = await self._ask_the_site(origin, marked) if told is None else self._repeated(origin, *told, marked)
        self._forget(origin)
        while self._words and (len(self._words) >= ORIGINS or self._text + word.size > MOST_TEXT):
            self._forget(next(iter(self._words)))
        self._words[origin] = word
        self._text += word.size
        return word

    def _forget(self, origin: str) -> None:
        word = self._words.pop(origin, None)
        self._text -= word.size if word else 0

    async def _heard(self, cache: SharedCache, origin: str) -> tuple[_Told, Seconds] | None:
        """What another worker was told, and for how long it holds; None if we have to ask the site ourselves."""
        kept = await cache.find(origin, WAIT_FOR_OTHERS)
        told = _unpacked(kept.value) if kept is not None else None
        return None if kept is None or told is None else (told, kept.left)

    def _repeated(self, origin: str, told: _Told, left: Seconds, marked: Marked) -> _Word:
        word = self._understand(origin, told, marked)
        return msgspec.structs.replace(word, until=self._now() + left)

    async def _ask_the_site(self, origin: str, marked: Marked) -> _Word:
        shared = False
        try:
            answer = await self._fetch(origin)
            if isinstance(answer, Failure):
                return self._no_answer(origin, answer)
            told = self._told(answer)
            word = self._understand(origin, told, marked)
            if self._cache is not None:
                await self._cache.put(origin, _packed(told), max(1.0, word.until - self._now()))
                shared = True
            return word
        finally:
            if self._cache is not None and not shared:
                await self._cache.leave(origin)

    async def _fetch(self, origin: str) -> Answer | Failure | None:
        """The last answer after redirects; None when they lead nowhere."""
        task = Task(url=f"{origin}/robots.txt", route="robots.txt")
        limits = msgspec.structs.replace(self._limits, redirects=HOPS)
        while True:
            answer = await self._fetcher.fetch_start(task, self._limits.robots)
            verdict = judge(task, answer, limits=limits, now=0.0)
            if verdict.kind is Kind.REFUSED:
                # Too many hops, or a hop to where we do not go. If it was the origin itself that is refused,
                # its pages will say so with the right reason.
                return None
            if verdict.kind is not Kind.MOVED:
                return answer
            task = msgspec.structs.replace(task, url=verdict.location, hops=task.hops + 1)

    def _told(self, answer: Answer | None) -> _Told:
        if answer is None:
            # Redirects that lead nowhere are as good as no file.
            return _Told(404, b"")
        if answer.status < 400:
            return _Told(answer.status, answer.body if 200 <= answer.status < 300 else b"")
        # By the wall clock: a Retry-After may be a date.
        verdict = judge(Task(url=answer.url, route=""), answer, limits=self._limits, now=time.time())
        rest = verdict.retry_after if verdict.kind is Kind.THROTTLED else None
        return _Told(answer.status, b"", rest)

    def _no_answer(self, origin: str, failure: Failure) -> _Word:
        now = self._now()
        verdict = judge(Task(url=origin, route=""), failure, limits=self._limits, now=0.0)
        if verdict.free:
            # The proxy is away, or an idle connection was closed: the site is asked again as soon as it may be back.
            return _Word(
                now + (FIRST_WAIT if verdict.retry_after is None else verdict.retry_after), unreadable=failure.why
            )
        # A host that does not exist, has a bad certificate, or that our proxy does not go to, has no rules: the
        # page's own visit tells why.
        tells = verdict.final or verdict.of_proxy
        return _Word(now + FIRST_WAIT) if tells else self._unreadable(origin, failure.why, now)

    def _understand(self, origin: str, told: _Told, marked: Marked) -> _Word:
        now = self._now()
        if told.rest is not None:
            return _Word(now + told.rest, unreadable=str(told.status), throttled=True)
        if told.status == 429 or told.status >= 500:
            word = self._unreadable(origin, str(told.status), now)
            return msgspec.structs.replace(word, throttled=told.status == 429)
        if not 200 <= told.status < 300:
            return _Word(now + GOOD_FOR)
        with marked:
            return self._parse(origin, told.body, now)

    def _unreadable(self, origin: str, why: str, now: Seconds) -> _Word:
        before = self._words.get(origin)
        failures = before.failures + 1 if before else 1
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 10))
        return _Word(now + wait, unreadable=why, failures=failures)

    def _parse(self, origin: str, body: bytes, now: Seconds) -> _Word:
        text = decode(body, None)[0].lstrip("\ufeff \t\r\n")
        if text[:1] == "<":
            # A page instead of rules: servers that answer everything with 200.
            return _Word(now + GOOD_FOR)
        rules = Protego.parse(for_agent(text, self._agent))
        delay = rules.crawl_delay(self._agent) or 0.0
        prefilter = Prefilter(text)
        return _Word(
            now + GOOD_FOR,
            allowed=Permission(True, delay=float(delay)),
            rules=None if prefilter.empty else rules,
            prefilter=prefilter,
            size=len(body),
        )


def _packed(told: _Told) -> bytes:
    return _VERSION + zlib.compress(msgspec.msgpack.encode(told), 1)


def _unpacked(value: bytes) -> _Told | None:
    """None for what another version of Trotline has put there."""
    if value[:1] != _VERSION:
        return None
    with suppress(zlib.error, msgspec.MsgspecError):
        # A server that others write to may hold a bomb: what is cut short cannot be decoded.
        return msgspec.msgpack.decode(zlib.decompressobj().decompress(value[1:], MOST_TEXT), type=_Told)
    return None


def _origin(url: str) -> str:
    end = url.find("/", 8)
    return url if end < 0 else url[:end]
