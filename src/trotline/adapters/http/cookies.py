"""Cookie jars, one per session."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from http.cookies import BaseCookie, Morsel, SimpleCookie

from aiohttp import CookieJar
from publicsuffixlist import PublicSuffixList
from yarl import URL

from trotline.model.account import StoredCookie
from trotline.model.secret import Secret
from trotline.model.time import Moment

LARGEST = 4096
"""Bytes of one Set-Cookie; larger ones are ignored, as browsers do."""
MOST = 50
"""Cookies of one host; further ones are ignored until others expire."""


_ANYWHERE = URL()
_WHOLE = re.compile(r"-?[0-9]{1,11}")


class Jar(CookieJar):
    """A jar that refuses cookies for public suffixes ("com", "co.uk"), with an unmet `__Secure-` or `__Host-` prefix,
    too large, or too many. IP addresses are hosts like any other (`unsafe`).

    The author's cookies are in a jar of their own, so that sites cannot displace them. A site's cookie of the same name
    is sent instead.
    """

    def __init__(self) -> None:
        super().__init__(unsafe=True)
        self._given: CookieJar | None = None
        self._stored: dict[tuple[str, str, str], StoredCookie] | None = None
        """By name, domain and path; None: they are not recorded, as the session is not one of an account."""

    def __len__(self) -> int:
        return super().__len__() + (0 if self._given is None else len(self._given))

    def filter_cookies(self, request_url: URL = _ANYWHERE) -> "BaseCookie[str]":
        found = super().filter_cookies(request_url)
        if self._given is None:
            return found
        given = self._given.filter_cookies(request_url)
        for name, morsel in found.items():
            given[name] = morsel
        return given

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        kept = [header for header in headers if len(header) <= LARGEST and _sound(header, response_url)]
        kept = self._within_number(kept, response_url.raw_host or "")
        if self._stored is not None:
            self._store(kept, response_url)
        super().update_cookies_from_headers(kept, response_url)

    def restore(self, cookies: Sequence[StoredCookie], now: Moment) -> None:
        """Replace the cookies of sites by these, and store those that come from now on."""
        self.clear()
        self._stored = {}
        for cookie in cookies:
            try:
                url = URL(cookie.url, encoded=True)
            except ValueError:
                # The state came from the frontier's server: it may be damaged.
                continue
            if len(cookie.header) <= LARGEST and _sound(cookie.header, url):
                self._stored[_identity(cookie.header, url)] = cookie
                super().update_cookies_from_headers([_aged(cookie, now)], url)

    def stored(self) -> tuple[StoredCookie, ...]:
        """The cookies of sites, the oldest first."""
        return tuple(self._stored.values()) if self._stored is not None else ()

    def _store(self, headers: Sequence[str], url: URL) -> None:
        assert self._stored is not None  # noqa: S101 - for the type checker
        now = time.time()
        # Without query and fragment: only host, scheme and path count for cookies.
        place = str(url.with_query(None).with_fragment(None))
        for header in headers:
            identity = _identity(header, url)
            known = self._stored.get(identity)
            if known is not None and known.header == header and "max-age" not in header.lower():
                # Sent again as it is: no reason to write the session.
                continue
            self._stored.pop(identity, None)
            if _max_age(header) != 0:
                self._stored[identity] = StoredCookie(place, header, round(now, 1))

    def _within_number(self, headers: list[str], host: str) -> list[str]:
        held = {name for (domain, _), cookies in self.cookies.items() if _covers(domain, host) for name in cookies}
        if len(held) + len(headers) <= MOST:
            return headers
        kept = []
        for header in headers:
            name = _name(header)
            if name in held or len(held) < MOST:
                held.add(name)
                kept.append(header)
        return kept

    def give(self, cookies: Mapping[str, str | Secret], hosts: Collection[str], *, secure: bool = False) -> None:
        """Add the author's cookies: for these hosts and their subdomains, or for every host if none is given.

        `secure`: never over plain http.
        """
        plain = {name: value.reveal() if isinstance(value, Secret) else value for name, value in cookies.items()}
        self._given = self._given or CookieJar(unsafe=True)
        if not hosts:
            self._given.update_cookies(plain)
        for host in hosts:
            self._given.update_cookies(_bound(plain, host, secure), URL.build(scheme="https", host=host))


class Jars:
    """The jars of named sessions: one per name, whatever the way out. The least recently used is evicted first."""

    def __init__(self, make: Callable[[], Jar], most: int) -> None:
        self._make = make
        self._most = most
        self._jars: OrderedDict[str, Jar] = OrderedDict()

    def of(self, name: str) -> Jar:
        jar = self._jars.get(name)
        if jar is None:
            jar = self._jars[name] = self._make()
            if len(self._jars) > self._most:
                self._jars.popitem(last=False)
        else:
            self._jars.move_to_end(name)
        return jar


def _attribute(header: str, wanted: str) -> str:
    for part in header.split(";")[1:]:
        key, _, value = part.partition("=")
        if key.strip().lower() == wanted:
            return value.strip()
    return ""


def _identity(header: str, url: URL) -> tuple[str, str, str]:
    return _name(header), _attribute(header, "domain").lower() or (url.raw_host or ""), _attribute(header, "path")


def _max_age(header: str) -> int | None:
    text = _attribute(header, "max-age")
    return max(0, int(text)) if _WHOLE.fullmatch(text) else None


def _aged(cookie: StoredCookie, now: Moment) -> str:
    """With the rest of its Max-Age: that counts from the time at which it came."""
    age = _max_age(cookie.header)
    if age is None:
        return cookie.header
    left = max(0, int(age - (now - cookie.at)))
    parts = [part for part in cookie.header.split(";") if part.partition("=")[0].strip().lower() != "max-age"]
    return ";".join([*parts, f" Max-Age={left}"])


def _bound(cookies: Mapping[str, str], host: str, secure: bool) -> list[tuple[str, "Morsel[str]"]]:
    made: SimpleCookie = SimpleCookie()
    for name, value in cookies.items():
        made[name] = value
        made[name]["domain"] = host
        made[name]["path"] = "/"
        if secure:
            made[name]["secure"] = True
    return list(made.items())


def _sound(header: str, url: URL) -> bool:
    """May this host set this cookie?"""
    if not header.isascii() or not header.isprintable():
        return False
    name = _name(header).lower()
    attributes = {
        key.strip().lower(): value.strip() for key, _, value in (part.partition("=") for part in header.split(";")[1:])
    }
    domain = attributes.get("domain", "").lower().lstrip(".")
    if '"' in domain or "\\" in domain:
        # The jar would remove the quotes: another domain than the one that is checked here.
        return False
    if name.startswith(("__secure-", "__host-")):
        if url.scheme != "https" or "secure" not in attributes:
            return False
        if name.startswith("__host-") and (domain or attributes.get("path") != "/"):
            return False
    return not domain or domain == url.raw_host or not _is_registry(domain)


def _name(header: str) -> str:
    return header.partition(";")[0].partition("=")[0].strip()


def _covers(domain: str, host: str) -> bool:
    return domain == host or host.endswith(f".{domain}")


def _is_registry(domain: str) -> bool:
    """Is it a public suffix?"""
    return bool(_registries().is_public(domain.rstrip(".")))


@cache
def _registries() -> PublicSuffixList:
    """Loaded with the first cookie for a domain: most crawls never need it."""
    return PublicSuffixList()
