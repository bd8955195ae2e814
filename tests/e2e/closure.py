"""What a site consists of, found out without any of Trotline's code: only the standard library.

A closure is every HTML page that can be reached from a start page by `<a href>` links on the same host. An end-to-end
test compares it with what a crawl stored, so the two must not share a parser, a URL library or a fetcher.
"""

import http.client
import re
from collections import deque
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import quote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.robotparser import RobotFileParser

AGENT = "closure"
MOST_PAGES = 50_000
"""A site larger than this is a trap, or a mistake in a test."""
_REDIRECTS = (301, 302, 303, 307, 308)
_HTML = ("text/html", "application/xhtml+xml")
_WHITESPACE = " \t\n\f\r"
_SAFE = "/:?#[]@!$&'()*+,;=%~"


def closure(url: str, *, robots: bool = True) -> frozenset[str]:
    """The final URL of every page (status 200, HTML) reachable from `url` by links on the same host.

    Fragments are dropped, queries kept, `<base>` obeyed; only `<a href>` counts. Redirects are followed: the page is
    known by the URL that answered, and one that leaves the host is no page of this site. With `robots`, what the
    site's robots.txt forbids is not asked for.
    """
    start = _clean(url)
    with _Visitor(start) as visitor:
        allowed = _allowed(visitor, start) if robots else _everything
        known, waiting = {start}, deque([start])
        pages: set[str] = set()
        while waiting:
            answer = visitor.get(waiting.popleft())
            for found in _leads(answer):
                if found not in known and _same_host(found, start) and allowed.can_fetch(AGENT, found):
                    known.add(found)
                    waiting.append(found)
            if answer.status == 200 and answer.content_type in _HTML:
                pages.add(answer.url)
            if len(known) > MOST_PAGES:
                raise AssertionError(f"{url} leads to more than {MOST_PAGES} pages: is it a trap?")
    return frozenset(pages)


def links(markup: str, url: str) -> list[str]:
    """Where the `<a href>` of a page lead: absolute http URLs without fragments, in order, each once."""
    parser = _Links()
    parser.feed(markup)
    parser.close()
    base = urljoin(url, parser.base.strip(_WHITESPACE)) if parser.base is not None else url
    # An index links to thousands of parts of a few pages: without its fragment each page is resolved only once.
    bare = dict.fromkeys(href.strip(_WHITESPACE).partition("#")[0] for href in parser.hrefs)
    return list(dict.fromkeys(_resolve(bare, base)))


class _Answer(NamedTuple):
    url: str
    status: int
    content_type: str
    charset: str | None
    location: str | None
    body: bytes


def _leads(answer: _Answer) -> list[str]:
    """Where an answer leads: a redirect to its target, a page to its links."""
    if answer.status in _REDIRECTS:
        return list(_resolve([answer.location], answer.url)) if answer.location else []
    if answer.status == 200 and answer.content_type in _HTML:
        return links(_text(answer), answer.url)
    return []


class _Links(HTMLParser):
    """Collects first and resolves later: a `<base>` counts for the links before it, too."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.hrefs: list[str] = []
        self.base: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("a", "base"):
            return
        # Of two attributes with one name a browser keeps the first.
        href = next((value for name, value in attrs if name == "href"), None)
        if href is None:
            return
        if tag == "a":
            self.hrefs.append(href)
        elif self.base is None:
            self.base = href


def _resolve(hrefs: Iterable[str], base: str) -> Iterator[str]:
    for href in hrefs:
        try:
            absolute = urljoin(base, re.sub(r"[\t\n\r]", "", href.strip(_WHITESPACE)))
            if urlsplit(absolute).scheme in ("http", "https") and urlsplit(absolute).hostname:
                yield _clean(absolute)
        except ValueError:
            continue  # "http://[broken": not a URL, so not a link.


def _clean(url: str) -> str:
    """Without its fragment; scheme and host in lower case, no default port, a path, and only ASCII."""
    parts = urlsplit(urldefrag(url).url)
    host = parts.hostname or ""
    default = {"http": 80, "https": 443}.get(parts.scheme)
    place = host if parts.port in (None, default) else f"{host}:{parts.port}"
    return urlunsplit((parts.scheme, place, quote(parts.path or "/", safe=_SAFE), quote(parts.query, safe=_SAFE), ""))


def _same_host(url: str, other: str) -> bool:
    one, two = urlsplit(url), urlsplit(other)
    return (one.scheme, one.netloc) == (two.scheme, two.netloc)


def _text(answer: _Answer) -> str:
    declared = answer.charset
    if declared is None:
        found = re.search(rb"<meta[^>]+charset=[\"']?([\w-]+)", answer.body[:1024], re.IGNORECASE)
        declared = found[1].decode() if found else "utf-8"
    try:
        return answer.body.decode(declared, "replace")
    except LookupError:
        return answer.body.decode("utf-8", "replace")


class _Everything(RobotFileParser):
    def can_fetch(self, useragent: str, url: str) -> bool:
        return True


_everything = _Everything()


def _allowed(visitor: "_Visitor", start: str) -> RobotFileParser:
    answer = visitor.get(urljoin(start, "/robots.txt"))
    rules = RobotFileParser()
    rules.parse(answer.body.decode("utf-8", "replace").splitlines() if answer.status == 200 else [])
    return rules


class _Visitor:
    """One kept-alive connection to one host."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def __enter__(self) -> "_Visitor":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, url: str) -> _Answer:
        parts = urlsplit(url)
        target = urlunsplit(("", "", parts.path, parts.query, ""))
        self._connection.request("GET", target, headers={"User-Agent": AGENT, "Accept": "text/html,*/*"})
        got = self._connection.getresponse()
        body = got.read()
        charset = got.headers.get_content_charset()
        return _Answer(url, got.status, got.headers.get_content_type(), charset, got.headers.get("Location"), body)
