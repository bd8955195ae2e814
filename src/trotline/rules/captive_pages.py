"""Does a proxy answer in place of a site? Recognized by comparison with the other proxies of the same host.

A captive proxy (login or payment page) answers every plain http request with one page, or with a redirect to its
portal. A site has such pages, too: "not found" with status 200, a login. The difference: other proxies get other pages
from the site, and never this one. So a page is the proxy's if it came

- for PATHS different paths of one host in a row, through this proxy alone,
- while other proxies got at least OTHERS different pages of this host, and never this one.

The error is on the safe side: as soon as another proxy gets the page, it is the site's.
"""

from collections import OrderedDict
from collections.abc import Hashable
from hashlib import blake2b
from urllib.parse import urlsplit

from trotline.model.time import Seconds

PATHS = 3
OTHERS = 3
HOSTS = 500
"""Kept; the one that was visited longest ago is forgotten first."""
PAGES = 64
"""Of one host: the ones that were seen last."""
WAYS = 256
"""Of one host."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def page_of(host: str, status: int, location: str, body: bytes) -> bytes:
    """What is compared: an HTML page, or the foreign host of a redirect. Empty: neither."""
    if status == 200:
        return blake2b(body, digest_size=16).digest() if body.lstrip()[:1] == b"<" else b""
    if status in _REDIRECTS and (target := _foreign(host, location)):
        return b">" + target.encode("utf-8", "replace")
    return b""


def _foreign(host: str, location: str) -> str:
    """The host of a redirect to another site; empty if it stays: www.shop.example, m.shop.example."""
    try:
        target = (urlsplit(location.strip()).hostname or "").lower()
    except ValueError:
        return ""
    own, other = host.lower().removeprefix("www."), target.removeprefix("www.")
    return "" if not other or f".{other}".endswith(f".{own}") or f".{own}".endswith(f".{other}") else other


class _Run:
    """Equal pages in a row through one way."""

    __slots__ = ("page", "paths", "since")

    def __init__(self, page: bytes, path: str, since: Seconds) -> None:
        self.page = page
        self.paths = {path}
        self.since = since


class _Host:
    __slots__ = ("pages", "runs")

    def __init__(self) -> None:
        self.pages: OrderedDict[bytes, Hashable] = OrderedDict()
        """Page -> the only way that it came through; None: several."""
        self.runs: OrderedDict[Hashable, _Run] = OrderedDict()


class SitePages:
    """The last pages of the hosts that several ways go to."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def captive_since(self, way: Hashable, url: str, page: bytes, now: Seconds) -> Seconds | None:
        """Note a page (`page_of`). When the proxy's own pages began, if this is one; None: it is the site's."""
        parts = urlsplit(url)
        host = _of(self._hosts, parts.netloc, HOSTS, _Host)
        run = host.runs.get(way)
        if not page or run is None or run.page != page:
            run = host.runs[way] = _Run(page, parts.path, now)
        elif len(run.paths) < PATHS:
            run.paths.add(parts.path)
        _bound(host.runs, way, WAYS)
        if not page:
            return None
        first = host.pages.setdefault(page, way)
        if first != way:
            host.pages[page] = None
        _bound(host.pages, page, PAGES)
        if len(run.paths) < PATHS or host.pages[page] != way:
            return None
        others = sum(1 for each in host.pages.values() if each != way)
        return run.since if others >= OTHERS else None


def _of(hosts: "OrderedDict[str, _Host]", name: str, most: int, make: type[_Host]) -> _Host:
    found = hosts.get(name)
    if found is None:
        found = hosts[name] = make()
    _bound(hosts, name, most)
    return found


def _bound(entries: "OrderedDict", newest: Hashable, most: int) -> None:  # type: ignore[type-arg]
    entries.move_to_end(newest)
    if len(entries) > most:
        entries.popitem(last=False)
