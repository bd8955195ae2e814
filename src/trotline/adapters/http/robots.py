"""robots.txt, obeyed: read once per origin and day, by whoever asks first."""

import asyncio
import time

import msgspec
from protego import Protego

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits
from trotline.model.moments import Seconds
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.ports.clock import Clock
from trotline.ports.robots import Permission
from trotline.rules.charset import decode
from trotline.rules.robots import Prefilter, products_only
from trotline.rules.urls import resolve
from trotline.rules.verdicts import judge

GOOD_FOR: Seconds = 24 * 3600.0
FIRST_WAIT: Seconds = 60.0
LONGEST_WAIT: Seconds = 3600.0
HOPS = 5
ORIGINS = 10_000
"""Origins remembered; the one learnt first is forgotten first."""
_LARGE = 64 * 1024
"""Beyond this, parsing goes to a thread: a file of 500 KiB of rules takes seconds."""
_SITEMAPS = 1_000

_DISALLOWED = Permission(False, why="robots.txt")


class _Word(msgspec.Struct):
    """What one origin's robots.txt says, until when."""

    until: Seconds
    allowed: Permission = Permission(True)
    rules: Protego | None = None
    """None: nothing is disallowed."""
    prefilter: Prefilter | None = None
    sitemaps: tuple[str, ...] = ()
    unreadable: str = ""
    """Why it could not be read: everything is disallowed until it can."""
    failures: int = 0


class RobotsTxt:
    """Implements `ports.robots.Robots` after RFC 9309."""

    def __init__(self, fetcher: HttpFetcher, *, agent: str, limits: Limits, clock: Clock | None = None) -> None:
        self._fetcher = fetcher
        self._agent = agent
        self._limits = limits
        self._now = clock.now if clock else time.monotonic
        self._words: dict[str, _Word] = {}
        self._asking: dict[str, asyncio.Task[_Word]] = {}

    async def ask(self, url: str) -> Permission:
        origin = _origin(url)
        now = self._now()
        word = self._words.get(origin)
        if word is None or word.until <= now:
            word = await self._learn(origin)
        if word.unreadable:
            wait = max(1.0, word.until - self._now())
            return Permission(False, ask_again=wait, why=f"robots.txt: {word.unreadable}")
        if word.rules is None:
            return word.allowed
        path = url[len(origin) :] or "/"
        if word.prefilter is not None and word.prefilter.surely_allowed(path):
            return word.allowed
        if word.rules.can_fetch(url, self._agent):
            return word.allowed
        return msgspec.structs.replace(_DISALLOWED, delay=word.allowed.delay)

    async def sitemaps(self, url: str) -> list[str]:
        origin = _origin(url)
        word = self._words.get(origin)
        if word is None or word.until <= self._now():
            word = await self._learn(origin)
        return list(word.sitemaps)

    async def _learn(self, origin: str) -> _Word:
        """Read it, or wait for whoever is reading it already."""
        asking = self._asking.get(origin)
        if asking is None:
            asking = self._asking[origin] = asyncio.create_task(self._read(origin))
            asking.add_done_callback(lambda _: self._asking.pop(origin, None))
        # Shielded: one caller that is cancelled must not take the answer from the others.
        return await asyncio.shield(asking)

    async def _read(self, origin: str) -> _Word:
        answer = await self._fetch(origin)
        word = await self._understand(origin, answer)
        self._words.pop(origin, None)
        if len(self._words) >= ORIGINS:
            del self._words[next(iter(self._words))]
        self._words[origin] = word
        return word

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

    async def _understand(self, origin: str, answer: Answer | Failure | None) -> _Word:
        now = self._now()
        if answer is None:
            return _Word(now + GOOD_FOR)
        if isinstance(answer, Failure):
            verdict = judge(Task(url=origin, route=""), answer, limits=self._limits, now=0.0)
            if verdict.free:
                # It is the proxy that is away: the site is asked again as soon as it may be back.
                return _Word(now + (verdict.retry_after or FIRST_WAIT), unreadable=answer.why)
            # A host that does not exist, has a bad certificate, or that our proxy does not go to, has no rules: the
            # page's own visit tells why.
            tells = verdict.final or verdict.of_proxy
            return _Word(now + FIRST_WAIT) if tells else self._unreadable(origin, answer.why, now)
        if answer.status == 429 or answer.status >= 500:
            return self._unreadable(origin, str(answer.status), now)
        if not 200 <= answer.status < 300:
            return _Word(now + GOOD_FOR)
        return await self._parse(origin, answer.body, now)

    def _unreadable(self, origin: str, why: str, now: Seconds) -> _Word:
        before = self._words.get(origin)
        failures = before.failures + 1 if before else 1
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 10))
        return _Word(now + wait, unreadable=why, failures=failures)

    async def _parse(self, origin: str, body: bytes, now: Seconds) -> _Word:
        text = decode(body, None)[0].lstrip("\ufeff \t\r\n")
        if text[:1] == "<":
            # A page instead of rules: servers that answer everything with 200.
            return _Word(now + GOOD_FOR)
        rules = await asyncio.to_thread(_rules, text) if len(text) > _LARGE else _rules(text)
        delay = rules.crawl_delay(self._agent) or 0.0
        prefilter = Prefilter(text)
        return _Word(
            now + GOOD_FOR,
            allowed=Permission(True, delay=float(delay)),
            rules=None if prefilter.empty else rules,
            prefilter=prefilter,
            sitemaps=_absolute(origin, list(rules.sitemaps)[:_SITEMAPS]),
        )


def _rules(text: str) -> Protego:
    return Protego.parse(products_only(text))


def _origin(url: str) -> str:
    end = url.find("/", 8)
    return url if end < 0 else url[:end]


def _absolute(origin: str, lines: list[str]) -> tuple[str, ...]:
    found = (resolve(f"{origin}/", line) for line in lines)
    return tuple(dict.fromkeys(url for url in found if url and url.startswith(("http://", "https://"))))
