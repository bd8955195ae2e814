"""Which limit binds a job, and what would change it: from the figures that are kept, or measured now."""

import asyncio

import msgspec

from trotline.commands.advice_inputs import ServerExtras
from trotline.config import backends
from trotline.config.backend_urls import public
from trotline.coordinator import job_eta
from trotline.coordinator.held_back import held_back_by
from trotline.coordinator.job_observer import Observer
from trotline.model.job import Job, Progress, WorkerView
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.rules import survey_note
from trotline.rules.advice import Advice, advise
from trotline.rules.eta import Range, Unknown
from trotline.rules.fleet_rates import FleetFlow, flow
from trotline.rules.local_state_advice import Kept, Move, moves
from trotline.rules.machine_comparison import Option, Prices, options
from trotline.rules.outgrown_machine import Signal, signals
from trotline.rules.survey_note import SUMMARY, JobSummary
from trotline.rules.time_series import FINEST

FRESH: Seconds = 30.0
"""Figures that are kept and not older are used as they are."""
MEASURE: Seconds = 16.0
"""How long is measured otherwise: workers send figures every 5 s."""


class AdvisePlan(msgspec.Struct, frozen=True, kw_only=True):
    frontier: str
    sink: str
    job: Job
    measure: Seconds | None = None
    """Measure anew, for this long."""
    prices: Prices | None = None
    within: Seconds | None = None
    proxies: str = ""


class AdviceReport(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    advice: Advice
    measured: FleetFlow | None
    """None: nothing is known."""
    signals: list[Signal]
    moves: list[Move]
    remaining: int
    """Tasks that are known and not done. Pages may lead to more."""
    ends: Range | Unknown
    options: list[Option] = []
    currency: str = ""
    as_of: str = ""


async def report(plan: AdvisePlan) -> AdviceReport:
    opened = await backends.open_frontier(plan.frontier, plan.job)
    try:
        extras = ServerExtras(plan.frontier, plan.sink, plan.job.rules.default)
        progress, crew, summary = await look(opened, extras, plan.measure)
        ends = await _ends(opened, progress, crew)
    finally:
        await opened.close()
    return made(plan, progress, summary, ends, job_eta.outage_text(held_back_by(crew)), job_eta.living(crew))


async def look(
    opened: OpenJob, extras: ServerExtras, measure: Seconds | None = None
) -> tuple[Progress, list[WorkerView], JobSummary]:
    """The newest figures: those that somebody keeps, if they are fresh; else they are measured now."""
    console = opened.console
    progress, crew = await console.progress(), await console.workers()
    [note] = await console.read_notes([SUMMARY])
    summary = survey_note.decode(note.data) if note is not None else JobSummary()
    ended = progress.finished_at is not None
    fresh = bool(summary.steps) and 0 <= progress.now - summary.steps[-1].at < FRESH
    if ended or not crew or (measure is None and fresh):
        return progress, crew, summary
    observer = Observer(console, asyncio.get_running_loop().time, extras)
    summary = await observer.measure(progress, crew, JobSummary())
    await asyncio.sleep(measure or MEASURE)
    progress, crew = await console.progress(), await console.workers()
    return progress, crew, await observer.measure(progress, crew, summary)


def made(
    plan: AdvisePlan,
    progress: Progress,
    summary: JobSummary,
    ends: Range | Unknown,
    outage: str = "",
    workers: int | None = None,
) -> AdviceReport:
    advice, measured = advise(progress, summary, outage, workers), flow(summary.steps)
    files = backends.is_local(plan.frontier), backends.is_local(plan.sink)
    remaining = progress.waiting + progress.leased
    compared: list[Option] = []
    if plan.prices is not None and measured is not None:
        proxied = any(not pool.is_accounts for pool in summary.pools)
        compared = options(plan.prices, advice, measured, summary.hosts, remaining, files=any(files), proxied=proxied)
    kept = Kept(
        frontier=public(plan.frontier),
        frontier_is_file=files[0],
        sink=public(plan.sink),
        sink_is_file=files[1],
        spider=plan.job.rules.source,
        proxies=plan.proxies,
        has_accounts=any(name[:1] == "@" for name in summary.lanes.by_pool),
        has_chains=summary.chains > 0,
    )
    return AdviceReport(
        job=plan.job.id,
        advice=advice,
        measured=measured,
        signals=signals(progress, summary, measured, advice, ends, plan.within),
        moves=moves(kept),
        remaining=remaining,
        ends=ends,
        options=compared,
        currency=plan.prices.currency if plan.prices is not None else "",
        as_of=plan.prices.as_of if plan.prices is not None else "",
    )


async def _ends(opened: OpenJob, progress: Progress, crew: list[WorkerView]) -> Range | Unknown:
    if progress.finished_at is not None:
        return Range(0.0, 0.0)
    observer = Observer(opened.console, asyncio.get_running_loop().time)
    held_back = next((worker.about.held_back for worker in crew if worker.about.held_back), "")
    return job_eta.of_series(
        await observer.series(FINEST),
        progress,
        await opened.console.lanes(),
        held_back,
        alive=job_eta.living(crew) > 0,
    )
