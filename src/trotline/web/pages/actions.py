"""What operators may do from pages, as forms: the same functions as the API's, then back to the page."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from trotline.commands.job_control import Verb
from trotline.web.api import control, lanes
from trotline.web.api.types import JobPath
from trotline.web.pages.formatting import part
from trotline.web.pages.render import redirect
from trotline.web.route_table import FORM, HTML, Call, Handler, Role, Route


class SteerForm(msgspec.Struct, frozen=True):
    verb: Literal["pause", "resume", "drain", "cancel"]


class SteerLaneForm(msgspec.Struct, frozen=True):
    verb: Literal["pause", "resume", "cancel"]
    lane: lanes.LaneName


class PaceForm(msgspec.Struct, frozen=True):
    lane: lanes.LaneName
    rate: Annotated[str, Meta(max_length=100)] = ""
    """Empty: the spiders' own paces again."""


async def steer(call: Call) -> web.Response:
    verb = Verb(call.body.verb)
    await control.steering(verb)(msgspec.structs.replace(call, body=control.Steer()))
    return redirect(f"/jobs/{part(call.path.job)}?said={verb}")


async def steer_lane(call: Call) -> web.Response:
    asked: SteerLaneForm = call.body
    await control.steering(Verb(asked.verb))(msgspec.structs.replace(call, body=control.Steer(lane=asked.lane)))
    return _to_lane(call, asked.lane, f"lane-{asked.verb}")


async def set_pace(call: Call) -> web.Response:
    asked: PaceForm = call.body
    rate = asked.rate.strip() or None
    await lanes.set_pace(msgspec.structs.replace(call, body=lanes.SetPace(lane=asked.lane, rate=rate)))
    return _to_lane(call, asked.lane, "pace" if rate else "pace-lifted")


def _to_lane(call: Call, lane: str, said: str) -> web.Response:
    return redirect(f"/jobs/{part(call.path.job)}/lanes?lane={part(lane)}&said={said}")


def _action(path: str, summary: str, handler: Handler, body: type[msgspec.Struct]) -> Route:
    return Route(
        method="POST",
        path=f"/jobs/{{job}}{path}",
        role=Role.OPERATE,
        summary=summary,
        handler=handler,
        takes=JobPath,
        body=body,
        body_media=FORM,
        media=HTML,
        status=303,
    )


ROUTES = (
    _action("/steer", "Pause, resume, drain or cancel the job.", steer, SteerForm),
    _action("/lanes/steer", "Pause, resume or cancel a lane.", steer_lane, SteerLaneForm),
    _action("/lanes/pace", "Set the rate limit of a lane.", set_pace, PaceForm),
)
