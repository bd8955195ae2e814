"""Layouts of the arrays that Python and the Lua scripts exchange.

Python uses the names of the values; the scripts get their positions as constants (lua_constants.py).
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import starmap
from typing import Any, NamedTuple, TypeVar

_Row = TypeVar("_Row", bound=tuple[Any, ...])


def unflatten(layout: Callable[..., _Row], flat: Sequence[Any]) -> Iterator[_Row]:
    """The rows of a flat array."""
    return starmap(layout, zip(*[iter(flat)] * len(layout._fields), strict=True))  # type: ignore[attr-defined]


class Books(NamedTuple):
    """The counters of one shard of a job, packed as doubles into the field `books` of its hash (job_counters.lua)."""

    waiting: float = 0
    leased: float = 0
    done: float = 0
    dead: float = 0
    entered: float = 0
    """Tasks ever admitted; only grows."""
    ended: float = 0
    """Tasks ever ended; only grows."""
    leases: float = 0
    """Counter for tokens."""
    turns: float = 0
    """Counter for the stamps of ready lanes."""
    delayed: float = 0
    """Part of waiting: not due yet."""
    buckets: float = 2048
    """Sets of the exact duplicate filter."""
    seen: float = 0
    """Fingerprints in the duplicate filter."""
    draining: float = 0
    """Number of draining lanes."""

    def pack(self) -> bytes:
        return _BOOKS.pack(*self)


_BOOKS = struct.Struct("<" + "d" * len(Books._fields))
BOOKS_FORM = _BOOKS.format


def read_books(packed: bytes) -> Books:
    return Books._make(_BOOKS.unpack(packed))


class NewTask(NamedTuple):
    """One task of a put or a settle (helpers/admit.lua); flat."""

    fingerprint: str
    """Decimal: a Lua number would round it."""
    spread: int
    """Determines its bucket in the duplicate filter (helpers/seen_exact.lua)."""
    lane: int
    """Index of its lane in the names of the call."""
    level: int
    due: float
    blob: Any


SHELVED = struct.Struct("<IH")
"""In front of a task in a parcel (helpers/broker_shelves.lua): bytes of the blob, bytes of the lane's name."""


class MovedTask(NamedTuple):
    """A task that moved here from another shard (receive_moved_tasks.lua); flat."""

    mark: str
    """Fingerprint and number of redirects: identifies a repeated move."""
    lane: int
    level: int
    wait: float
    blob: Any


class EndKind(IntEnum):
    """How a lease ends."""

    DONE = 0
    RETRY = 1
    SNOOZE = 2
    BURY = 3
    LEFT = 4
    """Its task continues in another shard, which has it already."""


class EndingRun(NamedTuple):
    """Leases of one lane that end alike (settle.lua), packed. Texts and `more` are numbers of a place in lists of the
    call, from 1; 0: none."""

    lane: int
    """Index of their lane in the names of the call."""
    size: int
    outcome: EndKind
    is_only: bool
    """The lane has no other run in this call."""
    tally: int
    """The name of their counter."""
    kind: int
    """Verdict of the feedback; with the prefix "+" if the visit knew robots.txt."""
    member: int
    """The result for the member of a proxy pool that they went through (MemberResult)."""
    more: int
    """The EndingMore of the first; those of the others follow it."""


PACKED_RUN = struct.Struct("<HHBBHHHH")


class EndingMore(NamedTuple):
    """Values of some endings only. May be cut before `wait`, or before `examples`."""

    rest: float
    interval: float
    chance: float
    tallies: list[Any]
    """Name, count, name, count, ..."""
    wait: float = 0
    why: str = ""
    detail: str = ""
    lane: int = 0
    """Index of the lane that it moved to; 0: none."""
    blob: Any = ""
    """The moved task."""
    examples: Any = ()
    """Tally, URL, tally, URL, ..."""
    rejects: Any = ()
    """See RejectedRow; flat."""
    lift: Any = ()
    """Members (6 bytes each) whose quarantine ends."""


class RejectedRow(NamedTuple):
    """A record that failed validation."""

    why: str
    times: int
    row: str
    """The record; empty if it is only counted."""


