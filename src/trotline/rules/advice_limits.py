"""The limits of a job, each with the pages per second that it allows: those of the workers, and all others."""

from collections.abc import Sequence
from math import inf

import msgspec

from trotline.model.job import Progress
from trotline.model.server_load import ServerUse
from trotline.rules import lane_survey
from trotline.rules.fleet_rates import FleetFlow, HostsUse
from trotline.rules.lane_survey import LaneSurvey
from trotline.rules.pace import RETRY_DRIP
from trotline.rules.pool_supply import PoolSupply, most
from trotline.rules.survey_note import JobSummary

OFF = 0.15
"""A limit explains the throughput if it is not further away."""
IDLE = 0.2
"""The share of slots without admissible work from which the crew waits for work, and not the work for the crew."""
CPU_FULL = 0.8
"""The share of a processor from which a worker process is bound by it: the rest is waiting for others."""
NEARLY = 0.5
"""The share of time from which a server is taken to be full, if workers wait for it for most of theirs."""
CONTENDED = 0.05
"""The share of time without a processor from which a machine is shared with others."""

PACE, CONCURRENCY, WORK, REST = lane_survey.PACE, lane_survey.CONCURRENCY, lane_survey.WORK, lane_survey.REST
RETRIES = lane_survey.RETRIES
PROXIES, SESSIONS, CHAINS = "proxies", "sessions", "chains"
SLOTS, CPU, SINK_WAIT, FRONTIER_WAIT, ARCHIVE_WAIT = "slots", "cpu", "commits", "leases", "archive"
FRONTIER, DATABASE, NETWORK, HOSTS, MEMORY = "frontier", "database", "network", "hosts", "memory"
STANDING = (ARCHIVE_WAIT, SINK_WAIT, FRONTIER_WAIT)
"""What can stop all pages, by not answering."""
NOT_EXPLAINED, NOTHING, UNKNOWN = "not explained", "nothing", "unknown"


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    per_second: float | None = None
    """Pages per second that it allows; None: unknown."""
    text: str
    """For people: "shop.example is at its limit of 2/s"."""


def outer_limits(progress: Progress, summary: JobSummary, measured: FleetFlow) -> list[Limit]:
    """All but the workers themselves."""
    rate = measured.pages_per_second
    found = [lane_limit(summary.lanes), *_pool_limits(summary.lanes, summary.pools, measured)]
    found += [limit for server in summary.servers if (limit := _server_limit(server, measured)) is not None]
    hosts = summary.hosts
    if hosts.network:
        text = f"the network of the busiest host is used to {hosts.network:.0%}"
        found.append(Limit(name=NETWORK, per_second=rate / hosts.network, text=text))
    if hosts.cores and hosts.cpu:
        text = f"workers use {hosts.cpu:.1f} of {hosts.cores:g} processors of {_count(hosts.hosts, 'host')}"
        found.append(Limit(name=HOSTS, per_second=rate * max(1.0, hosts.cores / hosts.cpu), text=text))
    left = progress.budget.pages
    if left is not None and progress.ended >= left:
        found.append(Limit(name=WORK, per_second=0.0, text="its limit of pages is reached"))
    return found


def ready(measured: FleetFlow) -> float:
    """The share of time in which a worker process runs, or would with a processor."""
    return min(1.0, measured.cpu + measured.waited)


def with_one_more(measured: FleetFlow, hosts: HostsUse, crew: Limit) -> float:
    """K with one more worker. Where processors are contended, it also takes from those that are there."""
    workers = measured.workers
    more = (workers + 1) / workers
    if crew.name == CPU and measured.waited >= CONTENDED and hosts.cores and hosts.hosts:
        # Of so many that are ready to run on a host, each has the same share of its processors.
        there, each = workers / hosts.hosts, hosts.cores / hosts.hosts
        competing = each * (measured.cpu + measured.waited) / measured.cpu if measured.cpu else inf
        others = (hosts.hosts - 1) * there / competing
        more = (others + (there + 1) / (competing + 1)) / (hosts.hosts * there / competing)
    return (crew.per_second or 0.0) * more


