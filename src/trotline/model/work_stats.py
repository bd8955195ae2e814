"""The figures of a worker process: counters since it started, sent with its heartbeat."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from trotline.model.time import Seconds

BOUNDS: tuple[Seconds, ...] = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds of the classes of all timings; the last class has none."""
NO_REQUEST = "none"
"""In place of a verdict: the lease was returned, or no request was sent for it."""
MOST = 2**53
"""Larger counters are not counted any more: JSON and Prometheus have floats."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_Total = Annotated[float, msgspec.Meta(ge=0, le=float(MOST))]
_NOTHING = (0,) * (len(BOUNDS) + 1)


class Timing(msgspec.Struct, frozen=True):
    """How long something took, as a histogram."""

    total: _Total = 0.0
    counts: tuple[_Count, ...] = _NOTHING
    """By class: up to the first of BOUNDS, up to the second, ..., above the last."""

    @property
    def count(self) -> int:
        return sum(self.counts)

    def __add__(self, other: "Timing") -> "Timing":
        counts = tuple(one + another for one, another in zip(self.counts, other.counts, strict=True))
        return Timing(self.total + other.total, counts)


class SlotSeconds(msgspec.Struct, frozen=True, kw_only=True):
    """The time of all slots: in visits, and idle by cause. Their sum is the number of slots times the uptime."""

    busy: _Total = 0.0
    """In a visit: robots.txt, fetch, parse."""
    start: _Total = 0.0
    """A lease is there, and waits for its start time: the pace of its lane or of its proxy."""
    no_lease: _Total = 0.0
    """The frontier has no task that may start soon."""
    frontier: _Total = 0.0
    """The frontier was asked for leases, and has not answered yet."""
    sink: _Total = 0.0
    """Too many finished visits wait to be stored (backpressure)."""

    def __add__(self, other: "SlotSeconds") -> "SlotSeconds":
        return SlotSeconds(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class WorkStats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Visits and records are counted when the frontier has accepted them, as in the job's own counters."""

    uptime: _Total = 0.0
    cpu: _Total = 0.0
    """Processor seconds, of all threads."""
    waited: _Total = 0.0
    """Seconds in which its event loop was ready and had no processor: others use the machine, too. 0: unknown."""
    lag: _Total = 0.0
    """How late the event loop was, at most, in the last seconds: not a counter."""
    received: _Count = 0
    """Bytes of page bodies, before decompression."""
    records: _Count = 0
    visits: dict[str, _Count] = {}
    """By verdict, as in the ledger; see NO_REQUEST."""
    done: _Count = 0
    """Leases that it settled as done; `failed`: as retried or buried. As in `WorkerView`, where they are lost with the
    entry of a worker that was silent for too long."""
    failed: _Count = 0
    handler_errors: _Count = 0
    """Pages on which a handler or a hook failed; their verdict is the one of the response."""
    fetch: Timing = Timing()
    parse: Timing = Timing()
    """Judging a response, its handler (with what an async one waits for), and its links."""
    commit: Timing = Timing()
    """Of batches: archiving, storing and settling, with retries."""
    archive: _Total = 0.0
    """Seconds of `commit` in which the archive was written to."""
    store: _Total = 0.0
    """Seconds of `commit` in which the sink was written to."""
    settle: _Total = 0.0
    """Seconds of `commit` in which the frontier settled."""
    slots: SlotSeconds = SlotSeconds()
    archive_lost: _Count = 0
    """Pages that were archived, and that somebody removed from the archive meanwhile. Known when the process ends."""
    proxy_faults: dict[str, str] = {}
    """Proxy or account (its id as 12 hex digits) -> why its last visit failed by its own fault; the newest few. Not a
    counter."""


def total(stats: Iterable[WorkStats]) -> WorkStats:
    """The sums; the largest lag and uptime."""
    whole = WorkStats()
    for each in stats:
        whole = _sum(whole, each)
    return whole


def _sum(one: WorkStats, other: WorkStats) -> WorkStats:
    verdicts = one.visits.keys() | other.visits.keys()
    return WorkStats(
        uptime=max(one.uptime, other.uptime),
        cpu=one.cpu + other.cpu,
        waited=one.waited + other.waited,
        lag=max(one.lag, other.lag),
        received=one.received + other.received,
        records=one.records + other.records,
        visits={name: one.visits.get(name, 0) + other.visits.get(name, 0) for name in sorted(verdicts)},
        done=one.done + other.done,
        failed=one.failed + other.failed,
        handler_errors=one.handler_errors + other.handler_errors,
        fetch=one.fetch + other.fetch,
        parse=one.parse + other.parse,
        commit=one.commit + other.commit,
        archive=one.archive + other.archive,
        store=one.store + other.store,
        settle=one.settle + other.settle,
        slots=one.slots + other.slots,
        archive_lost=one.archive_lost + other.archive_lost,
        proxy_faults={**one.proxy_faults, **other.proxy_faults},
    )
