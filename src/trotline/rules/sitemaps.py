"""Sitemap parser: XML, indexes, or plain lines; compressed or not; also broken ones.

Entities are not expanded and nothing is fetched. The whole text is parsed in one call, because older parsers take
quadratic time over one huge token that arrives in pieces. Text that cannot be parsed is searched for <loc> instead, so
that one unescaped ampersand does not lose the other 49,999 entries.

A small file must not take much memory or time: expansion, nesting, and the number of elements and names are limited.
What a limit drops is counted in `SitemapFile.cuts`.
"""

import re
import zlib
from typing import TYPE_CHECKING

import msgspec

from trotline.model.limits import MIB, Limits
from trotline.rules.charset import decode
from trotline.rules.urls import resolve

if TYPE_CHECKING:
    from xml.parsers.expat import XMLParserType


_LOC = re.compile(r"<loc>\s*+(?:<!\[CDATA\[)?([^<]++)</loc>", re.IGNORECASE)
"""Possessive quantifiers: no backtracking over a page of blanks after <loc>."""
NESTING = 32
"""Nesting of elements: a sitemap has four levels, with the extensions for images and news five."""
NAMES = 100_000
"""Distinct names of elements and attributes: the parser keeps each, in about 200 bytes."""
ELEMENTS = 20
"""Elements per allowed URL: a million of them take about two seconds."""
MEMBERS = 64
"""gzip members in one file."""
URLS, INDEX, SIZE, EXPANSION = "sitemap: URLs", "sitemap: index", "sitemap: size", "sitemap: expansion"
DEPTH, FILES, LONG, ROBOTS = "sitemap: depth", "sitemap: files", "sitemap: long URL", "sitemap: robots.txt"
NESTED, NAMED, CROWDED = "sitemap: nesting", "sitemap: names", "sitemap: elements"
PIECES, BLOCK = "sitemap: gzip members", "sitemap: long tag"
"""Counters of the limits; `rules.limit_cuts` describes them and names the setting."""
LONGEST_TAG = MIB
"""Bytes between two "<": the parser holds all attributes of a tag at once."""
_LONG_TAG = re.compile(rb"<[^<]{%d}" % LONGEST_TAG)
_LINE = re.compile(r"[^\s][^\r\n]*+")


class SitemapCut(msgspec.Struct):
    """URLs dropped by one limit."""

    count: int = 0
    example: str = ""
    """The first of them; empty if unknown."""


class SitemapFile(msgspec.Struct):
    urls: list[str] = []
    """The pages."""
    children: list[str] = []
    """The sitemaps in an index."""
    dropped: int = 0
    """Lines that are not http(s) URLs."""
    notes: list[str] = []
    """Errors in the file."""
    cuts: dict[str, SitemapCut] = {}
    """Limit -> what it dropped."""

    def cut(self, what: str, example: str = "") -> None:
        cut = self.cuts.setdefault(what, SitemapCut())
        cut.count += 1
        cut.example = cut.example or example

    def cut_more(self, count: int) -> None:
        """Add to the last cut."""
        list(self.cuts.values())[-1].count += count


def room_for(wire_bytes: int, limits: Limits) -> int:
    """The maximum decompressed size of a sitemap with `wire_bytes`."""
    return min(limits.sitemap, max(MIB, limits.expansion * wire_bytes))


def cut_at(size: int, limits: Limits) -> str:
    """The limit that cut a file at that size."""
    return SIZE if size >= limits.sitemap else EXPANSION


def parse(body: bytes, limits: Limits, wire_bytes: int = 0) -> SitemapFile:
    """Never raises. `wire_bytes`: the compressed length, if Content-Encoding is decoded already."""
    found = SitemapFile()
    if body[:2] == b"\x1f\x8b":
        body = _gunzip(body, found, limits, room_for(wire_bytes or len(body), limits))
    if len(body) > limits.sitemap:
        body = body[: limits.sitemap]
        found.cut(cut_at(limits.sitemap, limits))
    if body.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] == b"<":
        _parse_xml(body, found, limits)
    else:
        _parse_lines(body, found, limits)
    return found


def named_in_robots(body: bytes, url: str, limits: Limits) -> SitemapFile:
    """The files in the Sitemap: lines of a robots.txt, as if it were an index."""
    found = SitemapFile()
    for line in decode(body, None)[0].splitlines():
        name, _, value = line.partition(":")
        value = value.partition("#")[0].strip()
        if name.strip(" \t\ufeff").lower() == "sitemap" and value and (place := resolve(url, value)):
            _keep(found, place, limits, index=True)
    return found


def _gunzip(body: bytes, found: SitemapFile, limits: Limits, room: int) -> bytes:
    """All gzip members, up to `room` bytes."""
    plain = bytearray()
    for _ in range(MEMBERS):
        engine = zlib.decompressobj(31)
        try:
            plain += engine.decompress(body, room + 1 - len(plain))
        except zlib.error as error:
            found.notes.append(f"broken gzip: {error}")
            return bytes(plain)
        if len(plain) > room:
            found.cut(cut_at(room, limits))
            return bytes(plain[:room])
        body = engine.unused_data
        if not engine.eof:
            found.notes.append(f"compressed file ends after {len(plain)} bytes")
        if body[:2] != b"\x1f\x8b":
            return bytes(plain)
    found.cut(PIECES)
    return bytes(plain)


