"""The six signs that a scraper has outgrown its machine, as measurements instead of impressions."""

import msgspec

from trotline.model.job import Progress
from trotline.model.time import Seconds
from trotline.rules.advice import Advice
from trotline.rules.advice_limits import CPU_FULL, PROXIES, SESSIONS
from trotline.rules.eta import Range, Unknown
from trotline.rules.fleet_rates import FleetFlow
from trotline.rules.job_figures import figures
from trotline.rules.survey_note import JobSummary

FULL = 0.9
"""The share from which memory or a network is full."""
LIMITED = 0.05
"""The share of answers "too many requests" from which clients are limited."""


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    found: str
    """What was measured, with its unit."""
    raised: bool | None
    """None: unknown."""
    meaning: str


def signals(
    progress: Progress,
    summary: JobSummary,
    measured: FleetFlow | None,
    advice: Advice,
    ends: Range | Unknown,
    within: Seconds | None = None,
) -> list[Signal]:
    """`within`: how long the whole job may take."""
    return [
        _cpu(measured),
        _memory(summary),
        _network(summary, measured),
        _clients(progress, advice),
        _time(progress, ends, within),
        _alone(summary),
    ]


def _cpu(measured: FleetFlow | None) -> Signal:
    found, raised = "unknown", None
    if measured is not None:
        found = f"{measured.cpu:.0%} of a processor per worker, {min(1.0, measured.parse):.0%} of the time in parsing"
        raised = measured.cpu >= CPU_FULL
    meaning = "more processes use more processors of this machine; then a larger one, or another"
    return Signal(name="CPU", found=found, raised=raised, meaning=meaning)


def _memory(summary: JobSummary) -> Signal:
    hosts, found, raised = summary.hosts, "unknown", None
    if hosts.host_memory:
        share = hosts.memory / hosts.host_memory
        room = "" if hosts.room is None else f"; {hosts.room:,} more workers fit"
        found, raised = f"workers use {share:.0%} of the hosts' memory{room}", share >= FULL or hosts.room == 0
    meaning = "fewer slots or a larger machine; queue and known URLs in Redis instead of on this machine"
    return Signal(name="memory", found=found, raised=raised, meaning=meaning)


def _network(summary: JobSummary, measured: FleetFlow | None) -> Signal:
    share = summary.hosts.network
    rate = "" if measured is None else f"{measured.bytes_per_second / 125_000:.2f} Mbit/s of pages"
    found = rate or "unknown"
    if share is not None:
        found += f", the busiest host receives {share:.0%} of its bandwidth"
    elif rate:
        found += "; bandwidth unknown (--bandwidth)"
    raised = None if share is None else share >= FULL
    return Signal(name="network", found=found, raised=raised, meaning="another machine has a network of its own")


def _clients(progress: Progress, advice: Advice) -> Signal:
    done = figures(progress)
    share = done.throttled / done.attempts if done.attempts else 0.0
    bound = advice.limit in (PROXIES, SESSIONS)
    found = f"{share:.1%} of the attempts were rate limited (429)" + (f"; limit: {advice.limit}" if bound else "")
    raised = None if not done.attempts else bound or share >= LIMITED
    return Signal(
        name="limits per client", found=found, raised=raised, meaning="more proxies or accounts, not more workers"
    )


def _time(progress: Progress, ends: Range | Unknown, within: Seconds | None) -> Signal:
    raised, found = None, ends.value if isinstance(ends, Unknown) else ""
    if isinstance(ends, Range):
        whole = progress.now - progress.started_at + ends.high
        found = f"takes {_hours(whole)} in all, at the latest"
        if within is not None:
            found, raised = f"{found}, and may take {_hours(within)}", whole > within
        else:
            found += "; how long it may take is unknown (--within)"
    return Signal(name="time", found=found, raised=raised, meaning="the limit above decides what makes it faster")


def _alone(summary: JobSummary) -> Signal:
    hosts = summary.hosts.hosts
    found = "unknown" if not hosts else f"workers on {hosts:,} host{'' if hosts == 1 else 's'}"
    return Signal(
        name="redundancy",
        found=found,
        raised=None if not hosts else hosts == 1,
        meaning="if this machine is down, nothing is scraped; it goes on when it is back",
    )


def _hours(seconds: Seconds) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
