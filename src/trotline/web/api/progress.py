"""How a job goes: counters, series, workers, what is in flight, what goes wrong."""

from typing import Any, Literal

import msgspec

from trotline.model.job import InFlight, WorkerInfo
from trotline.model.time import Seconds, iso
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules.author_warnings import warnings
from trotline.rules.job_figures import Figures, signatures
from trotline.rules.limit_cuts import cuts
from trotline.rules.time_series import RESOLUTIONS, Point
from trotline.rules.worker_exit_log import Departure
from trotline.web.api.types import JobPath, Limit
from trotline.web.errors import Refused
from trotline.web.job_views import JobView
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route

_EXAMPLES = 20
"""Signatures that get an example."""


class ProgressAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: JobView
    figures: Figures
    tallies: dict[str, int]
    """Everything that was counted."""
    examples: dict[str, str]
    """A URL for some of the tallies."""
    cuts: list[Any]
    """What limits left out."""
    warnings: list[str]
    seen: str
    """How much memory of seen URLs is used."""
    seeding: str
    """Why seeding by this server waits, or failed; empty: it does not."""


class SeriesQuery(msgspec.Struct, frozen=True):
    resolution: Literal["5s", "1m", "1h"] = "5s"


class SeriesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    resolution: str
    step: int
    """Seconds between two points. A missing point was not observed."""
    columns: tuple[str, ...]
    points: list[tuple[int, ...]]
    """The oldest first. Totals, besides waiting, leased and workers: rates are differences."""


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    silent_for: Seconds
    dead: bool
    """Silent for too long: its leases are taken back."""
    leased: int
    done: int
    failed: int
    about: WorkerInfo


class GoneRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    host: str
    at: str
    """When it was missed first."""
    why: str
    done: int
    failed: int
    leased: int
    """Tasks that it held when it was seen last."""


class WorkersAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    workers: list[WorkerRow]
    gone: list[GoneRow]
    """Workers that left or died, the last one first; as seen by a process that observed the job."""
    gone_before: int
    """Further ones, which are not listed."""
    age: Seconds
    unreachable: str


class InFlightQuery(msgspec.Struct, frozen=True):
    limit: Limit = 100


class InFlightRow(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    lane: str
    worker: str
    route: str
    attempt: int
    leased_at: str | None
    """null: unknown."""
    starts_at: str | None
    for_seconds: Seconds | None
    """Since its lease; null: unknown."""
    member: str
    """The id of its proxy or account; empty: none."""


class InFlightAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    leased: int
    """All of them."""
    leases: list[InFlightRow]
    """The longest first."""


class ErrorExample(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    id: str = ""
    """In the graveyard."""
    detail: str = ""


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    signature: str
    """"retry: 503", "dead: handler: KeyError: 'price'"."""
    why: str
    """The reason in the graveyard; empty: these attempts were retried."""
    count: int
    example: ErrorExample | None = None


class ErrorsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    errors: list[ErrorRow]
    """The most frequent first. The first ones have an example, if there is one."""
    reasons: dict[str, int]
    """The graveyard now: how many for which reason."""


async def progress(call: Call) -> ProgressAnswer:
    name: str = call.path.job
    _, job = await call.site.index.find(name)
    look = await call.site.snapshots.of(name)
    if look.progress is None or look.figures is None:
        raise Refused(503, f"{name} was never read: {look.view.unreachable}", hint="Try again later.")
    return ProgressAnswer(
        job=look.view,
        figures=look.figures,
        tallies=look.progress.tallies,
        examples=look.progress.examples,
        cuts=[msgspec.to_builtins(cut) for cut in cuts(look.progress, job.rules.own_limits)],
        warnings=list(warnings(look.progress.tallies)),
        seen=look.progress.seen,
        seeding=call.site.seeding.said.get(name, ""),
    )


async def series(call: Call) -> SeriesAnswer:
    [resolution] = [one for one in RESOLUTIONS if one.name == call.query.resolution]
    async with call.site.index.opened(call.path.job) as opened:
        points = await opened.observer.series(resolution)
    return SeriesAnswer(
        resolution=resolution.name, step=resolution.step, columns=Point._fields, points=[tuple(one) for one in points]
    )


async def workers(call: Call) -> WorkersAnswer:
    look = await call.site.snapshots.of(call.path.job)
    rows = [
        WorkerRow(
            name=one.name,
            silent_for=round(one.silent_for, 1),
            dead=one.silent_for >= DEAD_AFTER,
            leased=one.leased,
            done=one.done,
            failed=one.failed,
            about=one.about,
        )
        for one in sorted(look.crew, key=lambda one: (one.about.host, one.name))
    ]
    return WorkersAnswer(
        job=call.path.job,
        workers=rows,
        gone=[_gone(one) for one in look.log.gone],
        gone_before=look.log.gone_before,
        age=look.view.age,
        unreachable=look.view.unreachable,
    )


def _gone(one: Departure) -> GoneRow:
    return GoneRow(
        name=one.name,
        host=one.host,
        at=iso(one.at),
        why=one.why,
        done=one.done,
        failed=one.failed,
        leased=one.leased,
    )


async def in_flight(call: Call) -> InFlightAnswer:
    async with call.site.index.opened(call.path.job) as opened:
        now = await opened.console.progress()
        found = await opened.console.in_flight(call.query.limit)
    rows = [_in_flight(one, now.now) for one in found]
    return InFlightAnswer(job=call.path.job, leased=now.leased, leases=rows)


def _in_flight(one: InFlight, now: float) -> InFlightRow:
    return InFlightRow(
        url=one.url,
        lane=one.lane,
        worker=one.worker,
        route=one.route,
        attempt=one.attempt,
        leased_at=None if one.leased_at is None else iso(one.leased_at),
        starts_at=None if one.starts_at is None else iso(one.starts_at),
        for_seconds=None if one.leased_at is None else round(max(0.0, now - one.leased_at), 3),
        member=f"{one.member:012x}" if one.member else "",
    )


async def errors(call: Call) -> ErrorsAnswer:
    async with call.site.index.opened(call.path.job) as opened:
        now = await opened.console.progress()
        reasons = await opened.console.reasons()
        rows = []
        for place, (signature, count) in enumerate(signatures(now)):
            event, _, why = signature.partition(": ")
            dead = why if event == "dead" else ""
            example = ErrorExample(url=now.examples[signature]) if signature in now.examples else None
            if dead and place < _EXAMPLES and (graves := await opened.console.graves(why=dead, limit=1)):
                [grave] = graves
                example = ErrorExample(url=grave.url, id=grave.id, detail=grave.detail)
            rows.append(ErrorRow(signature=signature, why=dead, count=count, example=example))
    return ErrorsAnswer(job=call.path.job, errors=rows, reasons=reasons)


def _get(name: str, summary: str, **more: Any) -> Route:
    return Route(
        method="GET", path=f"{PREFIX}/jobs/{{job}}/{name}", role=Role.VIEW, summary=summary, takes=JobPath, **more
    )


ROUTES = (
    _get("progress", "All counters of the job.", handler=progress, answer=ProgressAnswer),
    _get("series", "The job's counters over time.", handler=series, query=SeriesQuery, answer=SeriesAnswer),
    _get("workers", "Its workers, with their figures.", handler=workers, answer=WorkersAnswer),
    _get(
        "in-flight",
        "Leases under way, the longest first.",
        handler=in_flight,
        query=InFlightQuery,
        answer=InFlightAnswer,
    ),
    _get("errors", "What went wrong, by cause, with an example.", handler=errors, answer=ErrorsAnswer),
)