class RevisitRow(NamedTuple):
    """A record that is deleted because its page is visited again (revisit_rejects.lua); flat."""

    entry: Any
    """Its entry in the list of rejects."""
    why: str
    level: int | bool
    """The level of its page; False if another record of the page follows. Not nil, which would end a list in Lua."""


class LeaseReply(NamedTuple):
    """The head of the reply of lease.lua."""

    now: int
    """Microseconds, like all times of this reply."""
    wake: int
    """When there may be more tasks; -1: unknown."""
    token: int
    """The first token; they increase by the number of shards."""
    over: int
    """1: the job is over in this shard."""
    best: int | None
    """The best remaining level, if there are several shards."""
    line: int
    """Number of ready lanes at that level."""
    stuck: bytes
    """Prefixes of jobs whose dead workers hold places that we wait for."""


class ProgressReply(NamedTuple):
    """The reply of progress.lua."""

    now: int
    """Microseconds."""
    waiting: int
    leased: int
    done: int
    dead: int
    delayed: int
    due_in: int
    """Microseconds."""
    state: bytes
    sealed: int
    started_at: bytes
    finished_at: bytes
    tallies: Any
    examples: Any
    shelf: int
    """1: its new tasks wait at a broker."""


class LaneRow(NamedTuple):
    """One lane of list_waiting_lanes.lua and its neighbours (lane_view.lua); flat."""

    lane: bytes
    figures: bytes
    """See LaneFigures."""
    why: bytes
    own: bytes
    """The job's packed lane if it has more levels than there is room for, or empty."""


class LaneFigures(NamedTuple):
    """Packed: a hundred thousand lanes are read at once, and text would cost three times as much."""

    state: int
    leased: int
    waiting: float
    concurrency: int
    interval: float
    rest_until: float
    latency: float
    trouble: float
    credit: float
    """UNCAPPED (rules/pace.py): retries are not capped."""


LANE_COUNTS = struct.Struct("<BId")
LANE_PACE = struct.Struct("<Iddddd")
LANE_FIGURES = struct.Struct(LANE_COUNTS.format + LANE_PACE.format[1:])


class WorkerRow(NamedTuple):
    """One worker of list_workers.lua; flat."""

    name: bytes
    seen_at: int
    """Microseconds."""
    leased: int
    done: bytes
    failed: bytes
    about: bytes


class LanePaceReply(NamedTuple):
    """The reply of lane_pace.lua, as text. `ordered` (0 or 3) bounds follow, then each job's prefix and bounds."""

    interval: bytes
    concurrency: bytes
    running: bytes
    asked: bytes
    limit: bytes
    rest_until: bytes
    why: bytes
    credit: bytes
    """Empty: retries are not capped."""
    ordered: bytes


class JobBounds(NamedTuple):
    """One job of lane_pace.lua; flat."""

    job: bytes
    floor: bytes
    ceiling: bytes
    concurrency: bytes


class ParcelRow(NamedTuple):
    """One parcel of outbox_take.lua; flat."""

    id: bytes
    job: bytes
    blob: bytes
    times: int


LANE = (
    "NAME", "WHY", "TOUCHED", "STATE", "LEASED", "WAKE",
    "FLOOR", "CEILING", "CONCURRENCY", "INTERVAL", "NEXT", "REST",
    "FAILURES", "SINCE", "RESTS", "SLOWED", "LATENCY", "USUAL", "TROUBLE", "CREDIT", "CREDITED",
    "LIMIT", "SURE", "LOST", "PHASE", "ANSWERS", "LAST_ANSWERS", "LAST_PHASE", "ASKED", "ASKED_AT", "OLDER",
    "ORDERED", "CLAIMS", "MINE", "CHANGED", "FREED", "KEPT", "DELAYED", "LEVELS",
)  # fmt: skip
"""A lane in a script. FLOOR to OLDER are the fields of rules/pace.py, packed in this order; after LEVELS, the number
of levels with tasks of the job, follow pairs of level and stamp."""

CLAIM = ("OWNER", "RUNS", "USED", "WANTS", "AT_LEAST", "AT_MOST", "PLACES")
"""One job's claim on a lane: its number, its visits there, when it was served last (or first requested a start), since
when it waits for a start (0: it does not; FOREVER: until a place is released), and its bounds. Flat."""

