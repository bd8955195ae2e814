"""Where a crawl would never end: repeated structure, endless calendars, query variants, session ids.

Some rules look at the address alone. The others count distinct variants of one pattern, in bounded memory, and refuse
only when a pattern has had more than its share; the first of each always pass. Everything refused is in `caught`.
"""

import re

import msgspec
import xxhash

from trotline.model.moments import Moment
from trotline.rules.urls import Address

DEEP = "trap: deep path"
REPEATED = "trap: repeated segments"
CALENDAR = "trap: endless calendar"
VARIANTS = "trap: query variants"
SESSION = "trap: session id"


class TrapRules(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a pattern is too much. 0 switches a rule off."""

    segments: int = 30
    """Segments in a path."""
    same_segment: int = 3
    """How often one segment may stand in a path."""
    cycles: int = 2
    """How often a group of segments may follow itself: /a/b/a/b passes, /a/b/a/b/a/b does not."""
    query_variants: int = 1_000
    """Distinct queries of one host and path, where two or more parameters vary (filters times sorting times ...)."""
    query_values: int = 100_000
    """Distinct queries of one host and path where only one parameter varies: an id or a page number."""
    calendar_pages: int = 10_000
    """Distinct dates in one place of one path (or query)."""
    years_ahead: int = 5
    """Later dates in what is named like a calendar are refused."""
    years_back: int = 200
    session_variants: int = 2
    """Visits of one page under different session ids."""
    same_text: int = 500
    """Pages of one lane that read the same but for digits and their own address; links of further ones are not
    followed."""
    soft_404: int = 20
    """The same for pages that say that there is nothing here."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 0:
                raise ValueError(f"trap rule {name} is below 0; write 0 to switch it off")


class TrapWatch:
    """What was seen so far of each pattern, bounded; and what was caught."""

    def __init__(self, rules: TrapRules | None = None) -> None:
        self.rules = rules = rules or TrapRules()
        self.caught: dict[str, tuple[int, str]] = {}
        """Reason -> how many, and the first of them."""
        # At most, with the default rules: 2, 1.6, 2.5 and 0.5 MB of maps.
        self._variants = Shares(rules.query_variants, keys=2_048, why=VARIANTS)
        self._values = Shares(rules.query_values, keys=64, why=VARIANTS)
        self._dates = Shares(rules.calendar_pages, keys=256, why=CALENDAR)
        self._sessions = Shares(rules.session_variants, keys=8_192, why=SESSION)
        self._shapes = QueryShapes(keys=4_096)

    def why(self, address: Address, now: Moment = 0.0) -> str | None:
        """None if the address may pass (and counts from now on), else the reason. Without `now` no date is far."""
        uses = self._uses(address.identity)
        reason = self._judge(address.identity, uses, now)
        if reason is not None:
            count, example = self.caught.get(reason, (0, address.url))
            self.caught[reason] = (count + 1, example)
            return reason
        for share, pattern, item in uses:
            share.take(pattern, item)
            if share is self._variants or share is self._values:
                self._shapes.learn(pattern, item)
        return None

    def would(self, address: Address, now: Moment = 0.0) -> str | None:
        """What `why` would say; changes nothing."""
        return self._judge(address.identity, self._uses(address.identity), now)

    def _judge(self, identity: str, uses: list["Use"], now: Moment) -> str | None:
        path, _, query = identity.partition("?")
        reason = self._structure(path) or self._far(path, query, now)
        if reason is not None:
            return reason
        for share, pattern, _ in uses:
            if share.used_up(pattern):
                return share.why
        return None

    def _structure(self, path: str) -> str | None:
        # Behind "https:", "", "host": an identity always has a path.
        segments = path.rstrip("/").split("/")[3:]
        if self.rules.segments and len(segments) > self.rules.segments:
            return DEEP
        if len(set(segments)) == len(segments):
            return None
        # With the rule above switched off a hostile path must not cost more than this.
        segments = segments[:_LOOKED_AT]
        if self.rules.same_segment and max(map(segments.count, segments)) > self.rules.same_segment:
            return REPEATED
        return REPEATED if self.rules.cycles and cycles(segments) > self.rules.cycles else None

    def _far(self, path: str, query: str, now: Moment) -> str | None:
        """A date far from now, where the path or the parameter is named like a calendar: /p/2077/11 is a product."""
        if now < _NO_REAL_CLOCK:
            return None
        date = _path_date(path)
        if date is not None and not _CALENDAR_WORD.search(path):
            date = None
        date = date or (_query_date(query) if query else None)
        if date is None:
            return None
        ahead = int(date[1]) - (1970 + int(now // _YEAR))
        rules = self.rules
        far = (rules.years_ahead and ahead > rules.years_ahead) or (rules.years_back and -ahead > rules.years_back)
        return CALENDAR if far else None

    def _uses(self, identity: str) -> list["Use"]:
        """Which shares this address takes from: the share, by which pattern, which item of it."""
        path, _, query = identity.partition("?")
        uses: list[Use] = []
        if (query or ";" in path or "(" in path) and _mentions(identity, _SESSION_MARKS):
            without = _SESSION.sub(r"\1", identity)
            if without != identity:
                uses.append((self._sessions, without, identity))
                path, _, query = without.partition("?")
        date = _path_date(path)
        # A date inside a path (/2031/05/17/the-story) is an article of that day; at its end it lists a day or month.
        if date and (date.end() >= len(path) - 1 or _CALENDAR_WORD.search(path)):
            uses.append((self._dates, _PATH_DATE.sub("/{date}", path), path))
        if query:
            if _query_date(query):
                masked = _DATE_PART.sub(r"\1{date}", query)
                uses.append((self._dates, f"{path}?{masked}", query))
                query = masked
            listed = self._variants.used_up(path) and self._shapes.one_varies(path, query)
            uses.append((self._values if listed else self._variants, path, query))
        return [use for use in uses if use[0].size]


class Shares:
    """Counts the distinct items of many patterns: `size` of each pass, then none.

    An item is one bit of a small map, so that an item seen again is not counted again. Two items can share a bit:
    somewhat more than `size` may pass, never fewer. The pattern not seen for longest is forgotten first.
    """

    def __init__(self, size: int, *, keys: int, why: str) -> None:
        self.size = size
        self.why = why
        self._keys = keys
        self._bits = max(64, size * (8 if size <= 10_000 else 2))
        self._seen: dict[str, tuple[bytearray, int]] = {}

    def used_up(self, pattern: str) -> bool:
        seen = self._seen.get(pattern)
        return seen is not None and seen[1] >= self.size

    def take(self, pattern: str, item: str) -> None:
        # Out and in again: a dict keeps its order, so its first key is the one not seen for longest.
        bits, count = self._seen.pop(pattern) if pattern in self._seen else (bytearray(self._bits // 8 + 1), 0)
        byte, bit = divmod(xxhash.xxh3_64_intdigest(item.encode("utf-8", "surrogatepass")) % self._bits, 8)
        if not bits[byte] >> bit & 1:
            bits[byte] |= 1 << bit
            count += 1
        self._seen[pattern] = (bits, count)
        if len(self._seen) > self._keys:
            del self._seen[next(iter(self._seen))]


Use = tuple[Shares, str, str]


class QueryShapes:
    """Which parameters of a path vary. An id that varies alone makes a list; filters that vary together multiply."""

    def __init__(self, *, keys: int) -> None:
        self._keys = keys
        self._shapes: dict[tuple[str, ...], tuple[tuple[str, ...], frozenset[int]]] = {}

    def one_varies(self, path: str, query: str) -> bool:
        """Is this a known form of query, of which one parameter varies and the others stay?"""
        shape, values = self._read(path, query)
        known = self._shapes.get(shape)
        return known is not None and len(self._varied(known, values)) <= 1

    def learn(self, path: str, query: str) -> None:
        shape, values = self._read(path, query)
        known = self._shapes.pop(shape, (values, frozenset[int]()))
        self._shapes[shape] = (known[0], self._varied(known, values))
        if len(self._shapes) > self._keys:
            del self._shapes[next(iter(self._shapes))]

    @staticmethod
    def _read(path: str, query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if "=" not in query:
            return (path,), (query,)
        pairs = [part.partition("=") for part in query.split("&", _LOOKED_AT)]
        return (path, *(name for name, _, _ in pairs)), tuple(value for _, _, value in pairs)

    @staticmethod
    def _varied(known: tuple[tuple[str, ...], frozenset[int]], values: tuple[str, ...]) -> frozenset[int]:
        first, varied = known
        return varied | {place for place, value in enumerate(values) if value != first[place]}


def cycles(segments: list[str]) -> int:
    """How often the most repeated group of two or more segments follows itself."""
    most = 1
    for width in range(2, len(segments) // 2 + 1):
        run = 0
        for place in range(len(segments) - width):
            run = run + 1 if segments[place] == segments[place + width] else 0
            most = max(most, run // width + 1)
    return most


def _path_date(path: str) -> re.Match[str] | None:
    # Plain looks first, here and below: they cost a tenth of the patterns, and nearly every address ends there.
    return _PATH_DATE.search(path) if "/2" in path or "/1" in path else None


def _query_date(query: str) -> re.Match[str] | None:
    return _QUERY_DATE.search(query) if ("=2" in query or "=1" in query) and _mentions(query, _DATE_MARKS) else None


def _mentions(text: str, marks: tuple[str, ...]) -> bool:
    text = text.lower()
    for mark in marks:  # noqa: SIM110 - any() over a generator costs more than the search
        if mark in text:
            return True
    return False


_YEAR = 365.2425 * 86_400
_NO_REAL_CLOCK = 1e9
"""A virtual clock starts at 0; dates are judged only by a real one."""

_LOOKED_AT = 100

_WORDS = "calendar|cal|event|agenda|schedule|archive|date|day|month|week|year|kalender|termine"
_CALENDAR_WORD = re.compile(rf"[/_.\-](?:{_WORDS})s?(?=[/_.\-]|$)", re.IGNORECASE)
_YEARS = r"((?:1[89]|2[0-9])\d\d)"
_PATH_DATE = re.compile(rf"/{_YEARS}([/\-])(?:1[0-2]|0?[1-9])(?:\2(?:3[01]|[12][0-9]|0?[1-9]))?(?=/|$)")
"""/2031/05, /2031/05/17, /2031-05-17"""
_NAME = r"(?:^|(?<=&))(?:\w{0,20}[_\-])?(?:date|day|month|week|year|ym|calendar)="
_QUERY_DATE = re.compile(rf"{_NAME}{_YEARS}(?:-?\d\d){{0,2}}(?=&|$)", re.IGNORECASE)
"""year=2031, date=2031-05-17, ym=203105"""
_DATE_PART = re.compile(rf"({_NAME})[^&]*", re.IGNORECASE)
_DATE_MARKS = ("date=", "day=", "month=", "week=", "year=", "ym=", "calendar=")
_SESSION_MARKS = ("sess", "sid=", "zenid=", "cftoken=", "/(")
_SESSION = re.compile(
    r"([?&;/])(?:(?:\w{0,20}sess(?:ion)?_?(?:id)?|sid|oscsid|zenid|cftoken)=(?=[^&;/?]*\d)(?:[0-9a-z]{16,}|[0-9a-f\-]{36})(?=[&;/?]|$)"
    r"|\([a-z]\([a-z0-9]{20,}\)\))",
    re.IGNORECASE,
)
"""?sid=6d1f0c..., ;sessionid=..., and ASP.NET's /(S(...))/. Short or wordy values are ids of the site's own."""