class _Stop(Exception):
    """Ends the parser early."""


class _Reader:
    """Collects <loc> of <url> and <sitemap>; elements of other vocabularies are ignored."""

    def __init__(self, parser: "XMLParserType", body: bytes, found: SitemapFile, limits: Limits) -> None:
        self.parser = parser
        self.body = body
        self.found = found
        self.limits = limits
        self.complete = 0
        """Bytes up to the end of the last complete entry."""
        self.path: list[str] = []
        self.url: str | None = None
        self.text: list[str] = []
        self.room = 0
        self.names: set[str] = set()
        self.left = ELEMENTS * limits.sitemap_urls

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.left -= 1
        if name not in self.names or attributes:
            self.names.add(name)
            self.names.update(attributes)
        if len(self.path) >= NESTING or len(self.names) > NAMES or not self.left:
            self._stop()
        name = name.rpartition(":")[2]
        self.path.append(name)
        if name in ("url", "sitemap"):
            self.url = None
        # Only direct children: <image:loc> sits inside <image:image>.
        wanted = name == "loc" and len(self.path) > 1 and self.path[-2] in ("url", "sitemap")
        self.room = self.limits.seed_url + 1 if wanted else 0
        self.text = []

    def data(self, text: str) -> None:
        if self.room > 0:
            self.text.append(text[: self.room])
            self.room -= len(text)

    def end(self, name: str) -> None:
        name = self.path.pop()
        if name == "loc" and self.text:
            if self.url is None:
                self.url = "".join(self.text).strip()
            self.text = []
        elif name in ("url", "sitemap"):
            kept = _keep(self.found, self.url or "", self.limits, index=name == "sitemap")
            self.complete = self.parser.CurrentByteIndex
            if not kept:
                self._count_the_rest(name)
        self.room = 0

    def _count_the_rest(self, name: str) -> None:
        """Count without parsing: cheaper than the entries that were kept."""
        tag = name.encode()
        rest = self.body.count(b"<%b>" % tag, self.complete) + self.body.count(b"<%b " % tag, self.complete)
        self.found.cut_more(rest)
        raise _Stop

    def _stop(self) -> None:
        self.found.cut(NESTED if len(self.path) >= NESTING else NAMED if len(self.names) > NAMES else CROWDED)
        raise _Stop

    def entity(self, *_declaration: object) -> None:
        self.found.notes.append("entity declarations are refused")
        raise _Stop

    def attributes(self, *_declaration: object) -> None:
        """Default attributes would be added to every element: minutes of work for a short file."""
        self.found.notes.append("attribute declarations are refused")
        raise _Stop


def _parse_xml(body: bytes, found: SitemapFile, limits: Limits) -> None:
    if len(body) > LONGEST_TAG and _LONG_TAG.search(body):
        found.cut(BLOCK)
        _search(body, found, limits)
        return
    from xml.parsers import expat  # most crawls have no sitemap

    parser = expat.ParserCreate()
    reader = _Reader(parser, body, found, limits)
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.EntityDeclHandler = reader.entity
    parser.AttlistDeclHandler = reader.attributes
    try:
        parser.Parse(body, True)
    except _Stop:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        found.notes.append(f"broken XML: {error}")
        _search(body[reader.complete :], found, limits)


def _search(body: bytes, found: SitemapFile, limits: Limits) -> None:
    """The URLs after an XML error. Without structure an index looks like a list of pages, so they count as what was
    found before."""
    import html

    text = decode(body, None)[0]
    index = bool(found.children) or "<sitemapindex" in text[:2000].lower()
    for match in _LOC.finditer(text):
        url = html.unescape(match[1].strip().removesuffix("]]>").strip())
        if not _keep(found, url, limits, index=index):
            found.cut_more(text.count("<loc>", match.end()))
            return


def _parse_lines(body: bytes, found: SitemapFile, limits: Limits) -> None:
    """Line by line: all lines of 50 MiB at once would take a gigabyte."""
    text = decode(body, None)[0]
    for match in _LINE.finditer(text):
        if not _keep(found, match[0].rstrip(), limits):
            found.cut_more(text.count("\nhttp", match.end()))
            return


def _keep(found: SitemapFile, url: str, limits: Limits, *, index: bool = False) -> bool:
    """Add a page, or the sitemap in an index. False: the limit is reached."""
    kept = found.children if index else found.urls
    if not url[:8].lower().startswith(("http://", "https://")):
        found.dropped += 1
    elif len(url) > limits.seed_url:
        found.cut(LONG, url[: limits.seed_url])
    elif len(kept) >= limits.sitemap_urls:
        found.cut(INDEX if index else URLS, url)
        return False
    else:
        kept.append(url)
    return True
