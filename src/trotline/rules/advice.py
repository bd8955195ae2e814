"""Which limit binds a job now, and what one more worker would change.

X pages per second are measured over about a minute. F is the least of what everything outside of the workers admits:
lanes, pools, servers, networks, hosts. K is what the workers could do if there was always admissible work. One more
worker gives `min(F, K (W + 1) / W) / X - 1`; the smaller term names the limit.

A measurement goes before a model: where slots are idle because no task may start, F is X, whatever was computed, and
the models only name the limit. If they cannot, the advice is "not explained".
"""

from math import ceil, inf

import msgspec

from trotline.model.job import Progress, State
from trotline.model.time import Seconds
from trotline.rules.advice_limits import (
    HOSTS,
    IDLE,
    NOT_EXPLAINED,
    NOTHING,
    OFF,
    REST,
    STANDING,
    UNKNOWN,
    Limit,
    explaining,
    lane_limit,
    lowest_first,
    outer_limits,
    slow_pages,
    with_one_more,
    worker_limit,
)
from trotline.rules.fleet_rates import FleetFlow, HostsUse, flow
from trotline.rules.lane_survey import all_rest
from trotline.rules.survey_note import JobSummary

OUTAGE = "outage"
NO_WORKER = "no worker"
OLD: Seconds = 120.0
"""Older figures say nothing about now."""
HARDLY = 0.1
"""Work for less than this share of one more worker is not worth one."""
FEW_VISITS = 5
"""With fewer in the window nothing is known, unless slots are busy all the time."""
BUSY = 0.9
"""The share of slots from which they are."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    sentence: str
    limit: str
    """The name of the limit that binds."""
    pages_per_second: float | None = None
    admissible_per_second: float | None = None
    """F: what could be fetched now under all limits outside of the workers."""
    capacity_per_second: float | None = None
    """K: what the workers could do."""
    workers: int = 0
    gain: float | None = None
    """Of one more worker: 0.33 is +33 %. None: unknown."""
    wanted_workers: int | None = None
    """How many are worth having. None: unknown."""
    more_machines: bool = False
    """The next worker needs another machine: these are full."""
    limits: tuple[Limit, ...] = ()
    """All that are known, the lowest first."""

    @property
    def explained(self) -> bool:
        return self.limit not in (NOT_EXPLAINED, UNKNOWN)


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The signal for autoscalers."""

    wanted_workers: int | None
    """null: unknown; keep what there is."""
    admissible_per_second: float | None
    limit: str


def scale(advice: Advice) -> Scale:
    rate = advice.admissible_per_second
    return Scale(
        wanted_workers=advice.wanted_workers,
        admissible_per_second=None if rate is None else round(rate, 3),
        limit=advice.limit,
    )


def advise(progress: Progress, summary: JobSummary, outage: str = "", workers: int | None = None) -> Advice:
    """`outage`: the server that most workers cannot reach. `workers`: living ones; None: unknown."""
    if reason := _no_work(progress):
        return Advice(sentence=reason, limit=NOTHING, wanted_workers=0, gain=0.0, admissible_per_second=0.0)
    if workers == 0 and _may_start(progress, summary):
        # Nobody measures anything before the first one runs: an autoscaler would wait for ever.
        return Advice(
            sentence="no worker is running: the first one is worth having, then it can be measured",
            limit=NO_WORKER,
            pages_per_second=0.0,
            admissible_per_second=summary.lanes.admissible or None,
            wanted_workers=1,
        )
    if outage:
        # Figures from before say nothing about now.
        return Advice(sentence=f"held back: {outage}", limit=OUTAGE, gain=0.0, admissible_per_second=0.0)
    if progress.broker and not progress.leased:
        # While tasks are at hand they are visited, and their lanes are the limit.
        return Advice(sentence=f"held back: {progress.broker}", limit=OUTAGE, gain=0.0, admissible_per_second=0.0)
    if resting := all_rest(summary.lanes, progress.now - summary.at):
        # Whatever was measured before, and however many workers there are. They are kept for when it is over.
        return Advice(sentence=resting, limit=REST, gain=0.0, admissible_per_second=summary.lanes.admissible)
    measured = flow([each for each in summary.steps if 0 <= progress.now - each.at < OLD])
    if measured is None:
        return Advice(
            sentence="what limits it is not known yet: workers send figures every few seconds, and two are needed",
            limit=UNKNOWN,
            admissible_per_second=summary.lanes.admissible or None,
        )
    if measured.pages_per_second * measured.seconds < FEW_VISITS:
        return _too_few(progress, summary, measured)
    return _advise(progress, summary, measured)


def _no_work(progress: Progress) -> str:
    if progress.finished_at is not None:
        return "the job is finished"
    if progress.state in (State.PAUSED, State.CANCELLED):
        return f"the job is {progress.state.value}: no worker gets a task"
    return ""


