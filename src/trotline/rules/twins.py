"""Pages that read the same: soft 404s, one page under many addresses, and what else a site can repeat for ever.

Two pages are twins when their text is the same but for digits and for the page's own address. That is strict on
purpose: shops whose pages are nine tenths template differ in a name at least. Twins are counted per lane, in bounded
memory; from a number on they are reported, and from a larger one on their links are not followed.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

import msgspec
import xxhash

from trotline.rules.traps import TrapRules

ALIKE_PAGES = "pages alike: "
ALIKE = ALIKE_PAGES + "same text"
SOFT_404 = ALIKE_PAGES + "soft 404"
SAME_TEXT = "trap: same text"
NOT_FOUND = "trap: soft 404"

REPORTED = 3
"""From the third of them on twins are reported."""
LEAST = 64
"""Bytes: shorter texts say too little to tell pages apart (frames, or pages that a script fills)."""
ALL_OF_FIRST = 200
"""Pages of a lane that are all looked at."""
EVERY = 8
"""From then on one page of so many is looked at, unless the lane has many twins already."""
_TEXTS = 8_192
_LANES = 4_096
_DIGITS = b"0123456789 \t\r\n"
_SAYS_NOT_FOUND = re.compile(
    rb"not found|\b404\b|(?:does not|doesn.t|no longer) exist|no longer (?:available|here)|"
    rb"nicht gefunden|introuvable|no encontrad|non trovat|n\xc3\xa3o encontrad",
    re.IGNORECASE,
)
_BEGINNING = 2_000


class Twins(msgspec.Struct, frozen=True):
    """What is to be said about a page that reads like others."""

    tally: str
    refused: str = ""
    """Why its links are not followed; empty: they are."""


class TwinWatch:
    """Counts pages that read the same. Holds at most some thousand texts (as hashes) and lanes."""

    def __init__(self, rules: TrapRules | None = None) -> None:
        self.rules = rules or TrapRules()
        self._texts: dict[tuple[str, int], int] = {}
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

    def look(self, lane: str, url: str, text: bytes, weight: int = 1) -> Twins | None:
        """None: there is nothing to say about this page."""
        core = _core(url, text)
        if len(core) < LEAST:
            return None
        place = (lane, xxhash.xxh3_64_intdigest(core))
        count = self._texts.pop(place, 0) + weight
        self._texts[place] = count
        _bound(self._texts, _TEXTS)
        if count < REPORTED or count == weight:
            return None
        if count >= 2 * EVERY:
            self._hot[lane] = None
            _bound(self._hot, _LANES)
        if _SAYS_NOT_FOUND.search(text, 0, _BEGINNING):
            return Twins(SOFT_404, NOT_FOUND if 0 < self.rules.soft_404 < count else "")
        return Twins(ALIKE, SAME_TEXT if 0 < self.rules.same_text < count else "")


def _core(url: str, text: bytes) -> bytes:
    """The text without digits, white space and the page's own address: what an error page likes to repeat."""
    for part in _echoes(url):
        text = text.replace(part, b"")
    return text.translate(None, _DIGITS)


def _echoes(url: str) -> Iterator[bytes]:
    path = url.partition("://")[2].partition("/")[2]
    if not path:
        return
    last = path.rstrip("/").rpartition("/")[2]
    for part in (path, last):
        # Longest first; what is as short as a word of the page would take more out of it than its address.
        if len(part) >= 4:
            yield part.encode("utf-8", "surrogatepass")
            if "%" in part:
                yield unquote(part, errors="replace").encode("utf-8", "surrogatepass")


def _bound(entries: dict[tuple[str, int], int] | dict[str, int] | dict[str, None], most: int) -> None:
    if len(entries) > most:
        # A dict keeps its order, and whoever is seen again goes to its end: the first is the one unseen for longest.
        del entries[next(iter(entries))]  # type: ignore[arg-type]
