"""A site with accounts: the last login of an account is its only valid session, and strangers get a page with 200."""

import asyncio
import re
import secrets
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web
from tests.e2e.small_site import serving

PASSWORD = "canary-{}"  # noqa: S105 - of accounts that exist in this test only
"""Of each account, by its name."""


class AccountSite:
    """`/login` and `/p/NUMBER`. Sessions end after a number of pages, and by a login from somewhere else."""

    def __init__(
        self, *, pages_of_a_session: int = 60, slow: float = 0.05, seed: int = 1, redirects: bool = False
    ) -> None:
        """`redirects`: who is not logged in is redirected to the login page, and who is, from there to a home page."""
        self._redirects = redirects
        self._most = pages_of_a_session
        self._slow = slow
        self._chance = Random(seed)
        self._sessions: dict[str, str] = {}
        """Cookie -> account; of each account the last one is valid."""
        self._last: dict[str, str] = {}
        self._left: Counter[str] = Counter()
        self._now: dict[str, list[web.Request]] = defaultdict(list)
        """Requests of each account that are under way."""
        self.overlaps: list[str] = []
        """Accounts that were used by two requests at the same time."""
        self.uses: Counter[str] = Counter()
        self.logins: Counter[str] = Counter()
        self.addresses: dict[str, set[str]] = defaultdict(set)
        """Of the clients of each account."""
        self.strangers = 0
        """Pages that were shown to somebody who was not logged in."""

    async def __aenter__(self) -> "AccountSite":
        application = web.Application()
        application.router.add_get("/login", self._form)
        application.router.add_post("/login", self._log_in)
        application.router.add_get("/home", self._home)
        application.router.add_get("/p/{number:\\d+}", self._page)
        self._serving = serving(application)
        self.base = await self._serving.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._serving.__aexit__(None, None, None)

    def _is_logged_in(self, request: web.Request) -> bool:
        cookie = request.cookies.get("sid", "")
        name = self._sessions.get(cookie, "")
        return bool(name) and self._last[name] == cookie and self._left[cookie] > 0

    async def _home(self, request: web.Request) -> web.Response:
        return web.Response(text='<h1>Home</h1><p class="who">nobody</p>', content_type="text/html")

    async def _form(self, request: web.Request) -> web.Response:
        if self._redirects and self._is_logged_in(request):
            return web.Response(status=302, headers={"location": "/home"})
        return web.Response(text='<form class="login"><input name="token" value="t1"></form>', content_type="text/html")

    async def _log_in(self, request: web.Request) -> web.Response:
        form = await request.post()
        name = str(form.get("user", "")).partition("@")[0]
        if form.get("token") != "t1" or form.get("password") != PASSWORD.format(name):
            return web.Response(status=403, text='<form class="login">wrong</form>', content_type="text/html")
        async with self._used(name, request):
            cookie = secrets.token_hex(16)
            self._sessions[cookie] = name
            self._last[name] = cookie
            self._left[cookie] = self._most
            self.logins[name] += 1
            answer = web.Response(status=302, headers={"location": "/p/0"})
            answer.set_cookie("sid", cookie, path="/", httponly=True)
            await asyncio.sleep(self._slow * self._chance.random())
            return answer

    async def _page(self, request: web.Request) -> web.Response:
        cookie = request.cookies.get("sid", "")
        name = self._sessions.get(cookie, "")
        if not self._is_logged_in(request):
            self.strangers += 1
            if self._redirects:
                return web.Response(status=302, headers={"location": "/login"})
            return web.Response(text='<h1>Prices for members</h1><form class="login"></form>', content_type="text/html")
        async with self._used(name, request):
            self.uses[name] += 1
            self._left[cookie] -= 1
            await asyncio.sleep(self._slow * (0.5 + self._chance.random()))
            answer = web.Response(
                text=f'<h1>{request.path}</h1><p class="who">{name}</p><a class="out">Log out</a>',
                content_type="text/html",
            )
            if self._chance.random() < 0.1:
                # The session is renewed: the old cookie is worth nothing.
                fresh = secrets.token_hex(16)
                self._sessions[fresh], self._left[fresh], self._last[name] = name, self._left[cookie], fresh
                answer.set_cookie("sid", fresh, path="/", httponly=True)
            return answer

    @asynccontextmanager
    async def _used(self, name: str, request: web.Request) -> AsyncIterator[None]:
        """An account is in use until its request is answered, or its client is gone."""
        if any(_is_connected(other) for other in self._now[name]):
            self.overlaps.append(f"{name}: {request.method} {request.path}")
        self._now[name].append(request)
        self.addresses[name].add(request.remote or "")
        try:
            yield
        finally:
            self._now[name].remove(request)


def _is_connected(request: web.Request) -> bool:
    return request.transport is not None and not request.transport.is_closing()


def secrets_in(text: str) -> list[str]:
    """Passwords of accounts that stand in a text."""
    return re.findall(r"canary-\w+", text)
