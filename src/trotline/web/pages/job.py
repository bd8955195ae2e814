"""One job: how fast, what limits it, what goes wrong, and what was cut."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from aiohttp import web

from trotline.commands.dead_reasons import Burial, burials
from trotline.coordinator.job_eta import outage_text
from trotline.model.job import Job, Progress
from trotline.model.time import Seconds
from trotline.rules.advice import advise
from trotline.rules.author_warnings import warnings
from trotline.rules.failure_trend import SignatureTrend
from trotline.rules.field_coverage import FELL, LEAST_RECORDS, coverage
from trotline.rules.job_figures import Figures, figures, signatures
from trotline.rules.lane_survey import LaneSurvey
from trotline.rules.limit_cuts import cuts
from trotline.rules.pool_tallies import uses
from trotline.rules.time_series import RESOLUTIONS, Point, Resolution, point_of, rates, thinned
from trotline.web.api.alerts import view as alert_view
from trotline.web.pages import charts, formatting
from trotline.web.pages.job_headline import sentence
from trotline.web.pages.overview import state_parts, unchecked_alerts
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.route_table import Call

_SIGNATURES = 12
_LANES = 12
_FIELDS = 20


class Window(NamedTuple):
    resolution: Resolution
    seconds: Seconds
    title: str


WINDOWS = {
    "15m": Window(RESOLUTIONS[0], 900.0, "15 min"),
    "6h": Window(RESOLUTIONS[1], 6 * 3600.0, "6 h"),
    "7d": Window(RESOLUTIONS[2], 7 * 86400.0, "7 d"),
}


class JobQuery(PageQuery, frozen=True):
    window: Literal["15m", "6h", "7d"] = "15m"


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which attempts fail."""

    name: str
    count: int
    share: float
    example: str
    trend: str
    """The path of its small chart; empty: unknown, or nothing lately."""
    lately: int | None
    """New ones in the time of the trend."""
    why: str
    """The reason in the graveyard; empty: attempts that were repeated."""


async def page(call: Call) -> web.Response:
    snapshot, frame = await framed(call, "job")
    if snapshot.progress is None:
        return call.site.pages.page("job_unknown.html", call.who, **frame)
    window = WINDOWS[call.query.window]
    points = await call.site.figures.series(call.path.job, window.resolution)
    _, job = await call.site.index.find(call.path.job)
    progress, found = snapshot.progress, figures(snapshot.progress)
    dead = await call.site.index.ask(call.path.job, burials) if progress.dead and not snapshot.view.unreachable else ()
    view, summary = snapshot.view, snapshot.summary
    # The last survey was made before the end: nothing waits since then.
    lanes = summary.lanes if progress.finished_at is None else LaneSurvey()
    rate = view.pages_per_second if progress.finished_at is None else _average(progress)
    return call.site.pages.page(
        "job.html",
        call.who,
        **frame,
        progress=progress,
        took=_took(progress),
        rate=rate,
        eta=formatting.eta(view.eta),
        deadline=formatting.deadline(view.deadline_in),
        eta_why=(view.eta.unknown if view.eta is not None else "") or "an estimate",
        sentence=sentence(snapshot, rate),
        bar=charts.bar(state_parts(view)),
        figures=found,
        stats=_stats(progress, found),
        window=call.query.window,
        windows={name: one.title for name, one in WINDOWS.items()},
        charts=[chart for chart in drawn(points, window, progress) if chart is not None],
        unchecked="" if view.unreachable else await unchecked_alerts(call.site, job),
        alerts=[alert_view(call.path.job, one) for one in (await call.site.figures.alerts(call.path.job)).firing],
        # Most jobs have none: nothing is read for a job that runs.
        merge=await call.site.figures.merge(call.path.job) if progress.finished_at is not None else None,
        archive=await call.site.figures.archive(call.path.job),
        coverage=covered(progress.tallies, await _tallies_before(call, job)),
        lanes=lanes,
        surveyed_ago=max(0.0, progress.now - summary.at) if summary.at else None,
        top_lanes=lanes.most_waiting[:_LANES],
        lane_troubles=snapshot.troubles,
        # The sentence says it already, if it holds the whole job back.
        pool_troubles=[one for one in view.pool_troubles if one not in view.held_back],
        signatures=_signatures(progress, found, dead, summary.failures),
        advice=advise(progress, summary, outage_text(view.held_back)),
        alarm=bool(outage_text(view.held_back)),
        others=max(0, len(signatures(progress)) - _SIGNATURES),
        cuts=cuts(progress, job.rules.own_limits),
        warnings=warnings(progress.tallies),
        pools=uses(progress.tallies),
        budget=progress.budget,
    )


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """In how many records a field is filled."""

    kind: str
    name: str
    share: float
    records: int
    before: float | None
    """In the last finished job of the spider; None: there is none, or it has no such field."""

    @property
    def fell(self) -> bool:
        return self.before is not None and self.before - self.share >= FELL and self.records >= LEAST_RECORDS


