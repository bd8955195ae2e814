"""The first page: all jobs, how far they are, and whether they move."""

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from trotline.coordinator.job_eta import outage_text
from trotline.model.job import Job
from trotline.rules.advice import advise
from trotline.rules.alert_texts import unchecked
from trotline.rules.time_series import rates, thinned
from trotline.web.api.types import Limit, Name
from trotline.web.job_views import JobView
from trotline.web.jobs_index import Place
from trotline.web.openapi import PREFIX
from trotline.web.pages import charts, formatting
from trotline.web.pages.page_frame import PageQuery, said
from trotline.web.route_table import HTML, Call, Role, Route
from trotline.web.server_state import Site

_SPARK = 40
"""Points of a small chart."""
_UNDER_WAY = ("running", "draining")


class OverviewQuery(PageQuery, frozen=True):
    spider: Name = ""
    limit: Limit = 30


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One job."""

    view: JobView
    bar: list[charts.Segment]
    spark: str
    eta: str
    eta_bar: charts.EtaBar | None = None
    deadline: str = ""
    ended_share: float | None
    unchecked: str = ""
    """Its alerts were checked once, and are not any more."""
    firing: int = 0
    """Alerts."""
    advice: str = ""
    """Of a job that runs: what one more worker would give."""


async def page(call: Call) -> web.Response:
    asked: OverviewQuery = call.query
    places = await call.site.index.places()
    fit = [(place, job) for place in places for job in place.jobs.values() if asked.spider in ("", job.spider)]
    # What is under way comes first, whatever its age.
    fit.sort(key=lambda one: (one[1].ended_at is not None, -one[1].started_at))
    lines = await asyncio.gather(*(_line(call.site, place, job) for place, job in fit[: asked.limit]))
    return call.site.pages.page(
        "overview.html",
        call.who,
        here="overview",
        stream=f"{PREFIX}/events",
        said=said(asked.said),
        lines=lines,
        more=max(0, len(fit) - asked.limit),
        next_limit=min(1000, asked.limit * 4),
        spider=asked.spider,
        spiders=sorted({job.spider for place in places for job in place.jobs.values()})[:100],
        places=[_place(call.site, place) for place in places],
        sentence=_sentence(lines, len(fit)),
        totals=_totals(lines),
        local=call.who.how == "local",
    )


async def _line(site: Site, place: Place, job: Job) -> Line:
    snapshot = await site.snapshots.look(place, job)
    progress, view = snapshot.progress, snapshot.view
    if progress is None:
        return Line(view=view, bar=[], spark="", eta="", ended_share=None)
    points = snapshot.points if progress.finished_at is None else ()
    recent = thinned([point for point in points if point.at >= progress.now - 600], _SPARK)
    return Line(
        view=view,
        bar=charts.bar(state_parts(view)),
        spark=charts.spark([each.ended for each in rates(recent)]),
        eta=formatting.eta(view.eta) or (view.eta.unknown if view.eta is not None else ""),
        eta_bar=_eta_bar(view),
        deadline=formatting.deadline(view.deadline_in),
        ended_share=progress.ended / progress.admitted if progress.admitted else None,
        unchecked=await unchecked_alerts(site, job),
        firing=len((await site.figures.alerts(job.id)).firing),
        advice=advised.sentence
        if (advised := advise(progress, snapshot.summary, outage_text(view.held_back))).explained
        else "",
    )


async def unchecked_alerts(site: Site, job: Job) -> str:
    """A coordinator that has died; where none ever ran, that is a choice, which the page of alerts names."""
    checked = await site.figures.alerts_checked(job.id)
    return "" if checked is None else unchecked(job, checked)


def _eta_bar(view: JobView) -> charts.EtaBar | None:
    found = view.eta
    if found is None or found.low is None or found.high is None:
        return None
    return charts.eta_bar(found.low, found.likely or found.low, found.high, view.deadline_in)


def state_parts(view: JobView) -> list[tuple[str, int]]:
    return [(name, getattr(view, name) or 0) for name in ("done", "dead", "leased", "waiting")]


def _totals(lines: list[Line]) -> dict[str, Any]:
    """Over the jobs that are shown; None: one of them is unknown."""
    views = [line.view for line in lines]

    def total(name: str) -> int | None:
        values = [getattr(view, name) for view in views]
        return None if any(value is None for value in values) else sum(values)

    names = ("waiting", "leased", "done", "dead", "records", "bytes")
    return {name: total(name) for name in names} | {
        "workers": sum(view.workers or 0 for view in views),
        "running": sum(view.state in _UNDER_WAY for view in views),
    }


def _place(site: Site, place: Place) -> dict[str, Any]:
    return {
        "name": place.name,
        "jobs": len(place.jobs),
        "age": site.index.age(place),
        "trouble": place.trouble,
        "unreadable": place.unreadable,
    }


def _sentence(lines: list[Line], jobs: int) -> str:
    if not jobs:
        return ""
    running = [line for line in lines if line.view.state in _UNDER_WAY]
    held = [line for line in running if line.view.held_back]
    lonely = [line.view.job for line in lines if line.view.state == "unfinished" and not line.view.workers]
    said = [
        f"{len(running)} of {formatting.counted(jobs, 'job')} running"
        if running
        else f"{formatting.counted(jobs, 'job')}, none running"
    ]
    said += [f"{line.view.job}: {line.advice}" for line in running if line.advice and not line.view.held_back][:2]
    said += [f"{line.view.job} is held back: {line.view.held_back}" for line in held[:2]]
    if lonely:
        said.append(f"{', '.join(lonely[:3])}{' and others' if len(lonely) > 3 else ''} without a worker")
    return "; ".join(said) + "."


ROUTES = (
    Route(
        method="GET",
        path="/",
        role=Role.VIEW,
        summary="The overview of all jobs.",
        handler=page,
        query=OverviewQuery,
        media=HTML,
    ),
)
