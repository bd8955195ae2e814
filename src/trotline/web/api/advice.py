"""Which limit binds a job, and the signal for autoscalers: from the figures that are kept with the job."""

import asyncio

import msgspec

from trotline.errors import FrontierError
from trotline.ports.console import Console
from trotline.rules import job_summary
from trotline.rules.advice import Advice, Scale, advise, scale
from trotline.rules.advice_limits import UNKNOWN
from trotline.rules.job_summary import SUMMARY, JobSummary
from trotline.web.api.types import JobPath, Name
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route


class ScaleQuery(msgspec.Struct, frozen=True):
    spider: Name = ""
    """Of this spider only; workers of one spider work for no other."""


async def read(console: Console) -> Advice:
    """Unknown if nobody has observed the job lately."""
    progress, [note] = await console.progress(), await console.read_notes([SUMMARY])
    return advise(progress, job_summary.decode(note.data) if note is not None else JobSummary())


async def advice(call: Call) -> Advice:
    found: Advice = await call.site.index.ask(call.path.job, read)
    return found


async def job_scale(call: Call) -> Scale:
    return scale(await advice(call))


async def all_scale(call: Call) -> Scale:
    asked: ScaleQuery = call.query
    places = await call.site.index.places()
    if any(place.trouble for place in places):
        # Some jobs cannot be seen: keep what there is.
        return Scale(wanted_workers=None, admissible_per_second=None, limit=UNKNOWN)
    jobs = [
        job.id
        for place in places
        for job in place.jobs.values()
        if job.ended_at is None and asked.spider in ("", job.spider)
    ]
    try:
        found = await asyncio.gather(*(call.site.index.ask(job, read) for job in jobs))
    except FrontierError:
        return Scale(wanted_workers=None, admissible_per_second=None, limit=UNKNOWN)
    return total([scale(each) for each in found])


def total(scales: list[Scale]) -> Scale:
    """The sums; unknown if one of them is. The limit is that of the job that wants the most workers."""
    wanted = [each.wanted_workers for each in scales]
    rates = [each.admissible_per_second for each in scales]
    most = max(scales, key=lambda each: each.wanted_workers or 0, default=None)
    return Scale(
        wanted_workers=None if None in wanted else sum(each for each in wanted if each is not None),
        admissible_per_second=None if None in rates else round(sum(each for each in rates if each is not None), 3),
        limit="nothing" if most is None else most.limit,
    )


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/advice",
        role=Role.VIEW,
        summary="Which limit binds, what one more worker would give, and how many are worth having.",
        handler=advice,
        takes=JobPath,
        answer=Advice,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/scale",
        role=Role.VIEW,
        summary="How many workers the job wants, for autoscalers; null: unknown, keep what there is.",
        handler=job_scale,
        takes=JobPath,
        answer=Scale,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/scale",
        role=Role.VIEW,
        summary="How many workers all unfinished jobs want, or those of one spider.",
        handler=all_scale,
        query=ScaleQuery,
        answer=Scale,
    ),
)
