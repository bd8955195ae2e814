"""The lanes of a job: a survey of all of them, those that stand out, and one with its rate limit."""

from typing import Literal

import msgspec
from aiohttp import web

from trotline.rules.lane_survey import LaneSurvey
from trotline.web.api import lanes as api
from trotline.web.api.types import Name
from trotline.web.pages import charts
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.route_table import Call

_STATES = {"running": "done", "resting": "warn", "paused": "waiting", "draining": "leased"}
"""State of a lane -> its colour."""


class LanesQuery(PageQuery, frozen=True):
    sort: Literal["waiting", "rest", "errors"] = "waiting"
    prefix: Name = ""
    lane: Name = ""
    """Shown closely."""


async def page(call: Call) -> web.Response:
    asked: LanesQuery = call.query
    _, frame = await framed(call, "lanes")
    found = await api.lanes(msgspec.structs.replace(call, query=api.LanesQuery(sort=asked.sort, prefix=asked.prefix)))
    if frame["job"].finished_at is not None:
        # The last survey was made before the end: nothing waits since then.
        found = msgspec.structs.replace(found, survey=LaneSurvey(), lanes=[], more=False)
    one = None
    if asked.lane:
        one = (await api.pace(msgspec.structs.replace(call, query=api.PaceQuery(lane=asked.lane)))).pace
    return call.site.pages.page(
        "lanes.html",
        call.who,
        **frame,
        found=found,
        survey=found.survey,
        sort=asked.sort,
        prefix=asked.prefix,
        lane=asked.lane,
        pace=one,
        states=charts.bar((_STATES.get(state, "waiting"), number) for state, number in found.survey.states.items()),
        dots=_STATES,
    )


ROUTES = (job_page("/lanes", "The lanes of a job.", page, LanesQuery),)