MEMBER = ("ID", "ADDED", "DUE", "QUALITY", "USES", "GOOD", "STRIKES", "SLOW", "BANNED_AT")
"""A member of a proxy pool in a lane (Identity in rules/proxy_ring.py). ADDED: its number in the pool. BANNED_AT is
kept of members that rest only: the others are in no quarantine."""
MEMBER_FORM = "<c6I4I5BBBBB"
MEMBER_BYTES = 20
MEMBER_ID_BYTES, MEMBER_NAME_BYTES, MEMBER_FRONT_BYTES = 6, 10, 15
"""ID; ID and ADDED; and with DUE. What follows them is its state."""
MEMBER_PARTS_FORM = "<c10I5c5"
"""ID and ADDED, DUE, and the state."""
MEMBER_STATE_FORM = "<I5c5"
"""DUE and the state."""
RESTING_FORM = "<c6I3I3BB"
"""A member that rests: ID, the last 24 bits of ADDED and of BANNED_AT, USES, and quality * 4 + good. A text of 14 bytes
takes 16 of memory, one of 15 takes 32."""
RESTING_NUMBERS = 2**24
RESTING_SCALE = 4096
RESTING_STRIKE = 256
"""Its score is DUE, in units, times the first, strikes times the second, and slow."""
TAKEN = ("FRONT", "DUE", "STATE")
"""A member that a lease takes: ID and ADDED, DUE in units, and the state; or the array of the member, and twice false.
Flat."""
RING = (
    "DEALT", "CHANGES", "FIRST_REST", "GAP", "GAP_AT",
    "EVIDENCE", "SHARE", "SUSPECTED_AT", "BLOCKED_AT", "TESTED_SINCE", "TESTED_BLOCKED_AT", "TESTED",
)  # fmt: skip
"""A lane's ring (LaneRing in rules/proxy_ring.py). DEALT: the number of the last member that it was dealt. FIRST_REST:
when the first of its resting members is due, 0 if none rests. CHANGES: of the pool, as far as the ring has followed
them. TESTED: six bytes, zeros if no member is. Up to GAP_AT in one string, and the rest, of few lanes, in another."""
PACKED_RING = struct.Struct("<IIddd")
CALM_RING = struct.Struct("<II")
"""The short form: DEALT and CHANGES, where the other values are 0."""
PACKED_EVIDENCE = struct.Struct("<dddddd6s")
DEALT_TOGETHER = 16
"""Members of a pool whose ids and numbers are kept in one string, in the order of their numbers."""
SET_ASIDE = 255
"""In place of a member's uses: it rests because it was removed from the pool."""
PACKED_RULES = struct.Struct("<ddIddIIddd")
"""PoolRules, in the order of its fields. Older versions wrote the first six."""

TEMPLATE_NUMBERS = 65_000
"""Range of template numbers: two bytes in a task."""
MOST_TEMPLATES = 58_500
"""Fewer than numbers, so that free ones are found quickly."""

SHARED_LANE = struct.Struct("<BHBddIdddIdIdddddddBddIIdddI")
"""The shared part of a lane: 0, number of claims, 1 if an operator set its bounds; FLOOR to OLDER. Then follow the
operator's bounds, the claims, and WHY."""
STRUGGLING, CALM = 0, 1
"""The first byte. A calm lane has one claim, and nothing but good answers: a broad crawl has hundreds of thousands."""
CALM_LANE = struct.Struct("<BIIdddIdddddd")
"""The short form: 1, its only claim without WANTS, INTERVAL, NEXT, LATENCY, USUAL, ASKED and ASKED_AT."""
BOUNDS = struct.Struct("<ddI")
"""A pace: shortest and longest interval, visits at the same time."""
JOB_BOUNDS = struct.Struct("<ddId")
"""The same of a job, and the interval per member of a proxy pool."""
PACKED_CLAIM = struct.Struct("<IIddddI")
STARTS = struct.Struct(">Hdff")
"""Leases that were handed out together, behind the token of the first (6 bytes): how many, when, seconds until the
first may start, and from one start to the next."""
TOKEN_BYTES, FINGERPRINT_BYTES = 6, 8
NOTE = struct.Struct("<dI")
"""In front of a note's data: its version, and bytes of the name of the call that wrote it; then that name."""
