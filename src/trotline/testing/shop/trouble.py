"""Pages that behave badly on purpose: slow, rate limited, failing, guarded."""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate

from aiohttp import web

from trotline.testing.shop.answers import page
from trotline.testing.shop.looks import escape

_CHALLENGE = (
    '<h1>Just a moment...</h1><form id="challenge-form" class="captcha" method="post">'
    '<p>Please verify you are human to continue.</p><div class="g-recaptcha" data-sitekey="demo"></div></form>'
)


@dataclass(frozen=True)
class Manners:
    """How much the shop puts up with, and how slow it may be."""

    per_second: int = 5
    """Requests per second and client that /limited/ answers; more get 429."""
    guard_after: int = 20
    """Requests from one address that /guarded/ and /cloaked/ answer; from then on the address is banned."""
    failures: int = 2
    """Times that each URL of /flaky/ fails before it heals."""
    slowest: float = 10.0
    """Seconds that /slow/ and /drip/ take at most, with any parameter."""


class Trouble:
    """Counts requests per client. `forget` resets the counts."""

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.forget()

    def forget(self) -> None:
        self._served: dict[str, deque[float]] = defaultdict(deque)
        self._failed: Counter[str] = Counter()
        self._guarded: Counter[str] = Counter()

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get("/slow/{seconds}", self.slow),
            web.get("/drip/{seconds}", self.drip),
            web.get("/limited/{name:.+}", self.limited),
            web.get("/flaky/{name:.+}", self.flaky),
            web.get("/down/{name:.+}", self.down),
            web.get("/guarded/{name:.+}", self.guarded),
            web.get("/cloaked/{name:.+}", self.cloaked),
        )

    async def slow(self, request: web.Request) -> web.Response:
        """The whole answer comes late."""
        seconds = self._seconds(request)
        await asyncio.sleep(seconds)
        return page("Slow", f"<h1>That took {seconds:g} s</h1>")

    async def drip(self, request: web.Request) -> web.StreamResponse:
        """The head comes at once, the body in twenty small pieces over the time asked for."""
        seconds = self._seconds(request)
        answer = web.StreamResponse(headers={"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"})
        await answer.prepare(request)
        for piece in range(20):
            await answer.write(f"<p>{piece + 1} of 20</p>\n".encode())
            await asyncio.sleep(seconds / 20)
        await answer.write_eof()
        return answer

    async def limited(self, request: web.Request) -> web.Response:
        """429 with Retry-After (seconds, or a date with ?form=date) above so many requests per second and client."""
        now = time.monotonic()
        served = self._served[_client(request)]
        while served and served[0] <= now - 1.0:
            served.popleft()
        if len(served) < self.manners.per_second:
            served.append(now)
            return _fine(request)
        wait = formatdate(time.time() + 1, usegmt=True) if request.query.get("form") == "date" else "1"
        return page("Too many requests", "<h1>Slower, please</h1>", status=429, headers={"Retry-After": wait})

    async def flaky(self, request: web.Request) -> web.Response:
        """503 the first times that each URL is asked for; then it has healed."""
        self._failed[request.raw_path] += 1
        if self._failed[request.raw_path] <= self.manners.failures:
            return page("Unavailable", "<h1>Not just now</h1>", status=503)
        return _fine(request)

    async def down(self, request: web.Request) -> web.Response:
        return page("Broken", "<h1>Something broke, and stays broken</h1>", status=500)

    async def guarded(self, request: web.Request) -> web.Response:
        """403 with a challenge page once an address has asked too often."""
        return page("Just a moment...", _CHALLENGE, status=403) if self._banned(request) else _fine(request)

    async def cloaked(self, request: web.Request) -> web.Response:
        """The same ban, but the challenge page pretends to be a 200."""
        return page("Just a moment...", _CHALLENGE) if self._banned(request) else _fine(request)

    def _banned(self, request: web.Request) -> bool:
        client = _client(request)
        self._guarded[client] += 1
        return self._guarded[client] > self.manners.guard_after

    def _seconds(self, request: web.Request) -> float:
        try:
            asked = float(request.match_info["seconds"])
        except ValueError as bad:
            raise web.HTTPNotFound from bad
        # `not >= 0` also refuses nan, which would otherwise sleep for ever.
        if not asked >= 0:
            raise web.HTTPNotFound
        return min(asked, self.manners.slowest)


def _client(request: web.Request) -> str:
    return request.remote or ""


def _fine(request: web.Request) -> web.Response:
    return page("Fine", f'<h1>Here you are</h1><p class="name">{escape(request.match_info["name"])}</p>')