def _may_start(progress: Progress, summary: JobSummary) -> bool:
    """Is there a task that a worker could visit now? What is leased without a worker waits again soon."""
    if progress.waiting + progress.leased <= progress.delayed:
        return False
    # Before the first survey the lanes are unknown, which is no reason to wait. Lanes that all rest are.
    return not summary.at or (summary.lanes.admissible > 0 and not all_rest(summary.lanes, progress.now - summary.at))


def _too_few(progress: Progress, summary: JobSummary, measured: FleetFlow) -> Advice:
    lanes = summary.lanes
    bound = lane_limit(lanes)
    if lanes.admissible * measured.seconds < FEW_VISITS and measured.idle >= IDLE:
        # Slow by intention: a lane with an hour between two visits.
        return Advice(
            sentence=f"one more worker gives +0 %: {bound.text}",
            limit=bound.name,
            pages_per_second=measured.pages_per_second,
            admissible_per_second=lanes.admissible,
            workers=measured.workers,
            gain=0.0,
            wanted_workers=1,
            limits=(bound,),
        )
    if lanes.admissible * measured.seconds >= FEW_VISITS and measured.busy >= BUSY:
        bound, gain, full = slow_pages(measured), 1.0 / measured.workers, _is_full(summary.hosts)
        return Advice(
            sentence=_sentence(gain, bound, known=True, full=full),
            limit=bound.name,
            pages_per_second=measured.pages_per_second,
            admissible_per_second=lanes.admissible,
            workers=measured.workers,
            gain=gain,
            # How many more is known when these have finished some pages.
            wanted_workers=measured.workers + (not full),
            more_machines=full,
            limits=(bound,),
        )
    waits_for = worker_limit(measured)
    if waits_for.name in STANDING and measured.waits["sink"] + measured.waits["frontier"] >= BUSY:
        return Advice(
            sentence=f"one more worker gives +0 %: {waits_for.text}",
            limit=waits_for.name,
            pages_per_second=measured.pages_per_second,
            admissible_per_second=lanes.admissible,
            workers=measured.workers,
            gain=0.0,
            wanted_workers=measured.workers,
            limits=(waits_for,),
        )
    return Advice(
        sentence=f"unknown: fewer than {FEW_VISITS} pages in {measured.seconds:.0f} s;"
        " measure for longer: trotline advise --measure 2m",
        limit=UNKNOWN,
        pages_per_second=measured.pages_per_second,
        workers=measured.workers,
    )


def _advise(progress: Progress, summary: JobSummary, measured: FleetFlow) -> Advice:
    rate, crew = measured.pages_per_second, worker_limit(measured)
    outside = sorted(outer_limits(progress, summary, measured), key=lowest_first)
    least = outside[0]
    admitted = least.per_second if least.per_second is not None else inf
    idle = measured.idle >= IDLE
    if idle:
        least, admitted = explaining(outside, summary, measured), rate
    capacity = crew.per_second or rate
    one_more = with_one_more(measured, summary.hosts, crew)
    bound = least if admitted <= one_more else crew
    known = bound.name != NOT_EXPLAINED and min(admitted, capacity) >= rate * (1.0 - OFF)
    gain = max(0.0, min(admitted, one_more) / rate - 1.0)
    wanted = _wanted(measured, admitted, capacity, summary.hosts) if known else None
    full = bound is crew and _is_full(summary.hosts)
    return Advice(
        sentence=_sentence(gain, bound, known=known, full=full),
        limit=bound.name if known else NOT_EXPLAINED,
        pages_per_second=rate,
        admissible_per_second=admitted if admitted < inf else None,
        capacity_per_second=capacity,
        workers=measured.workers,
        gain=gain if known else None,
        wanted_workers=wanted,
        more_machines=full or bound.name == HOSTS,
        limits=tuple(sorted([*outside, crew], key=lowest_first)),
    )


def _wanted(measured: FleetFlow, admitted: float, capacity: float, hosts: HostsUse) -> int | None:
    wanted = None if admitted == inf else max(1, ceil(measured.workers * admitted / capacity - HARDLY))
    if hosts.room is None:
        return wanted
    holds = measured.workers + hosts.room
    return holds if wanted is None else min(wanted, holds)


def _is_full(hosts: HostsUse) -> bool:
    return hosts.room == 0


def _sentence(gain: float, bound: Limit, *, known: bool, full: bool) -> str:
    if not known:
        return f"not explained: {bound.text}"
    if full:
        return f"one more worker gives +{100 * gain:.0f} %, on one more machine, as memory is full here: {bound.text}"
    more = "; one more machine would help" if bound.name == HOSTS else ""
    return f"one more worker gives +{100 * gain:.0f} %: {bound.text}{more}"