def covered(now: Mapping[str, int], before: Mapping[str, int]) -> list[Field]:
    """Those that fell first, then the emptiest."""
    was = {(one.kind, one.field): one.share for one in coverage(before)}
    found = [
        Field(
            kind=one.kind, name=one.field, share=one.share, records=one.records, before=was.get((one.kind, one.field))
        )
        for one in coverage(now)
    ]
    return sorted(found, key=lambda one: (not one.fell, one.share, one.kind, one.name))[:_FIELDS]


async def _tallies_before(call: Call, job: Job) -> Mapping[str, int]:
    """The counters of the last job of the same spider that was finished before this one began."""
    place, _ = await call.site.index.find(job.id)
    earlier = [
        one
        for one in place.jobs.values()
        if one.spider == job.spider and one.finished_at is not None and one.started_at < job.started_at
    ]
    if not earlier:
        return {}
    look = await call.site.snapshots.look(place, max(earlier, key=lambda one: one.started_at))
    return look.progress.tallies if look.progress is not None else {}


def _took(progress: Progress) -> Seconds:
    until = progress.now if progress.finished_at is None else progress.finished_at
    return max(0.0, until - progress.started_at)


def _average(progress: Progress) -> float | None:
    took = _took(progress)
    return progress.ended / took if took >= 1 else None


def _stats(progress: Progress, found: Figures) -> dict[str, Any]:
    """None: nothing was tried yet, so there is no share."""
    tried = found.attempts > 0
    return {
        "failed": found.failed_share if tried else None,
        "blocked": found.blocked_share if tried else None,
        "duplicates": found.duplicate_share if found.known_links + found.children else None,
        "per_page": progress.size / progress.ended if progress.ended else None,
    }


def drawn(points: Sequence[Point], window: Window, progress: Progress) -> tuple[charts.Chart | None, ...]:
    """Pages and errors per second; admitted against ended, whose meeting is the end."""
    newest = points[-1].at if points else 0
    shown = thinned([point for point in points if point.at >= newest - window.seconds], charts.MOST_POINTS)
    return _speed(shown, window), _totals(_until_now(shown, progress), window, progress)


def _until_now(points: list[Point], progress: Progress) -> list[Point]:
    """With the totals of now, or of the end: the last point that was kept is some seconds older."""
    at = int(progress.now if progress.finished_at is None else progress.finished_at)
    newest = point_of(progress, 0)._replace(at=at)
    return [*(point for point in points if point.at < at), newest] if points else []


def _spaced(points: list[Point], step: Seconds) -> list[Point]:
    """Without points that follow another one at once: two observers may look within a second, and a rate over so short
    a time is noise."""
    found: list[Point] = []
    for point in points:
        if not found or point.at - found[-1].at >= step / 2:
            found.append(point)
    return found


def _speed(points: list[Point], window: Window) -> charts.Chart | None:
    found = rates(_spaced(points, window.resolution.step))
    if not found:
        return None
    last = found[-1]
    given = (
        charts.Given("ended", "done", [each.ended for each in found]),
        charts.Given("failed attempts", "dead", [each.failed for each in found]),
        charts.Given("blocked", "warn", [each.blocked for each in found]),
    )
    highest = max(each.ended for each in found)
    said = f"{formatting.rate(last.ended)} pages/s at the end of the window, at most {formatting.rate(highest)}/s."
    times = [each.at for each in found]
    return charts.chart("speed", "Pages per second", "/s", times, given, step=_step(points, window), sentence=said)


def _totals(points: list[Point], window: Window, progress: Progress) -> charts.Chart | None:
    given = (
        charts.Given("admitted", "waiting", [float(each.admitted) for each in points]),
        charts.Given("ended", "done", [float(each.ended) for each in points]),
    )
    left = progress.waiting + progress.leased
    said = (
        f"{formatting.counted(left, 'task')} between the lines; where they meet, the job ends." if left else "All done."
    )
    times = [each.at for each in points]
    return charts.chart(
        "totals", "Admitted and ended", "tasks", times, given, step=_step(points, window), sentence=said
    )


def _step(points: list[Point], window: Window) -> Seconds:
    """Between two points that were drawn: thinned ones are further apart."""
    if len(points) < 2:
        return window.resolution.step
    return max(window.resolution.step, (points[-1].at - points[0].at) / (len(points) - 1))


def _signatures(progress: Progress, found: Figures, dead: tuple[Burial, ...], trend: SignatureTrend) -> list[Signature]:
    examples = {f"dead: {burial.why}": burial for burial in dead}
    rows = []
    for name, number in signatures(progress)[:_SIGNATURES]:
        burial = examples.get(name)
        lately = trend.lately(name, number)
        rows.append(
            Signature(
                name=name,
                count=number,
                share=min(1.0, number / found.attempts) if found.attempts else 0.0,
                example=burial.url if burial is not None else progress.examples.get(name, ""),
                trend=charts.spark(lately) if lately and any(lately) else "",
                lately=None if lately is None else sum(lately),
                why=name.removeprefix("dead: ") if name.startswith("dead: ") else "",
            )
        )
    return rows


ROUTES = (job_page("", "One job: charts, lanes, errors, limits.", page, JobQuery),)
