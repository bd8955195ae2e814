"""Cookies of a session travel with its requests: the next one may be visited by another process.

A request gets those cookies of its jar (`meta["cookiejar"]`) that its URL would be sent. Where it is visited, they
are put into the jar of the same name: the jar is then at least as new as when the request was made.
"""

from collections.abc import Sequence
from http.cookiejar import Cookie
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.utils.httpobj import urlparse_cached

from trotline.bridges.scrapy import session_cookies
from trotline.model.account import StoredCookie
from trotline.model.time import Moment

_FIELDS = ("name", "value", "port", "domain", "path", "secure", "expires", "discard")
_TYPES = (str, str, str, str, str, bool, int, bool)
_MAY_BE_NONE = frozenset(("value", "port", "expires"))


class CookieJars:
    def __init__(self, crawler: Crawler, process: str) -> None:
        """`process`: its own requests need no copy of its cookies."""
        self._middleware = crawler.get_downloader_middleware(CookiesMiddleware)
        self._process = process
        self.private: set[str] = set()
        """Jars of accounts, which belong to the holder of the account: they travel with no request."""

    def snapshot(self, request: Request) -> list[Any] | None:
        jars = self._middleware.jars if self._middleware is not None else None
        key = request.meta.get("cookiejar")
        if not jars or request.meta.get("dont_merge_cookies") or key not in jars or key in self.private:
            return None
        host = (urlparse_cached(request).hostname or "").lower()
        # "localhost" is "localhost.local" in cookies.
        hosts = (host, host + ".local")
        found = [
            [getattr(cookie, name) for name in _FIELDS]
            for cookie in jars[key].jar
            if any(one == (domain := cookie.domain.lstrip(".")) or one.endswith("." + domain) for one in hosts)
        ]
        return [self._process, found] if found else None

    def open_session(self, name: str, cookies: Sequence[StoredCookie], now: Moment) -> None:
        """The jar of an account gets the cookies of its session."""
        self.private.add(name)
        if self._middleware is not None:
            session_cookies.restore(self._middleware.jars[name], cookies, now)

    def session(self, name: str, before: Sequence[StoredCookie], now: Moment) -> tuple[StoredCookie, ...]:
        if self._middleware is None:
            return tuple(before)
        return session_cookies.stored(self._middleware.jars[name], before, now)

    def restore(self, request: Request, snapshot: Any) -> None:
        """ValueError: this is no snapshot."""
        process, cookies = snapshot
        if process == self._process or self._middleware is None:
            return
        jar = self._middleware.jars[request.meta.get("cookiejar")]
        for fields in cookies:
            jar.set_cookie(_cookie(dict(zip(_FIELDS, fields, strict=True))))


def _cookie(given: dict[str, Any]) -> Cookie:
    for (name, value), kind in zip(given.items(), _TYPES, strict=True):
        if type(value) is not kind and not (value is None and name in _MAY_BE_NONE):
            raise ValueError(f"{name} of a cookie is a {type(value).__name__}")
    return Cookie(
        version=0,
        port_specified=given["port"] is not None,
        domain_specified=given["domain"].startswith("."),
        domain_initial_dot=given["domain"].startswith("."),
        path_specified=True,
        comment=None,
        comment_url=None,
        rest={},
        **given,
    )
