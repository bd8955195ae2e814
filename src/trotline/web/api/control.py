"""Create, steer and forget jobs."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from trotline.commands.find_jobs import Target
from trotline.commands.job_control import Verb, steer
from trotline.commands.jobs_forget import forget as forget_targets
from trotline.commands.jobs_forget import forget_id
from trotline.commands.start import StartPlan, make_job
from trotline.web.api.types import JobPath, Name
from trotline.web.jobs_index import WITHIN
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Handler, Role, Route


class NewJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    spider: Name
    """The spider's name; its file was given to `trotline web`."""
    fresh: bool = False
    """Start a new job even if the last one is unfinished; else that one goes on."""
    max_pages: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    max_bytes: Annotated[int, Meta(ge=1, le=10**18)] | None = None


class CreatedJob(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    resumed: bool
    """It was there already, unfinished."""
    forgotten: tuple[str, ...] = ()
    """Old jobs that were forgotten on the way."""


class Steer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lane: Annotated[str, Meta(min_length=1, max_length=300)] | None = None
    """Only this lane; null: the whole job."""


class SteeredJob(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    lane: str | None
    before: str
    """The state of the job before."""
    buried: int
    """Tasks of a lane that was cancelled; they can be revived."""
    lifted: str
    """The limit that the job had reached, and that was lifted."""
    rest_ended: bool = False
    """The lane rested after failures or a 429: one probe goes out now."""


class ForgetQuery(msgspec.Struct, frozen=True):
    force: bool = False
    """Also one that has not ended."""


class ForgottenJob(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    forgotten: bool = True


async def create(call: Call) -> CreatedJob:
    asked: NewJob = call.body
    site = call.site
    ref, spider = site.spiders.find(asked.spider)
    settings = msgspec.structs.replace(
        site.plan.settings.of(spider.name), max_pages=asked.max_pages, max_bytes=asked.max_bytes
    )
    plan = StartPlan(ref=ref, settings=settings, fresh=asked.fresh, detach=True, pools=site.plan.pools)
    made = await make_job(plan, spider)
    # Nothing is awaited in between: a client that leaves now does not leave a job without seeds.
    site.seeding.begin(plan, spider, made)
    site.index.forget_list()
    return CreatedJob(job=made.found.job.id, resumed=made.found.resumed, forgotten=made.retired)


def steering(verb: Verb) -> Handler:
    async def handler(call: Call) -> SteeredJob:
        asked: Steer = call.body
        name: str = call.path.job
        async with call.site.index.opened(name) as opened, asyncio.timeout(WITHIN):
            _, job = await call.site.index.find(name)
            done = await steer(opened.console, job, verb, asked.lane)
        call.site.snapshots.forget(name)
        call.site.index.forget_list()
        return SteeredJob(
            job=name,
            lane=asked.lane,
            before=done.before,
            buried=done.buried,
            lifted=done.lifted,
            rest_ended=done.rest_ended,
        )

    return handler


async def forget(call: Call) -> ForgottenJob:
    name: str = call.path.job
    index = call.site.index
    damaged = [place for place in await index.places() if name in place.unreadable]
    if damaged:
        await forget_id(damaged[0].url, name)
    else:
        place, job = await index.find(name)
        await forget_targets([Target(place.url, job)], force=call.query.force)
        await index.drop(place.url, name)
    index.forget_list()
    return ForgottenJob(job=name)


_SAYS = {
    Verb.PAUSE: "Hand out no more tasks of the job, or of one lane; what is in flight ends as usual.",
    Verb.RESUME: "Go on after pause, drain or cancel; a limit that was reached is lifted. A lane that rests is probed.",
    Verb.DRAIN: "Finish what waits and admit nothing new.",
    Verb.CANCEL: "End the job: workers leave it, what waits is kept. Of a lane: what waits is buried.",
}
ROUTES = (
    Route(
        method="POST",
        path=f"{PREFIX}/jobs",
        role=Role.OPERATE,
        summary="Create a job, or go on with the unfinished one, and seed it in the background.",
        handler=create,
        body=NewJob,
        answer=CreatedJob,
        status=201,
        errors=(409, 422, 502, 503),
    ),
    *(
        Route(
            method="POST",
            path=f"{PREFIX}/jobs/{{job}}/{verb}",
            role=Role.OPERATE,
            summary=_SAYS[verb],
            handler=steering(verb),
            takes=JobPath,
            body=Steer,
            answer=SteeredJob,
        )
        for verb in Verb
    ),
    Route(
        method="DELETE",
        path=f"{PREFIX}/jobs/{{job}}",
        role=Role.OPERATE,
        summary="Remove all that is kept of the job; its records stay. One that has not ended: force=true.",
        handler=forget,
        takes=JobPath,
        query=ForgetQuery,
        answer=ForgottenJob,
    ),
)
