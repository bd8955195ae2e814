"""Lanes: what is known of all of them, those that begin with a name, and their rate limits."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from trotline.commands.pace import chosen, wanted
from trotline.errors import SettingsError
from trotline.model.job import LanePace, LaneView
from trotline.model.time import Moment, Seconds, iso
from trotline.rules.lane_survey import TOP, LaneSurvey
from trotline.web.api.types import JobPath, Name
from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route

LaneName = Annotated[str, Meta(min_length=1, max_length=300)]


class LanesQuery(msgspec.Struct, frozen=True):
    sort: Literal["waiting", "rest", "errors"] = "waiting"
    prefix: Name = ""
    """Only lanes whose name begins like this: all lanes are walked for it."""


class LanesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    survey: LaneSurvey
    """Of all lanes, with the first of each list; the lists are those of `lanes` by sort."""
    surveyed_at: str | None
    """The frontier's time; null: never."""
    age: Seconds | None
    """Seconds since then; null: never."""
    lanes: list[LaneView]
    troubles: dict[str, str] = {}
    """Lane -> why its tasks wait for their proxy pool; of the lanes that stand out."""
    more: bool
    """There are further ones that fit, and are not listed."""


class PaceQuery(msgspec.Struct, frozen=True):
    lane: LaneName


class SetPace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lane: LaneName
    rate: Annotated[str, Meta(max_length=100)] | None
    """"2/s", "30/m", "1/s per proxy"; null: the spiders' own paces again."""
    concurrency: Annotated[int, Meta(ge=1, le=100_000)] | None = None


class PaceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    lane: str
    pace: LanePace | None
    """null: it was never visited."""


async def lanes(call: Call) -> LanesAnswer:
    asked: LanesQuery = call.query
    look = await call.site.snapshots.of(call.path.job)
    summary = look.summary
    found = _listed(summary.lanes, asked.sort)
    more = summary.lanes.lanes > len(found)
    if asked.prefix:
        found, more = await _beginning_with(call, asked.prefix)
    return LanesAnswer(
        job=call.path.job,
        survey=summary.lanes,
        surveyed_at=iso(summary.at) if summary.at else None,
        age=_age(summary.at, look.progress.now) if look.progress is not None else None,
        lanes=found,
        troubles=dict(look.troubles),
        more=more,
    )


def _age(at: Moment, now: Moment) -> Seconds | None:
    return round(max(0.0, now - at), 1) if at else None


def _listed(survey: LaneSurvey, sort: str) -> list[LaneView]:
    lists = {"waiting": survey.most_waiting, "rest": survey.longest_rest, "errors": survey.most_trouble}
    return list(lists[sort])


async def _beginning_with(call: Call, prefix: str) -> tuple[list[LaneView], bool]:
    found: dict[str, LaneView] = {}
    async with call.site.index.opened(call.path.job) as opened:
        async for page in opened.console.all_lanes():
            found |= {lane.lane: lane for lane in page if lane.lane.startswith(prefix)}
            if len(found) > TOP:
                break
    listed = sorted(found.values(), key=lambda lane: lane.lane)
    return listed[:TOP], len(listed) > TOP


async def pace(call: Call) -> PaceAnswer:
    found = await call.site.index.ask(call.path.job, lambda console: console.lane_pace(call.query.lane))
    return PaceAnswer(lane=call.query.lane, pace=found)


async def set_pace(call: Call) -> PaceAnswer:
    asked: SetPace = call.body
    _, job = await call.site.index.find(call.path.job)
    if not asked.lane.isprintable():
        raise Refused(400, "lane: the name of a host, as the list of lanes has it")
    try:
        rate = wanted(asked.rate, asked.lane) if asked.rate is not None else None
    except SettingsError as error:
        raise Refused(
            400, f"rate: {error.what}", hint='For example: {"lane": "shop.example", "rate": "2/s"}'
        ) from error
    if rate is None and asked.concurrency is not None:
        raise Refused(400, "concurrency belongs to a rate", hint="Give both.")
    async with call.site.index.opened(call.path.job) as opened:
        now = await opened.console.lane_pace(asked.lane)
        order = None if rate is None else chosen(job, asked.lane, rate, asked.concurrency, now)
        await opened.console.set_pace(asked.lane, order)
        return PaceAnswer(lane=asked.lane, pace=await opened.console.lane_pace(asked.lane))


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/lanes",
        role=Role.VIEW,
        summary="A survey of all lanes, and those that stand out, or begin with a name.",
        handler=lanes,
        takes=JobPath,
        query=LanesQuery,
        answer=LanesAnswer,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/lanes/pace",
        role=Role.VIEW,
        summary="Why a lane is as fast as it is.",
        handler=pace,
        takes=JobPath,
        query=PaceQuery,
        answer=PaceAnswer,
    ),
    Route(
        method="POST",
        path=f"{PREFIX}/jobs/{{job}}/lanes/pace",
        role=Role.OPERATE,
        summary="Set how fast a lane is visited, by all jobs of the frontier; null takes it back.",
        handler=set_pace,
        takes=JobPath,
        body=SetPace,
        answer=PaceAnswer,
    ),
)
