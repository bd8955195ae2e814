"""What the crew of a job does, as figures over about a minute: from the counters that its workers send.

Two looks at the crew give a step: what was counted between them by the workers that are in both. Steps are kept with
the job's summary, so that a new leader goes on where the last one ended. A worker that comes or goes costs nothing:
rates are per worker, and the number of workers is that of the last look.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from trotline.model.job import WorkerView
from trotline.model.time import Moment, Seconds
from trotline.model.work_stats import NO_REQUEST, WorkStats

WINDOW: Seconds = 60.0
"""How far back steps count."""
MOST_STEPS = 30
"""Steps that are kept."""
SILENT: Seconds = 15.0
"""A worker that was silent for longer is not counted (`DEAD_AFTER` of the frontier)."""


class FlowStep(msgspec.Struct, frozen=True, array_like=True):
    """Sums over the workers that are in both looks."""

    at: Moment
    """The frontier's time at the end."""
    workers: int
    """Living ones, at the end."""
    slots: int
    """Of the living ones."""
    leased: int
    worker_seconds: float
    busy: float
    start: float
    no_lease: float
    frontier: float
    sink: float
    cpu: float
    visits: int
    received: int
    fetch: float
    fetched: int
    parse: float
    commit: float
    commits: int
    store: float
    settle: float
    waited: float = 0.0
    archive: float = 0.0

    @property
    def span(self) -> Seconds:
        return self.worker_seconds / self.workers if self.workers else 0.0


