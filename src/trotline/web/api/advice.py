"""Which limit binds a job, what one more worker would change, and the signal for autoscalers."""

import asyncio

import msgspec

from trotline.coordinator.job_eta import living, outage_text
from trotline.model.job import Job
from trotline.rules.advice import Advice, Scale, advise, scale
from trotline.rules.advice_limits import NOTHING, UNKNOWN
from trotline.web.api.types import JobPath, Name
from trotline.web.errors import Refused
from trotline.web.job_snapshots import Snapshot
from trotline.web.jobs_index import Place
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route


class AdviceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    advice: Advice
    unreachable: str
    """Why the figures are not newer; then the advice is about the last known ones."""


class ScaleQuery(msgspec.Struct, frozen=True):
    spider: Name = ""
    """Of its newest unfinished job; empty: the sum over all spiders."""


async def job_advice(call: Call) -> AdviceAnswer:
    look = await call.site.snapshots.of(call.path.job)
    return AdviceAnswer(job=call.path.job, advice=_advice(look), unreachable=look.view.unreachable)


async def job_scale(call: Call) -> Scale:
    return scale(_advice(await call.site.snapshots.of(call.path.job)))


async def all_scale(call: Call) -> Scale:
    places = await call.site.index.places()
    if away := next((place for place in places if place.trouble), None):
        raise Refused(503, f"{away.name} is unreachable: {away.trouble}", hint="Keep the workers that there are.")
    newest: dict[tuple[str, str], tuple[Place, Job]] = {}
    for place in places:
        unfinished = [job for job in place.jobs.values() if job.ended_at is None]
        for job in sorted(unfinished, key=lambda one: one.started_at):
            if call.query.spider in ("", job.spider):
                newest[place.url, job.spider] = (place, job)
    looks = await asyncio.gather(*(call.site.snapshots.look(place, job) for place, job in newest.values()))
    return _sum([scale(_advice(look)) for look in looks])


def _advice(look: Snapshot) -> Advice:
    if look.progress is None or look.view.unreachable:
        return Advice(sentence="unknown: the frontier is unreachable", limit=UNKNOWN)
    return advise(look.progress, look.summary, outage_text(look.view.held_back), living(look.crew))


def _sum(found: list[Scale]) -> Scale:
    """What is unknown of one job is unknown of all: an autoscaler keeps what there is."""
    if not found:
        return Scale(wanted_workers=0, admissible_per_second=0.0, limit=NOTHING)
    workers = [one.wanted_workers for one in found]
    rates = [one.admissible_per_second for one in found]
    return Scale(
        wanted_workers=None if None in workers else sum(one for one in workers if one is not None),
        admissible_per_second=None if None in rates else sum(one for one in rates if one is not None),
        limit=max(found, key=lambda one: one.wanted_workers or 0).limit,
    )


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/advice",
        role=Role.VIEW,
        summary="Which limit binds the job now, and what one more worker would change.",
        handler=job_advice,
        takes=JobPath,
        answer=AdviceAnswer,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/scale",
        role=Role.VIEW,
        summary="How many workers are worth having for the job; null: unknown, keep what there is.",
        handler=job_scale,
        takes=JobPath,
        answer=Scale,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/scale",
        role=Role.VIEW,
        summary="How many workers are worth having for a spider's newest unfinished job, or for all spiders.",
        handler=all_scale,
        query=ScaleQuery,
        answer=Scale,
        errors=(503,),
    ),
)
