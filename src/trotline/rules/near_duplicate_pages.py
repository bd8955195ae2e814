"""Near-duplicate pages: soft 404s, one page under many URLs, endless repetition.

Two measures, because a number can be data or decoration:

- pages are *alike* if their text is the same except for digits and the page's own URL;
- a page *repeats* others if its numbers and images are the same too, except for the numbers in its URL and their
  neighbours ("May 2031", with links to April and June).

Product variants, price lists and scanned books are alike and do not repeat each other; months without events do. A
lane has a budget of new links on pages that repeat others, which bounds the cost of an endless site. A URL that looks
like a trap is refused if its page is alike others (`rules/traps.py`). Counted per lane, in bounded memory. Records are
always stored: only links are dropped.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import msgspec
import xxhash

from trotline.rules.traps import TrapRules

ALIKE_PAGES = "pages alike: "
SAME = ALIKE_PAGES + "same text but for digits"
SOFT_404 = ALIKE_PAGES + "soft 404"
SAME_TEXT = "trap: same text"
NOT_FOUND = "trap: soft 404"

REPORTED = 3
"""Pages that are alike are reported from the third on."""
ALIKE_FROM = 20
"""Above this number of alike pages a URL that looks like a trap is refused."""
NUMBERS_TOO = 10
"""Factor on the budgets if the numbers differ on every page (a clock, a request id, or data)."""
LEAST = 64
"""Bytes: shorter texts are not compared (frames, or pages rendered by a script)."""
ALL_OF_FIRST = 200
"""The first pages of a lane are all compared."""
EVERY = 8
"""After that one of this many pages is compared, unless the lane has many alike pages."""
_TEXTS = 16_384
_LANES = 4_096
_DIGITS = b"0123456789 \t\r\n"
_NUMBER = re.compile(rb"[0-9]+")
_LONGEST_NUMBER = 18
_NUMBERS_OF_AN_ADDRESS = 16
_ECHOES = 8
_SHORTEST_ECHO = 4
_SAYS_NOT_FOUND = re.compile(
    rb"not found|(?:error|status|http)\W{0,3}404\b|\b404\W{0,3}error|(?:does not|doesn.t|no longer) exist|"
    rb"no longer (?:available|here)|nicht gefunden|introuvable|no encontrad|non trovat|n\xc3\xa3o encontrad",
    re.IGNORECASE,
)
_BEGINNING = 2_000


class Similarity(msgspec.Struct, frozen=True):
    """The result for a page whose text is like that of others."""

    tally: str
    trap: str
    """The reason for dropping its links."""
    room: int | None = None
    """How many new links are admitted; None: all."""
    alike: bool = False
    """Its text without digits is that of many others."""
    repeats: bool = False
    """Its numbers and images are those of another page, too."""


class DuplicateDetector:
    """Counts pages with the same text. Keeps at most some thousand hashes of texts, and lanes."""

    def __init__(self, rules: TrapRules | None = None) -> None:
        self.rules = rules or TrapRules()
        self._alike: dict[tuple[str, int], int] = {}
        """Lane and text without digits -> pages."""
        self._exact: dict[tuple[str, int], int] = {}
        """Lane and text with numbers and images -> pages; only of texts that occurred several times."""
        self._led_to: dict[tuple[str, str, bool], int] = {}
        """Lane, trap, and whether pages repeat others or are only alike -> new links on them."""
        self._lanes: dict[str, int] = {}
        self._hot: dict[str, None] = {}

    @property
    def off(self) -> bool:
        return not (self.rules.same_text or self.rules.soft_404)

    def weight(self, lane: str) -> int:
        """How many pages the next page of a lane represents; 0: it is not compared."""
        number = self._lanes.pop(lane, 0) + 1
        self._lanes[lane] = number
        _bound(self._lanes, _LANES)
        if number <= ALL_OF_FIRST or lane in self._hot:
            return 1
        return EVERY if number % EVERY == 0 else 0

    def compare(
        self, lane: str, url: str, text: bytes, pictures: Callable[[], bytes] = bytes, weight: int = 1
    ) -> Similarity | None:
        """None: not a near-duplicate. `pictures` is called only if its text is known."""
        plain = _without_echoes(url, text)
        core = plain.translate(None, _DIGITS)
        if len(core) < LEAST:
            return None
        number = xxhash.xxh3_64_intdigest(core)
        alike = _count(self._alike, (lane, number), weight, _TEXTS)
        if alike < REPORTED or alike == weight:
            return None
        if alike >= 2 * EVERY:
            self._hot[lane] = None
            _bound(self._hot, _LANES)
        details = _numbers_left(url, plain) + b"\n" + pictures()
        exact = _count(self._exact, (lane, number ^ xxhash.xxh3_64_intdigest(details)), weight, _TEXTS)
        says_so = _SAYS_NOT_FOUND.search(text, 0, _BEGINNING) is not None
        return self._verdict(lane, exact > weight, alike > ALIKE_FROM, says_so)

    def led_to(self, lane: str, similarity: Similarity, links: int) -> None:
        """Count the new links of such a page."""
        if links:
            _count(self._led_to, (lane, similarity.trap, similarity.repeats), links, 4 * _LANES)

    def _verdict(self, lane: str, repeats: bool, alike: bool, says_so: bool) -> Similarity:
        trap = NOT_FOUND if says_so else SAME_TEXT
        budget = self.rules.soft_404 if says_so else self.rules.same_text
        used = self._led_to.get((lane, trap, repeats), 0)
        room = max(0, budget * (1 if repeats else NUMBERS_TOO) - used) if budget else None
        return Similarity(SOFT_404 if says_so else SAME, trap, room, alike=alike, repeats=repeats)


def text_number(url: str, text: bytes) -> int:
    """A hash of the text; equal for pages that are alike."""
    return xxhash.xxh3_64_intdigest(_without_echoes(url, text).translate(None, _DIGITS))


def _without_echoes(url: str, text: bytes) -> bytes:
    """The text without the page's own URL, which error pages often quote."""
    for part in _echoes(url):
        text = text.replace(part, b"")
    return text


def _echoes(url: str) -> Iterator[bytes]:
    """The path and its suffixes, longest first; not those as short as an ordinary word of the page."""
    rest = url.partition("://")[2].partition("/")[2]
    for _ in range(_ECHOES):
        if len(rest) < _SHORTEST_ECHO:
            return
        for part in (rest, rest.rstrip("/")) if rest[-1] == "/" else (rest,):
            yield part.encode("utf-8", "surrogatepass")
            if "%" in part:
                yield unquote(part, errors="replace").encode("utf-8", "surrogatepass")
        rest = rest.partition("/")[2]


def _numbers_left(url: str, plain: bytes) -> bytes:
    """The numbers of a text that are not in its URL, nor next to one that is."""
    path = url.partition("://")[2].partition("/")[2].encode("utf-8", "surrogatepass")
    own: set[int] = set()
    for text in _NUMBER.findall(path)[:_NUMBERS_OF_AN_ADDRESS]:
        if len(text) <= _LONGEST_NUMBER:
            own.update((int(text) - 1, int(text), int(text) + 1))
    left = [n for n in _NUMBER.findall(plain) if len(n) > _LONGEST_NUMBER or int(n) not in own]
    return b",".join(left)


def _count(entries: dict[Any, int], key: Any, weight: int, most: int) -> int:
    count = entries.pop(key, 0) + weight
    entries[key] = count
    _bound(entries, most)
    return count


def _bound(entries: dict[Any, Any], most: int) -> None:
    if len(entries) > most:
        # LRU: entries that are seen again move to the end.
        del entries[next(iter(entries))]
