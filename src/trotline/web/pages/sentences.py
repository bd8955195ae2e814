"""The sentence on top of a job's page: what it does, and what limits it."""

from trotline.rules.job_summary import JobSummary
from trotline.web.pages import text
from trotline.web.snapshots import Snapshot

_NEAR = 0.85
"""A job that does this share of what its lanes allow is as fast as they allow."""


def sentence(snapshot: Snapshot, rate: float | None) -> str:
    progress, view = snapshot.progress, snapshot.view
    if progress is None:
        return ""
    if progress.finished_at is not None:
        took = text.length(max(0.0, progress.finished_at - progress.started_at))
        dead = f", {text.count(progress.dead)} dead" if progress.dead else ""
        return (
            f"Finished in {took}: {text.counted(progress.ended, 'page')}{dead}, {text.counted(view.records, 'record')}."
        )
    if view.spent:
        return f"It has reached {view.spent}: to lift the limit, resume it."
    if view.state in ("paused", "cancelled"):
        left = progress.waiting + progress.leased
        return f"{view.state.capitalize()}: {text.counted(left, 'task')} left. Resume to go on."
    if view.held_back:
        return f"Held back: {view.held_back}."
    if not view.workers:
        return "No worker is running. Start one: trotline work FILE (or trotline run FILE on this machine)."
    return _pace(snapshot.summary, rate)


def _pace(summary: JobSummary, rate: float | None) -> str:
    lanes = summary.lanes
    if rate is None or not lanes.lanes:
        return "Too early to say what limits it."
    said = f"{text.rate(rate)} pages/s"
    first = lanes.most_waiting[0] if lanes.most_waiting else None
    if lanes.admissible and _NEAR * lanes.admissible <= rate <= lanes.admissible / _NEAR:
        largest = f"; most waits for {first.lane}" if first is not None and lanes.lanes > 1 else ""
        return f"{said}: as much as the rate limits of its lanes allow ({text.rate(lanes.admissible)}/s){largest}."
    resting = lanes.states.get("resting", 0)
    if resting and resting * 2 >= lanes.lanes:
        return f"{said}: {text.count(resting)} of {text.counted(lanes.lanes, 'lane')} rest."
    return f"{said}; the rate limits of its lanes allow {text.rate(lanes.admissible)}/s."