def lane_limit(lanes: LaneSurvey) -> Limit:
    rate, fastest = lanes.admissible, lanes.fastest
    if not rate or fastest is None:
        if lanes.at_rest:
            return Limit(name=REST, per_second=0.0, text=_resting(lanes))
        return Limit(name=WORK, per_second=0.0, text="no lane has a task that may start")
    bound = max(lanes.bounds, key=lanes.bounds.__getitem__)
    if bound == WORK:
        return Limit(name=WORK, per_second=rate, text=f"no more than {lanes.waiting:,} tasks wait")
    if bound == RETRIES:
        return Limit(name=RETRIES, per_second=rate, text=_capped(lanes))
    if fastest.per_second > rate / 2:
        return Limit(name=bound, per_second=rate, text=f"{fastest.lane} is at its limit of {_rate(fastest.per_second)}")
    return Limit(
        name=bound, per_second=rate, text=f"{_count(lanes.lanes, 'lane')} {_allow(lanes.lanes)} {_rate(rate)} in all"
    )


def _pool_limits(lanes: LaneSurvey, pools: Sequence[PoolSupply], measured: FleetFlow) -> list[Limit]:
    """What a pool bounds, and what goes on beside it."""
    found = []
    for pool in pools:
        used = lanes.by_pool.get(pool.name)
        if used is None or not used.waiting + used.leased:
            continue
        allowed = most(pool, used.lanes, measured.seconds_per_page + measured.held)
        if allowed is None:
            continue
        name = SESSIONS if pool.is_accounts else PROXIES
        noun = "account" if pool.is_accounts else "proxy"
        text = f"{_count(pool.usable, noun)} of pool {pool.name} {_allow(pool.usable)} {_rate(allowed)}"
        others = max(0.0, lanes.admissible - used.admissible)
        found.append(Limit(name=name, per_second=min(allowed, used.admissible) + others, text=text))
    return found


def _server_limit(server: ServerUse, measured: FleetFlow) -> Limit | None:
    share, name = server.share, FRONTIER if server.role == "frontier" else DATABASE
    if server.serial:
        share = measured.settle if name == FRONTIER else measured.store
    if not share:
        return None
    held_back = measured.waits["frontier" if name == FRONTIER else "sink"]
    if share >= NEARLY and held_back >= measured.busy:
        # Workers wait for it more than they work: it has no more to give, whatever its counters leave out.
        share = 1.0
    share = min(1.0, share)
    text = f"the {name} ({server.kind}) is busy for {share:.0%} of the time"
    return Limit(name=name, per_second=measured.pages_per_second / share, text=text)


def worker_limit(measured: FleetFlow) -> Limit:
    """K, and what the workers are busy with."""
    rate, waits = measured.pages_per_second, measured.waits
    cpu = ready(measured)
    allowed = rate / max(measured.occupied, cpu, 1e-9)
    if cpu >= CPU_FULL or cpu >= measured.occupied:
        # Slots fill up behind a processor that is full.
        text = f"each worker process uses {measured.cpu:.0%} of a processor"
        if measured.waited >= CONTENDED:
            text += f", and waits for one for {measured.waited:.0%} of the time"
        return Limit(name=CPU, per_second=allowed, text=text)
    if waits["sink"] > measured.busy:
        if _archive_binds(measured):
            return Limit(name=ARCHIVE_WAIT, per_second=allowed, text=_archive_text(measured))
        return Limit(name=SINK_WAIT, per_second=allowed, text="workers wait for their commits to the sink")
    if waits["frontier"] > measured.busy:
        return Limit(name=FRONTIER_WAIT, per_second=allowed, text="workers wait for the answers of the frontier")
    return Limit(name=SLOTS, per_second=allowed, text=_busy_slots(measured))


def _archive_binds(measured: FleetFlow) -> bool:
    return measured.archive >= NEARLY and measured.archives_longest


