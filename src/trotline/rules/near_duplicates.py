"""Pages that have the same text: soft 404s, one page under many addresses, and what else a site can repeat for ever.

Two measures, because a number can be data or decoration:

- pages are *alike* if their text is the same but for digits and for the page's own address;
- a page *repeats* others if their numbers and pictures are the same as well, but for the numbers in its address and
  their neighbours ("May 2031", with links to April and June).

Product variants, price lists and scanned books are alike and do not repeat each other. Months without events do. A
lane has a budget of new links on pages that repeat others: that, and not the number of such pages, is what an endless
site can cost. Being alike makes an address that looks like a trap one (`rules/traps.py`). All is counted per lane, in
bounded memory. Rows are stored in any case: only links are left out.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import msgspec
import xxhash

from trotline.rules.traps import TrapRules

ALIKE_PAGES = "pages alike: "
SAME = ALIKE_PAGES + "same text"
SOFT_404 = ALIKE_PAGES + "soft 404"
SAME_TEXT = "trap: same text"
NOT_FOUND = "trap: soft 404"

REPORTED = 3
"""From the third of them on pages that are alike are reported."""
ALIKE_FROM = 20
"""Above so many pages that are alike, an address that looks like a trap is taken for one."""
NUMBERS_TOO = 10
"""Where the numbers change on every page (a clock, a request id, or data), budgets are so many times as high."""
LEAST = 64
"""Bytes: shorter texts say too little to tell pages apart (frames, or pages that a script fills)."""
ALL_OF_FIRST = 200
"""Pages of a lane that are all looked at."""
EVERY = 8
"""From then on one page of so many is looked at, unless the lane has many pages that are alike."""
_TEXTS = 16_384
_LANES = 4_096
_DIGITS = b"0123456789 \t\r\n"
_BLANKS = b" \t\r\n"
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
    """What is to be said about a page whose text is that of others."""

    tally: str
    trap: str
    """Why links of such pages are left out, if they are."""
    room: int | None = None
    """How many new links it may still lead to; None: any number."""
    alike: bool = False
    """It is like many others but for digits."""
    repeats: bool = False
    """Its numbers and pictures are those of another page, too."""


class DuplicateDetector:
    """Counts pages that have the same text. Holds at most some thousand texts (as hashes) and lanes."""

    def __init__(self, rules: TrapRules | None = None) -> None:
        self.rules = rules or TrapRules()
        self._alike: dict[tuple[str, int], int] = {}
        """Lane and text without digits -> pages."""
        self._exact: dict[tuple[str, int], int] = {}
        """Lane and text with its numbers and pictures -> pages; only of texts that were met several times."""
        self._led_to: dict[tuple[str, str, bool], int] = {}
        """Lane, trap, and whether pages repeat others or are only alike -> new links that stood on them."""
        self._lanes: dict[str, int] = {}
        self._hot: dict[str, None] = {}

    @property
    def off(self) -> bool:
        return not (self.rules.same_text or self.rules.soft_404)

    def weight(self, lane: str) -> int:
        """How many pages the next page of a lane stands for; 0: it need not be looked at."""
        number = self._lanes.pop(lane, 0) + 1
        self._lanes[lane] = number
        _bound(self._lanes, _LANES)
        if number <= ALL_OF_FIRST or lane in self._hot:
            return 1
        return EVERY if number % EVERY == 0 else 0

    def look(
        self, lane: str, url: str, text: bytes, pictures: Callable[[], bytes] = bytes, weight: int = 1
    ) -> Similarity | None:
        """None: there is nothing to say about this page. `pictures` is asked only if its text is known."""
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
        return self._said(lane, exact > weight, alike > ALIKE_FROM, says_so)

    def led_to(self, lane: str, likeness: Similarity, links: int) -> None:
        """So many new links stood on a page like that."""
        if links:
            _count(self._led_to, (lane, likeness.trap, likeness.repeats), links, 4 * _LANES)

    def _said(self, lane: str, repeats: bool, alike: bool, says_so: bool) -> Similarity:
        trap = NOT_FOUND if says_so else SAME_TEXT
        budget = self.rules.soft_404 if says_so else self.rules.same_text
        used = self._led_to.get((lane, trap, repeats), 0)
        room = max(0, budget * (1 if repeats else NUMBERS_TOO) - used) if budget else None
        return Similarity(SOFT_404 if says_so else SAME, trap, room, alike=alike, repeats=repeats)


def text_number(url: str, text: bytes) -> int:
    """The same for pages that are alike."""
    return xxhash.xxh3_64_intdigest(_without_echoes(url, text).translate(None, _DIGITS))


def _without_echoes(url: str, text: bytes) -> bytes:
    """The text without the page's own address: what an error page likes to repeat."""
    for part in _echoes(url):
        text = text.replace(part, b"")
    return text


def _echoes(url: str) -> Iterator[bytes]:
    """The address behind the host, and its ends, longest first. What is as short as a word of the page would take more
    out of it than its address."""
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
    """The numbers of a text that its address does not explain."""
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
        # A dict keeps its order, and what is seen again goes to its end: the first is the one unseen for longest.
        del entries[next(iter(entries))]
