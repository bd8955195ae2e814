"""Crawler traps: repeated path structure, endless calendars, combined filters, session ids.

A URL alone proves little: a path that repeats itself can be a tree of packages, a date in 2040 an eclipse. So most
rules need evidence from the pages too: they refuse a link only if its page is a near-duplicate of many others
(`rules/near_duplicate_pages.py`). Variants of one pattern are counted in bounded memory, and the first ones always
pass. Everything refused is in `caught`.
"""

import re

import msgspec

from trotline.model.keyword_structs import NamedValues, is_number
from trotline.model.time import Moment
from trotline.rules.session_ids import SessionDetector, without_session
from trotline.rules.url_pattern_counts import QueryShapes, VariantCounter
from trotline.rules.urls import Address

DEEP = "trap: deep path"
REPEATED = "trap: repeated segments"
CYCLES = "trap: repeated groups"
CALENDAR = "trap: endless calendar"
AHEAD = "trap: far future date"
BACK = "trap: far past date"
VARIANTS = "trap: query variants"
VALUES = "trap: query values"
SESSION = "trap: session id"
"""One reason per rule; the summary maps it to the setting."""


class TrapRules(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedValues):
    """The limits of the trap rules. 0 disables a rule."""

    segments: int = 30
    """Segments in a path."""
    same_segment: int = 3
    """How often one segment may occur in a path, on pages that repeat others; on any page three times as often."""
    cycles: int = 2
    """How often a group of segments may repeat (/a/b/a/b passes, /a/b/a/b/a/b does not), in the same way."""
    query_variants: int = 10_000
    """Distinct queries of one host and path, where three or more parameters are combined with each other."""
    query_values: int = 0
    """Distinct queries of one host and path where one or two parameters vary: an id, a thread and its pages."""
    calendar_pages: int = 100_000
    """Distinct dates in one position of one path (or query)."""
    years_ahead: int = 5
    """Later dates in paths or parameters named like a calendar are refused, on pages that are like many others."""
    years_back: int = 500
    session_variants: int = 2
    """Visits of one page under different session ids, once these are confirmed."""
    same_text: int = 10_000
    """New links of one lane on pages whose text, numbers and images repeat those of others; ten times as many if the
    numbers differ."""
    soft_404: int = 100
    """The same for pages with a "not found" text."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not is_number(getattr(self, name)):
                raise ValueError(f"trap rule {name} is {getattr(self, name)!r}; give a number")
            if getattr(self, name) < 0:
                raise ValueError(f"trap rule {name} is below 0; write 0 to switch it off")


class TrapDetector:
    """Applies the trap rules; counts URLs per pattern in bounded memory."""

    def __init__(self, rules: TrapRules | None = None) -> None:
        self.rules = rules = rules or TrapRules()
        self.sessions = SessionDetector()
        self.caught: dict[str, tuple[int, str]] = {}
        """Reason -> number of refused URLs, and the first of them."""
        # At most, with the default rules: 5, 1.6 and 0.5 MB of bitmaps, and 6 MB of query shapes.
        self._variants = VariantCounter(rules.query_variants, keys=2_048, why=VARIANTS)
        self._values = VariantCounter(rules.query_values, keys=64, why=VALUES)
        self._dates = VariantCounter(rules.calendar_pages, keys=64, why=CALENDAR)
        self._ids = VariantCounter(rules.session_variants, keys=8_192, why=SESSION)
        self._shapes = QueryShapes(keys=2_048)

    def why(self, address: Address, now: Moment = 0.0, *, alike: bool = False, repeats: bool = False) -> str | None:
        """The reason to refuse the URL, or None; then it is counted. Without `now` dates are not checked.

        `alike` and `repeats`: is the page of the link a near-duplicate?
        """
        counters = self._counters(address)
        reason = self._judge(address.identity, counters, now, alike, repeats)
        if reason is not None:
            count, example = self.caught.get(reason, (0, address.url))
            self.caught[reason] = (count + 1, example)
            return reason
        for counter, pattern, item in counters:
            if counter.size:
                counter.add(pattern, item)
            if counter is self._variants or counter is self._values:
                self._shapes.learn(pattern, item)
        return None

    def would(self, address: Address, now: Moment = 0.0) -> str | None:
        """The result of `why` for a link of an ordinary page, without counting it."""
        return self._judge(address.identity, self._counters(address), now, False, False)

    def _judge(
        self, identity: str, counters: list["CounterUse"], now: Moment, alike: bool, repeats: bool
    ) -> str | None:
        path, _, query = identity.partition("?")
        reason = self._structure(path, repeats) or (self._far(path, query, now) if alike else None)
        if reason is not None:
            return reason
        for counter, pattern, _ in counters:
            if counter.size and counter.is_full(pattern):
                return counter.why
        return None

    def _structure(self, path: str, repeats: bool) -> str | None:
        # After "https:", "", "host": an identity always has a path.
        segments = path.rstrip("/").split("/")[3:]
        if self.rules.segments and len(segments) > self.rules.segments:
            return DEEP
        if len(set(segments)) == len(segments):
            return None
        # Bounds the cost of a hostile path if the rule above is disabled.
        segments = segments[:_LOOKED_AT]
        factor = 1 if repeats else _WITHOUT_EVIDENCE
        if self.rules.same_segment and max(map(segments.count, segments)) > self.rules.same_segment * factor:
            return REPEATED
        return CYCLES if self.rules.cycles and cycles(segments) > self.rules.cycles * factor else None

    def _far(self, path: str, query: str, now: Moment) -> str | None:
        """A date far from now, if the path or parameter is named like a calendar: /p/2077/11 is a product."""
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
        if rules.years_ahead and ahead > rules.years_ahead:
            return AHEAD
        return BACK if rules.years_back and -ahead > rules.years_back else None

    def _counters(self, address: Address) -> list["CounterUse"]:
        """The counters of this URL: counter, pattern, item."""
        identity = address.identity
        counters: list[CounterUse] = []
        if (without := without_session(identity)) is not None and self.sessions.is_session(address.lane, without):
            counters.append((self._ids, without, identity))
            identity = without
        path, _, query = identity.partition("?")
        date = _path_date(path)
        # A date inside a path (/2031/05/17/the-story) is an article of that day; at its end it lists a day or month.
        if date and (date.end() >= len(path) - 1 or _CALENDAR_WORD.search(path)):
            counters.append((self._dates, _PATH_DATE.sub("/{date}", path), path))
        if query:
            if _query_date(query):
                masked = _DATE_PART.sub(r"\1{date}", query)
                counters.append((self._dates, f"{path}?{masked}", query))
                query = masked
            listed = self._variants.is_full(path) and self._shapes.is_list(path, query)
            counters.append((self._values if listed else self._variants, path, query))
        return counters


CounterUse = tuple[VariantCounter, str, str]


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
    # Substring checks first, here and below: a tenth of the cost of the patterns, and enough for nearly every URL.
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
"""A virtual clock starts at 0; dates are checked only by a real one."""

_LOOKED_AT = 100
_WITHOUT_EVIDENCE = 3
"""Factor on the limits of repetition without evidence from the page."""

_WORDS = "calendar|cal|event|agenda|schedule|archive|date|day|month|week|year|kalender|termine"
_CALENDAR_WORD = re.compile(rf"[/_.\-](?:{_WORDS})s?(?=[/_.\-]|$)", re.IGNORECASE)
_YEARS = r"([12]\d\d\d)"
_PATH_DATE = re.compile(rf"/{_YEARS}([/\-])(?:1[0-2]|0?[1-9])(?:\2(?:3[01]|[12][0-9]|0?[1-9]))?(?=/|$)")
"""/2031/05, /2031/05/17, /2031-05-17"""
_NAME = r"(?:^|(?<=&))(?:\w{0,20}[_\-])?(?:date|day|month|week|year|ym|calendar)="
_QUERY_DATE = re.compile(rf"{_NAME}{_YEARS}(?:-?\d\d){{0,2}}(?=&|$)", re.IGNORECASE)
"""year=2031, date=2031-05-17, ym=203105"""
_DATE_PART = re.compile(rf"({_NAME})[^&]*", re.IGNORECASE)
_DATE_MARKS = ("date=", "day=", "month=", "week=", "year=", "ym=", "calendar=")