def _archive_text(measured: FleetFlow) -> str:
    return f"the archive is slow: workers wait for it for {min(1.0, measured.archive):.0%} of the time"


def slow_pages(measured: FleetFlow) -> Limit:
    """Slots that are busy all the time, with pages that take so long that hardly any was finished: how many pages one
    slot does is not known yet, and that there are too few slots is."""
    return Limit(name=SLOTS, text=f"{_busy_slots(measured)}, with pages that take long")


def _busy_slots(measured: FleetFlow) -> str:
    return f"{measured.occupied:.0%} of {_count(measured.slots, 'slot')} {'is' if measured.slots == 1 else 'are'} busy"


def explaining(outside: Sequence[Limit], summary: JobSummary, measured: FleetFlow) -> Limit:
    """Slots are idle: the limit that explains it best."""
    rate, lanes = measured.pages_per_second, summary.lanes
    near = [each for each in outside if each.per_second is not None and each.per_second <= rate / (1.0 - OFF)]
    if near:
        return near[0]
    if _archive_binds(measured):
        # Finished visits hold the places of their lanes until they are archived.
        return Limit(name=ARCHIVE_WAIT, per_second=rate, text=_archive_text(measured))
    waiting = lanes.waiting - lanes.at_rest
    with_accounts = sum(pool.waiting for name, pool in lanes.by_pool.items() if name[:1] == "@")
    if waiting and with_accounts > waiting / 2:
        holders = sum(pool.usable for pool in summary.pools if pool.is_accounts)
        return Limit(name=SESSIONS, per_second=rate, text=f"{_count(holders, 'account')} in use all the time")
    if summary.chains and measured.leased <= 2 * summary.chains and waiting > 2 * summary.chains:
        text = f"{_count(summary.chains, 'chain')}, each with one step at a time"
        return Limit(name=CHAINS, per_second=rate, text=text)
    if lanes.fullest is not None and lanes.full > waiting / 2:
        text = f"{lanes.fullest.lane} has {_count(lanes.fullest.leased, 'visit')} under way, and allows no more"
        return Limit(name=CONCURRENCY, per_second=rate, text=text)
    if lanes.capped > waiting / 2:
        return Limit(name=RETRIES, per_second=rate, text=_capped(lanes))
    if lanes.at_rest > waiting:
        return Limit(name=REST, per_second=rate, text=_resting(lanes))
    if waiting <= measured.slots:
        return Limit(name=WORK, per_second=rate, text=f"no more than {waiting:,} tasks wait")
    return Limit(name=NOT_EXPLAINED, text="slots are idle, and no known limit is near")


def _capped(lanes: LaneSurvey) -> str:
    most = lanes.most_capped
    where = "" if most is None else f" of {most.lane}"
    cap = f"retries{where} are capped at one per {1 / RETRY_DRIP:.0f} s while most visits fail"
    return f"{cap}; {_count(lanes.capped, 'task')} {'waits' if lanes.capped == 1 else 'wait'}"


def _resting(lanes: LaneSurvey) -> str:
    text = f"{_count(lanes.at_rest, 'task')} in lanes that rest or are paused"
    longest = lanes.longest_rest[0] if lanes.longest_rest else None
    return text if longest is None else f"{text}; {longest.lane} rests after: {longest.why or 'failures'}"


def lowest_first(limit: Limit) -> float:
    return limit.per_second if limit.per_second is not None else float("inf")


def _rate(per_second: float) -> str:
    if per_second >= 0.995:
        return f"{per_second:.3g}/s" if per_second < 1000 else f"{per_second:,.0f}/s"
    return f"{60 * per_second:.3g}/min" if per_second >= 0.995 / 60 else f"{3600 * per_second:.3g}/h"


def _allow(number: int) -> str:
    return "allows" if number == 1 else "allow"


def _count(number: int, noun: str) -> str:
    plural = "proxies" if noun == "proxy" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