class HostsUse(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts of the crew, added up. None: some host does not say."""

    hosts: int = 0
    cores: float | None = None
    cpu: float | None = None
    """Processors that the workers use."""
    memory: int = 0
    """Bytes that the workers use."""
    host_memory: int | None = None
    room: int | None = None
    """More workers of this size that fit into memory."""
    network: float | None = None
    """The share of the bandwidth that the busiest host receives."""


class FleetFlow(msgspec.Struct, frozen=True, kw_only=True):
    """All shares are from 0 to 1, of one worker on average, unless said otherwise."""

    seconds: Seconds
    """How long was measured."""
    workers: int
    slots: int
    pages_per_second: float
    seconds_per_page: Seconds
    """In a slot: robots.txt, fetch and parse."""
    held: Seconds
    """After the fetch, until its lane has its place back: parse, and the time that a commit takes."""
    leased: float
    """Leases at the same time, on average."""
    fetch: Seconds
    """Of a page."""
    busy: float
    """Of the time of all slots: in visits."""
    waits: dict[str, float]
    """Of the time of all slots, by what idle ones wait for: "start", "no_lease", "frontier", "sink"."""
    cpu: float
    """Processor time."""
    waited: float
    """Ready to run, without a processor: others use the machines, too."""
    parse: float
    archive: float
    """Writing to the archive, which each worker does on its own."""
    store: float
    """Workers that write to the sink at the same time, on average: above 1 if they queue for it."""
    settle: float
    """Workers that settle at the same time, on average."""
    bytes_per_second: float

    @property
    def occupied(self) -> float:
        """Slots that do not wait for admissible work: held back by sink or frontier is occupied."""
        return min(1.0, self.busy + self.waits["frontier"] + self.waits["sink"])

    @property
    def archives_longest(self) -> bool:
        """A worker writes one batch after the other: is the archive most of that?"""
        return self.archive > (self.store + self.settle) / max(1, self.workers)

    @property
    def idle(self) -> float:
        """Slots for which no task may start now."""
        return self.waits["start"] + self.waits["no_lease"]


def living(crew: Iterable[WorkerView]) -> list[WorkerView]:
    return [worker for worker in crew if worker.silent_for < SILENT]


def step(before: Sequence[WorkerView], crew: Sequence[WorkerView], now: Moment) -> FlowStep | None:
    """What happened between two looks; None if no worker has sent figures in both."""
    alive = living(crew)
    pairs = [(old, new) for _, old, new in _pairs(before, alive)]
    if not pairs:
        return None

    def grown(value: str) -> float:
        return sum(float(getattr(new, value)) - float(getattr(old, value)) for old, new in pairs)

    def waited(phase: str) -> float:
        return float(sum(max(0.0, getattr(new.slots, phase) - getattr(old.slots, phase)) for old, new in pairs))

    return FlowStep(
        at=now,
        workers=len(alive),
        slots=sum(worker.about.slots for worker in alive),
        leased=sum(worker.leased for worker in alive),
        worker_seconds=grown("uptime"),
        busy=waited("busy"),
        start=waited("start"),
        no_lease=waited("no_lease"),
        frontier=waited("frontier"),
        sink=waited("sink"),
        cpu=max(0.0, grown("cpu")),
        visits=max(0, sum(_visits(new) - _visits(old) for old, new in pairs)),
        received=max(0, int(grown("received"))),
        fetch=sum(new.fetch.total - old.fetch.total for old, new in pairs),
        fetched=sum(new.fetch.count - old.fetch.count for old, new in pairs),
        parse=sum(new.parse.total - old.parse.total for old, new in pairs),
        commit=sum(new.commit.total - old.commit.total for old, new in pairs),
        commits=sum(new.commit.count - old.commit.count for old, new in pairs),
        store=grown("store"),
        settle=grown("settle"),
        waited=max(0.0, grown("waited")),
        archive=max(0.0, grown("archive")),
    )


def kept(steps: Sequence[FlowStep], new: FlowStep | None, now: Moment) -> tuple[FlowStep, ...]:
    """The steps with the new one, without those that are too old. A server's clock may be set back."""
    recent = [each for each in steps if now - WINDOW <= each.at < now]
    return tuple(([*recent, new] if new is not None else recent)[-MOST_STEPS:])


def flow(steps: Sequence[FlowStep]) -> FleetFlow | None:
    """None: nothing was measured. After a change of the number of workers only what came later counts."""
    if not steps:
        return None
    newest = steps[-1]
    same = []
    for each in reversed(steps):
        if (each.workers, each.slots) != (newest.workers, newest.slots):
            break
        same.append(each)

    def total(value: str) -> float:
        return float(sum(getattr(each, value) for each in same))

    worker_seconds = total("worker_seconds")
    phases = {name: total(name) for name in ("busy", "start", "no_lease", "frontier", "sink")}
    slot_seconds = sum(phases.values())
    if worker_seconds <= 0 or slot_seconds <= 0:
        return None
    visits, fetched, commits = total("visits"), total("fetched"), total("commits")
    per_page = phases["busy"] / visits if visits else 0.0
    fetch = total("fetch") / fetched if fetched else 0.0
    return FleetFlow(
        seconds=sum(each.span for each in same),
        workers=newest.workers,
        slots=newest.slots,
        pages_per_second=visits / worker_seconds * newest.workers,
        seconds_per_page=per_page,
        held=max(0.0, per_page - fetch) + (total("commit") / commits if commits else 0.0),
        leased=total("leased") / len(same),
        fetch=fetch,
        busy=phases["busy"] / slot_seconds,
        waits={name: phases[name] / slot_seconds for name in ("start", "no_lease", "frontier", "sink")},
        cpu=total("cpu") / worker_seconds,
        waited=total("waited") / worker_seconds,
        parse=total("parse") / worker_seconds,
        archive=total("archive") / worker_seconds,
        store=total("store") / worker_seconds * newest.workers,
        settle=total("settle") / worker_seconds * newest.workers,
        bytes_per_second=total("received") / worker_seconds * newest.workers,
    )


def hosts_use(before: Sequence[WorkerView], crew: Sequence[WorkerView]) -> HostsUse:
    alive = living(crew)
    by_host: defaultdict[str, list[WorkerView]] = defaultdict(list)
    for worker in alive:
        by_host[worker.about.host].append(worker)
    cpu: defaultdict[str, float] = defaultdict(float)
    measured: defaultdict[str, int] = defaultdict(int)
    for host, old, new in _pairs(before, alive):
        cpu[host] += max(0.0, new.cpu - old.cpu) / (new.uptime - old.uptime)
        measured[host] += 1
    groups = by_host.values()
    rooms = [_room(group) for group in groups]
    return HostsUse(
        hosts=len(by_host),
        cores=_sum(max(worker.about.cpu_cores for worker in group) or None for group in groups),
        cpu=_sum(cpu[host] * len(by_host[host]) / measured[host] if measured[host] else None for host in by_host),
        memory=sum(worker.about.memory for worker in alive),
        host_memory=_whole(_sum(max(worker.about.host_memory for worker in group) or None for group in groups)),
        room=_whole(_sum(rooms)),
        network=_busiest(before, by_host),
    )


MEMORY_SHARE = 0.8
"""Of a host's memory that workers may use: the rest is for the system, and for what else runs there."""


def _room(group: Sequence[WorkerView]) -> int | None:
    memory = max(worker.about.host_memory for worker in group)
    each = max(worker.about.memory for worker in group)
    if not memory or not each:
        return None
    used = sum(worker.about.memory for worker in group)
    return max(0, int((MEMORY_SHARE * memory - used) // each))


def _busiest(before: Sequence[WorkerView], by_host: Mapping[str, Sequence[WorkerView]]) -> float | None:
    """All workers of a host report the same counter: two looks at one of them are enough."""
    old = {worker.name: worker.about for worker in before}
    shares = []
    for group in by_host.values():
        for worker in group:
            then, about = old.get(worker.name), worker.about
            if then is None or about.stats is None or then.stats is None or not about.bandwidth:
                continue
            span = about.stats.uptime - then.stats.uptime
            if span > 0 and about.host_received >= then.host_received > 0:
                shares.append(min(1.0, (about.host_received - then.host_received) / span / about.bandwidth))
                break
    return max(shares, default=None)


def _pairs(before: Sequence[WorkerView], alive: Sequence[WorkerView]) -> list[tuple[str, WorkStats, WorkStats]]:
    """Host, and the figures of the workers that are in both looks."""
    old = {worker.name: worker.about.stats for worker in before}
    found = []
    for worker in alive:
        then, now = old.get(worker.name), worker.about.stats
        # The same figures: no heartbeat since. Lower ones: another process of the same name.
        if then is not None and now is not None and now.uptime > then.uptime and _visits(now) >= _visits(then):
            found.append((worker.about.host, then, now))
    return found


def _visits(stats: WorkStats) -> int:
    return sum(count for verdict, count in stats.visits.items() if verdict != NO_REQUEST)


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return None if not found or None in found else sum(value for value in found if value is not None)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
