"""What a sitemap lists: XML, an index of others, or plain lines; compressed or not; broken or not.

No document type is expanded and nothing is fetched. The whole text is parsed in one call, because older parsers take
quadratic time over one huge token that arrives in pieces. What cannot be parsed is searched for <loc> instead, so
that one unescaped ampersand does not lose the other 49,999 entries.

A small file must not take much memory or time: what it may expand to, how deep its elements are nested, how many they
are and how many names they have is bounded. Whatever a bound leaves out is counted in `Sitemap.cuts`.
"""

import html
import re
import zlib
from xml.parsers import expat

import msgspec

from trotline.model.limits import MIB, Limits
from trotline.rules.charset import decode
from trotline.rules.urls import resolve

_LOC = re.compile(r"<loc>\s*+(?:<!\[CDATA\[)?([^<]++)</loc>", re.IGNORECASE)
"""Nothing in it gives back what it took: a page of blanks after <loc> must not be tried in every way."""
_LONGEST_DATE = 64
NESTING = 32
"""Elements inside each other: a sitemap has four, with the extensions for images and news five."""
NAMES = 100_000
"""Different names of elements and attributes: the parser keeps every one of them, in about 200 bytes."""
ELEMENTS = 20
"""Elements for each of the URLs that a file may list: a million of them take about two seconds."""
MEMBERS = 64
"""gzip members in one file."""
URLS, INDEX, SIZE, EXPANSION = "sitemap: URLs", "sitemap: index", "sitemap: size", "sitemap: expansion"
DEPTH, FILES, LONG, ROBOTS = "sitemap: depth", "sitemap: files", "sitemap: long URL", "sitemap: robots.txt"
NESTED, NAMED, CROWDED = "sitemap: nesting", "sitemap: names", "sitemap: elements"
PIECES, BLOCK = "sitemap: gzip members", "sitemap: long tag"
"""What limits cut, as it is counted; `rules.cuts` says it in words, with the setting."""
LONGEST_TAG = MIB
"""Bytes between two "<": the parser holds all the attributes of a tag at once."""
_LONG_TAG = re.compile(rb"<[^<]{%d}" % LONGEST_TAG)
_LINE = re.compile(r"[^\s][^\r\n]*+")


class Entry(msgspec.Struct, frozen=True):
    """One page of a sitemap."""

    url: str
    lastmod: str = ""
    """As written: a date, or a date and time."""


class Cut(msgspec.Struct):
    """Something that a limit left out."""

    count: int = 0
    example: str = ""
    """The first URL of its kind; empty if nobody knows what was left out."""


class Sitemap(msgspec.Struct):
    """What one sitemap file says."""

    entries: list[Entry] = []
    children: list[str] = []
    """Sitemaps that an index points to."""
    dropped: int = 0
    """Lines that are no web address."""
    notes: list[str] = []
    """What is odd about the file."""
    cuts: dict[str, Cut] = {}
    """What was left out, by the limit that did it -> how much of it."""

    def cut(self, what: str, example: str = "") -> None:
        cut = self.cuts.setdefault(what, Cut())
        cut.count += 1
        cut.example = cut.example or example

    def cut_more(self, count: int) -> None:
        """So many more of what was cut last."""
        list(self.cuts.values())[-1].count += count


def room_for(wire_bytes: int, limits: Limits) -> int:
    """How many bytes a sitemap of so many bytes on the wire may become."""
    return min(limits.sitemap, max(MIB, limits.expansion * wire_bytes))


def cut_at(size: int, limits: Limits) -> str:
    """The limit that cut a file at that size."""
    return SIZE if size >= limits.sitemap else EXPANSION


def parse(body: bytes, limits: Limits, wire_bytes: int = 0) -> Sitemap:
    """Never raises, whatever the bytes. `wire_bytes`: the length on the wire, if Content-Encoding is undone already."""
    found = Sitemap()
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


