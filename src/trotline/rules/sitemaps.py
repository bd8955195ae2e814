"""What a sitemap lists: XML, an index of others, or plain lines; compressed or not; broken or not.

No document type is expanded and nothing is fetched. The whole text is parsed in one call, because older parsers take
quadratic time over one huge token that arrives in pieces. What cannot be parsed is searched for <loc> instead, so
that one unescaped ampersand does not lose the other 49,999 entries.
"""

import html
import re
import zlib
from xml.parsers import expat

import msgspec

from trotline.model.limits import Limits
from trotline.rules.charset import decode

_LOC = re.compile(r"<loc>\s*+(?:<!\[CDATA\[)?([^<]{1,16384}+)</loc>", re.IGNORECASE)
"""Nothing in it gives back what it took: a page of blanks after <loc> must not be tried in every way."""
_LONGEST_DATE = 64


class Entry(msgspec.Struct, frozen=True):
    """One page of a sitemap."""

    url: str
    lastmod: str = ""
    """As written: a date, or a date and time."""


class Sitemap(msgspec.Struct):
    """What one sitemap file says."""

    entries: list[Entry] = []
    children: list[str] = []
    """Sitemaps that an index points to."""
    dropped: int = 0
    """Lines that are no web address."""
    notes: list[str] = []


def parse(body: bytes, limits: Limits) -> Sitemap:
    """Never raises, whatever the bytes."""
    found = Sitemap()
    if body[:2] == b"\x1f\x8b":
        body = _gunzip(body, found, limits)
    if len(body) > limits.sitemap:
        body = body[: limits.sitemap]
        found.notes.append(f"cut at {limits.sitemap} bytes")
    if body.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] == b"<":
        _parse_xml(body, found, limits)
    else:
        _parse_lines(body, found, limits)
    return found


def _gunzip(body: bytes, found: Sitemap, limits: Limits) -> bytes:
    engine = zlib.decompressobj(31)
    try:
        plain = engine.decompress(body, limits.sitemap)
    except zlib.error as error:
        found.notes.append(f"broken gzip: {error}")
        return b""
    if not engine.eof:
        found.notes.append(f"compressed file cut at {len(plain)} bytes")
    return plain


class _Enough(Exception):
    """All that is wanted has been read."""


class _Reader:
    """Collects <loc> and <lastmod> of <url> and <sitemap>; what other vocabularies put inside them is passed over."""

    def __init__(self, parser: expat.XMLParserType, found: Sitemap, limits: Limits) -> None:
        self.parser = parser
        self.found = found
        self.limits = limits
        self.complete = 0
        """Bytes up to the end of the last whole entry."""
        self.path: list[str] = []
        self.values: dict[str, str] = {}
        self.text: list[str] = []
        self.room = 0

    def start(self, name: str, _attributes: object) -> None:
        name = name.rpartition(":")[2]
        self.path.append(name)
        if name in ("url", "sitemap"):
            self.values = {}
        # Only direct children: <image:loc> sits inside <image:image>.
        wanted = name in ("loc", "lastmod") and len(self.path) > 1 and self.path[-2] in ("url", "sitemap")
        self.room = (self.limits.seed_url + 1 if name == "loc" else _LONGEST_DATE) if wanted else 0
        self.text = []

    def data(self, text: str) -> None:
        if self.room > 0:
            self.text.append(text[: self.room])
            self.room -= len(text)

    def end(self, name: str) -> None:
        name = self.path.pop()
        if name in ("loc", "lastmod") and self.text:
            self.values.setdefault(name, "".join(self.text).strip())
            self.text = []
        elif name == "url":
            _keep(self.found, self.values.get("loc", ""), self.values.get("lastmod", ""), self.limits)
        elif name == "sitemap":
            _keep_child(self.found, self.values.get("loc", ""), self.limits)
        if name in ("url", "sitemap"):
            self.complete = self.parser.CurrentByteIndex
        self.room = 0

    def entity(self, *_declaration: object) -> None:
        self.found.notes.append("entity declarations are refused")
        raise _Enough


def _parse_xml(body: bytes, found: Sitemap, limits: Limits) -> None:
    parser = expat.ParserCreate()
    reader = _Reader(parser, found, limits)
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.EntityDeclHandler = reader.entity
    try:
        parser.Parse(body, True)
    except _Enough:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        found.notes.append(f"broken XML: {error}")
        _search(body[reader.complete :], found, limits)


def _search(body: bytes, found: Sitemap, limits: Limits) -> None:
    """The addresses after the place where the XML broke. Without structure an index looks like a list of pages, so
    they count as what was found before."""
    text = decode(body, None)[0]
    index = bool(found.children) or "<sitemapindex" in text[:2000].lower()
    try:
        for match in _LOC.finditer(text):
            url = html.unescape(match[1].strip().removesuffix("]]>").strip())
            if index:
                _keep_child(found, url, limits)
            else:
                _keep(found, url, "", limits)
    except _Enough:
        return


def _parse_lines(body: bytes, found: Sitemap, limits: Limits) -> None:
    try:
        for line in decode(body, None)[0].splitlines():
            if line.strip():
                _keep(found, line.strip(), "", limits)
    except _Enough:
        return


def _keep(found: Sitemap, url: str, lastmod: str, limits: Limits) -> None:
    if not _is_web(url, limits):
        found.dropped += 1
        return
    if len(found.entries) >= limits.sitemap_urls:
        found.notes.append(f"cut at {limits.sitemap_urls} URLs")
        raise _Enough
    found.entries.append(Entry(url, lastmod))


def _keep_child(found: Sitemap, url: str, limits: Limits) -> None:
    if not _is_web(url, limits):
        found.dropped += 1
        return
    if len(found.children) >= limits.sitemap_urls:
        found.notes.append(f"cut at {limits.sitemap_urls} sitemaps")
        raise _Enough
    found.children.append(url)


def _is_web(url: str, limits: Limits) -> bool:
    return url[:8].lower().startswith(("http://", "https://")) and len(url) <= limits.seed_url
