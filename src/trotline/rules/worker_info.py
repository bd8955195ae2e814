"""Reads what workers report about themselves. Untrusted: every client of the frontier can write anything there.

A value of the wrong type is left out, as if it had not been sent; texts and lists are cut.
"""

from typing import Any

import msgspec

from trotline.model.job import WorkerInfo, WorkerView
from trotline.model.verdict import Kind
from trotline.model.work_stats import BOUNDS, NO_REQUEST, Timing, WorkStats

LARGEST = 64 * 1024
"""Bytes of a report; a larger one is ignored."""
LONGEST_NAME = 200
"""Characters of a worker's name that are shown."""
LONGEST_TEXT = 600
MOST_NAMES = 1_000
"""Pools, regions and routes of a worker that are read."""
MOST_FAULTS = 50
"""Proxies of a worker whose faults are read."""

_VERDICTS = frozenset({*Kind, NO_REQUEST})
_decode = msgspec.msgpack.Decoder(WorkerInfo).decode
_TYPES = {field.name: field.type for field in msgspec.structs.fields(WorkerInfo)}


def read_info(packed: bytes) -> WorkerInfo:
    """The report of a worker; empty if it cannot be read at all."""
    if not packed or len(packed) > LARGEST:
        return WorkerInfo()
    try:
        found = _decode(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _field_by_field(packed)
    return _bounded(found)


def with_own_counts(view: WorkerView) -> WorkerView:
    """The frontier deletes the entry of a worker that was silent for too long, with its counters; one that comes back
    knows what it did before."""
    stats = view.about.stats
    if stats is None or (stats.done <= view.done and stats.failed <= view.failed):
        return view
    return msgspec.structs.replace(view, done=max(view.done, stats.done), failed=max(view.failed, stats.failed))


def shown_name(name: str) -> str:
    return name[:LONGEST_NAME]


def checked(stats: WorkStats | None) -> WorkStats | None:
    """The figures; None if they cannot be right. Types, signs and sizes were checked when they were decoded."""
    if stats is None:
        return None
    timings: tuple[Timing, ...] = (stats.fetch, stats.parse, stats.commit)
    if any(len(timing.counts) != len(BOUNDS) + 1 for timing in timings):
        # Of a version with other classes.
        return None
    # NaN passes every comparison that is written as "not less than".
    sums = (
        stats.uptime,
        stats.cpu,
        stats.waited,
        stats.lag,
        stats.archive,
        stats.store,
        stats.settle,
        *msgspec.structs.astuple(stats.slots),
    )
    if any(not seconds >= 0 for seconds in (*sums, *(timing.total for timing in timings))):
        return None
    if stats.proxy_faults:
        some = list(stats.proxy_faults.items())[:MOST_FAULTS]
        faults = {member[:LONGEST_NAME]: why[:LONGEST_NAME] for member, why in some}
        stats = msgspec.structs.replace(stats, proxy_faults=faults)
    if not stats.visits.keys() <= _VERDICTS:
        # A newer version may have more verdicts.
        known = {name: count for name, count in stats.visits.items() if name in _VERDICTS}
        return msgspec.structs.replace(stats, visits=known)
    return stats


def _field_by_field(packed: bytes) -> WorkerInfo:
    try:
        raw = msgspec.msgpack.decode(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return WorkerInfo()
    if not isinstance(raw, dict):
        return WorkerInfo()
    found: dict[str, Any] = {}
    for name, type_ in _TYPES.items():
        if name in raw:
            try:
                found[name] = msgspec.convert(raw[name], type_)
            except (msgspec.MsgspecError, RecursionError):
                continue
    return WorkerInfo(**found)


def _bounded(info: WorkerInfo) -> WorkerInfo:
    return msgspec.structs.replace(
        info,
        host=info.host[:LONGEST_NAME],
        version=info.version[:LONGEST_NAME],
        held_back=info.held_back[:LONGEST_TEXT],
        proxies_trouble=info.proxies_trouble[:LONGEST_TEXT],
        slots=max(0, info.slots),
        memory=max(0, info.memory),
        memory_limit=max(0, info.memory_limit),
        host_memory=max(0, info.host_memory),
        bandwidth=info.bandwidth if 0 <= info.bandwidth <= 1e15 else 0.0,
        host_received=max(0, info.host_received),
        cpu_cores=info.cpu_cores if 0 <= info.cpu_cores <= 1e6 else 0.0,
        pools=tuple(name[:LONGEST_NAME] for name in info.pools[:MOST_NAMES]),
        regions=tuple(name[:LONGEST_NAME] for name in info.regions[:MOST_NAMES]),
        routes=tuple(name[:LONGEST_NAME] for name in info.routes[:MOST_NAMES]),
        stats=checked(info.stats),
    )
