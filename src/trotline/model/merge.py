"""Merging: records of one thing (sources), what they become (a thing), and what people decided about pairs of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec
import xxhash

from trotline.model.record import Record
from trotline.model.time import Moment

Criterion = Literal["key", "url", "content", "ids", "text"]
CRITERIA: tuple[Criterion, ...] = ("key", "url", "content", "ids", "text")
DEFAULT_CRITERIA: tuple[Criterion, ...] = ("url", "ids", "text")
NEWEST, LONGEST, MOST_FREQUENT, SITE = "newest", "longest", "most frequent", "site"
EVERY_FIELD = "*"
_64_BITS = (1 << 64) - 1
RULES = 3
"""The version of the code that makes things: rules/merge_*.py. Raise it when its results change, and all things are
merged again: keys in a store, made in another way, would meet none of today's, and links would keep their scores.
tests/unit/rules/test_merge_version.py notices other keys and scores."""
TEXT_FIELDS = ("title", "name", "product_name", "product", "headline", "label")
"""The field that names a thing: the first of them that a record has."""

AuthorKey = Callable[[Record], "str | Iterable[str] | None"]
"""`@spider.merge`: records with the same answer are one thing; None: no answer."""


Identity = tuple[str, str, str]
"""Site, kind and key of a record."""


class MergeRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are one thing, and which of their values the thing gets."""

    by: tuple[Criterion, ...] = DEFAULT_CRITERIA
    text: tuple[str, ...] = TEXT_FIELDS
    """Fields of which the first that is there is compared by criterion "text"."""
    merge_from: float = 0.8
    """Texts at least this similar are one thing."""
    review_from: float = 0.7
    """From here to `merge_from` people decide."""
    within_site: bool = False
    """May texts of one site be one thing? Exact criteria may merge them anyway."""
    prefer: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Field ("*": all others) -> "newest", "longest", "most frequent", or "site:A,B": the first that has it."""
    most: int = 1_000
    """A key that more records share is not used: it says too little."""
    most_alike: int = 100
    """The same for groups of similar texts: each pair of a group is compared."""
    author: str = ""
    """Identifies the code of the spider's own rule; empty: there is none."""

    @property
    def fingerprint(self) -> int:
        """Things that were merged under another rule are merged again."""
        return signed(xxhash.xxh3_64_intdigest(msgspec.json.encode(self, order="sorted"), RULES)) or 1


class Source(NamedTuple):
    """A stored record, with what merging needs to know of it."""

    id: int
    """A hash of site, kind and key (`source_id`)."""
    site: str
    kind: str
    key: str
    url: str
    seen_at: Moment
    first_seen_at: Moment
    changes: int
    """How often its data has changed: a re-parse changes it without another sighting."""
    data: str
    """JSON."""
    merged: bool
    """Was it merged before? Then it may have keys and links from that time."""

    @property
    def name(self) -> str:
        """For provenance and messages."""
        return f"{self.site}/{self.key}"


class Link(NamedTuple):
    """Two sources with similar texts."""

    a: int
    """The smaller id."""
    b: int
    score: float


class ReviewDecision(NamedTuple):
    """What a person decided about two sources."""

    a: int
    b: int
    same: bool


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """What the sources of one thing became."""

    id: str
    """Made of the source that was seen first: it stays when later ones join."""
    kind: str
    data: str
    """JSON: the merged fields."""
    provenance: str
    """JSON: field -> "site/key" of the source that it is from."""
    sources: tuple[int, ...]
    sites: tuple[str, ...]
    first_seen_at: Moment
    seen_at: Moment


class ThingView(msgspec.Struct, frozen=True, kw_only=True):
    """A thing as people read it."""

    id: str
    kind: str
    data: str
    provenance: str
    """`{}` if there is one source only."""
    sources: tuple["SourceView", ...]


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    site: str
    key: str
    url: str
    thing: str
    data: str = ""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """Two sources that may be one thing: a person decides."""

    a: SourceView
    b: SourceView
    score: float


class MergeChange(msgspec.Struct, frozen=True, kw_only=True):
    """What one step of a merge writes, whole or not at all."""

    version: int
    """Of the state that it was computed from."""
    rule: int
    sources: tuple[Source, ...]
    """Read and merged in this step."""
    gone: tuple[int, ...]
    """Merged before, and not stored any more."""
    keys: Mapping[int, tuple[int, ...]]
    """Source -> its keys, for each of `sources`."""
    links: tuple[Link, ...]
    """All links of `sources`; those that they had before are deleted."""
    things: tuple[Thing, ...]
    """Of several sources each. With `alone`, of all sources whose thing may have changed; the things that these
    belonged to are deleted."""
    alone: tuple[Source, ...]
    """Each is a thing by itself, with the fields of its record."""


class MergeTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How the tables of the merge stand."""

    sources: int = 0
    things: int = 0
    merged: int = 0
    """Things of more than one source."""
    review: int = 0


def source_id(site: str, kind: str, key: str) -> int:
    return signed(xxhash.xxh3_64_intdigest(f"{site}\0{kind}\0{key}".encode("utf-8", "surrogatepass")))


def signed(number: int) -> int:
    """64 bits as databases store them."""
    return number - (1 << 64) if number >> 63 else number


def thing_id(first: int) -> str:
    return f"{first & _64_BITS:016x}"


def first_of(thing: str) -> int:
    """The source whose id the thing has; ValueError: it is no id."""
    if len(thing) != 16:
        raise ValueError(f"{thing[:40]!r} is not the id of a thing")
    return signed(int(thing, 16))