def named_in_robots(body: bytes, url: str, limits: Limits) -> Sitemap:
    """The files that the Sitemap: lines of a robots.txt name, as if it were an index."""
    found = Sitemap()
    for line in decode(body, None)[0].splitlines():
        name, _, value = line.partition(":")
        value = value.partition("#")[0].strip()
        if name.strip(" \t\ufeff").lower() == "sitemap" and value and (place := resolve(url, value)):
            _keep_child(found, place, limits)
    return found


def _gunzip(body: bytes, found: Sitemap, limits: Limits, room: int) -> bytes:
    """Its members one after another, as far as there is room."""
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


class _Enough(Exception):
    """All that is wanted has been read."""


class _Reader:
    """Collects <loc> and <lastmod> of <url> and <sitemap>; what other vocabularies put inside them is passed over."""

    def __init__(self, parser: expat.XMLParserType, body: bytes, found: Sitemap, limits: Limits) -> None:
        self.parser = parser
        self.body = body
        self.found = found
        self.limits = limits
        self.complete = 0
        """Bytes up to the end of the last whole entry."""
        self.path: list[str] = []
        self.values: dict[str, str] = {}
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
        elif name in ("url", "sitemap"):
            kept = self._keep(name)
            self.complete = self.parser.CurrentByteIndex
            if not kept:
                self._count_the_rest(name)
        self.room = 0

    def _keep(self, name: str) -> bool:
        url = self.values.get("loc", "")
        if name == "sitemap":
            return _keep_child(self.found, url, self.limits)
        return _keep(self.found, url, self.values.get("lastmod", ""), self.limits)

    def _count_the_rest(self, name: str) -> None:
        """Parsing what nobody keeps would take longer than all that was kept."""
        tag = name.encode()
        rest = self.body.count(b"<%b>" % tag, self.complete) + self.body.count(b"<%b " % tag, self.complete)
        self.found.cut_more(rest)
        raise _Enough

    def _stop(self) -> None:
        self.found.cut(NESTED if len(self.path) >= NESTING else NAMED if len(self.names) > NAMES else CROWDED)
        raise _Enough

    def entity(self, *_declaration: object) -> None:
        self.found.notes.append("entity declarations are refused")
        raise _Enough

    def attributes(self, *_declaration: object) -> None:
        """Every element of that name would have them all: a short file, and minutes of work."""
        self.found.notes.append("attribute declarations are refused")
        raise _Enough


def _parse_xml(body: bytes, found: Sitemap, limits: Limits) -> None:
    if len(body) > LONGEST_TAG and _LONG_TAG.search(body):
        found.cut(BLOCK)
        _search(body, found, limits)
        return
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
    for match in _LOC.finditer(text):
        url = html.unescape(match[1].strip().removesuffix("]]>").strip())
        if not (_keep_child(found, url, limits) if index else _keep(found, url, "", limits)):
            found.cut_more(text.count("<loc>", match.end()))
            return


def _parse_lines(body: bytes, found: Sitemap, limits: Limits) -> None:
    """One after another: all lines of 50 MiB at once would take a gigabyte."""
    text = decode(body, None)[0]
    for match in _LINE.finditer(text):
        if not _keep(found, match[0].rstrip(), "", limits):
            found.cut_more(text.count("\nhttp", match.end()))
            return


def _keep(found: Sitemap, url: str, lastmod: str, limits: Limits) -> bool:
    """False: there is no room for more."""
    if not _is_web(url):
        found.dropped += 1
    elif len(url) > limits.seed_url:
        found.cut(LONG, url[: limits.seed_url])
    elif len(found.entries) >= limits.sitemap_urls:
        found.cut(URLS, url)
        return False
    else:
        found.entries.append(Entry(url, lastmod))
    return True


def _keep_child(found: Sitemap, url: str, limits: Limits) -> bool:
    if not _is_web(url):
        found.dropped += 1
    elif len(url) > limits.seed_url:
        found.cut(LONG, url[: limits.seed_url])
    elif len(found.children) >= limits.sitemap_urls:
        found.cut(INDEX, url)
        return False
    else:
        found.children.append(url)
    return True


def _is_web(url: str) -> bool:
    return url[:8].lower().startswith(("http://", "https://"))
