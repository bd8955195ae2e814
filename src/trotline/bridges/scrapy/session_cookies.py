"""Cookies of Scrapy's jars as the session of an account keeps them, which is the form of our own workers."""

from collections.abc import Sequence
from email.utils import formatdate
from http.cookiejar import Cookie
from typing import Any

from scrapy import Request
from scrapy.http import Response

from trotline.model.account import StoredCookie
from trotline.model.time import Moment

_LOCAL = ".local"
"""What http.cookiejar adds to a host name without a dot."""


def restore(jar: Any, cookies: Sequence[StoredCookie], now: Moment) -> None:
    """The jar (of Scrapy) gets these cookies instead of its own."""
    jar.clear()
    for stored in cookies:
        try:
            request = Request(stored.url)
            made = jar.make_cookies(Response(stored.url, headers={"Set-Cookie": [stored.header]}), request)
        except ValueError:
            continue
        for cookie in made:
            if cookie.expires is not None and "max-age" in stored.header.lower():
                # It counts from when it came.
                cookie.expires -= int(now - stored.at)
            if not cookie.is_expired(now):
                jar.set_cookie_if_ok(cookie, request)


def stored(jar: Any, before: Sequence[StoredCookie], now: Moment) -> tuple[StoredCookie, ...]:
    """The cookies of the jar, the oldest first. `before`: those that it was restored from, which keep their time."""
    came = {(one.url, one.header): one.at for one in before}
    found = []
    for cookie in jar.jar:
        url, header = _url(cookie), _header(cookie)
        found.append(StoredCookie(url, header, came.get((url, header), now)))
    return tuple(sorted(found, key=lambda one: one.at))


def _url(cookie: Cookie) -> str:
    host = cookie.domain.lstrip(".")
    if host.endswith(_LOCAL) and host.count(".") == 1:
        host = host.removesuffix(_LOCAL)
    return f"{'https' if cookie.secure else 'http'}://{host}{cookie.path}"


def _header(cookie: Cookie) -> str:
    parts = [f"{cookie.name}={cookie.value or ''}", f"Path={cookie.path}"]
    if cookie.domain_specified:
        parts.append(f"Domain={cookie.domain.lstrip('.')}")
    if cookie.expires is not None:
        parts.append(f"Expires={formatdate(cookie.expires, usegmt=True)}")
    if cookie.secure:
        parts.append("Secure")
    return "; ".join(parts)
