"""Retries: how many, why, in which lanes and routes they concentrate, and what is being visited again right now."""

import msgspec
from aiohttp import web

from trotline.model.job import LaneView
from trotline.rules.job_figures import figures, signatures
from trotline.rules.lane_survey import LaneSurvey
from trotline.rules.retry_tallies import by_route
from trotline.web.api import progress as api
from trotline.web.pages import charts
from trotline.web.pages.page_frame import framed, job_page
from trotline.web.route_table import Call

_REASONS = 50
_ROUTES = 50
_LANES = 20
_IN_FLIGHT = 20
_LOOKED_AT = 1000
"""Leases among which retries are looked for."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    count: int
    share: float
    """Of all retries."""
    example: str
    trend: str
    lately: int | None
    """New ones in the time of the trend; None: unknown."""


async def page(call: Call) -> web.Response:
    snapshot, frame = await framed(call, "retries")
    progress = snapshot.progress
    if progress is None:
        return call.site.pages.page("job_unknown.html", call.who, **frame)
    found = figures(progress)
    names = [(name, count) for name, count in signatures(progress) if name.startswith("retry: ")]
    reasons = []
    for name, count in names[:_REASONS]:
        lately = snapshot.summary.failures.lately(name, count)
        reasons.append(
            Reason(
                name=name.removeprefix("retry: "),
                count=count,
                share=min(1.0, count / found.retries) if found.retries else 0.0,
                example=progress.examples.get(name, ""),
                trend=charts.spark(lately) if lately and any(lately) else "",
                lately=None if lately is None else sum(lately),
            )
        )
    # The last survey was made before the end: nothing waits since then.
    lanes = snapshot.summary.lanes if progress.finished_at is None else LaneSurvey()
    routes = by_route(progress.tallies)
    leases = await _in_flight(call) if progress.leased and not snapshot.view.unreachable else []
    return call.site.pages.page(
        "retries.html",
        call.who,
        **frame,
        progress=progress,
        figures=found,
        reasons=reasons,
        more_reasons=max(0, len(names) - _REASONS),
        routes=routes[:_ROUTES],
        more_routes=max(0, len(routes) - _ROUTES),
        unknown_routes=max(0, found.retries - sum(count for _, count in routes)),
        lanes=failing(lanes),
        capped=lanes.capped,
        leases=leases[:_IN_FLIGHT],
        more_leases=max(0, len(leases) - _IN_FLIGHT),
    )


def failing(survey: LaneSurvey) -> list[LaneView]:
    """Lanes whose recent visits failed, those with the most failed tasks at stake first."""
    found = [lane for lane in survey.most_trouble if lane.waiting or lane.leased]
    return sorted(found, key=lambda lane: -lane.trouble * (lane.waiting + lane.leased))[:_LANES]


async def _in_flight(call: Call) -> list[api.InFlightRow]:
    wanted = msgspec.structs.replace(call, query=api.InFlightQuery(limit=_LOOKED_AT))
    return [row for row in (await api.in_flight(wanted)).leases if row.attempt]


ROUTES = (job_page("/retries", "Retries: why, and where they concentrate.", page),)
