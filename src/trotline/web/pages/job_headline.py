"""The sentence on top of a job's page: what it does, and what limits it."""

from trotline.coordinator.job_eta import FEED, consequence, outage_text
from trotline.rules.advice import advise
from trotline.web.job_snapshots import Snapshot
from trotline.web.pages import formatting


def sentence(snapshot: Snapshot, rate: float | None) -> str:
    progress, view = snapshot.progress, snapshot.view
    if progress is None:
        return ""
    if progress.finished_at is not None:
        took = formatting.length(max(0.0, progress.finished_at - progress.started_at))
        dead = f", {formatting.count(progress.dead)} dead" if progress.dead else ""
        pages, records = formatting.counted(progress.ended, "page"), formatting.counted(view.records, "record")
        return f"Finished in {took}: {pages}{dead}, {records}."
    if view.spent:
        return f"It has reached {view.spent}: to lift the limit, resume it."
    if view.state in ("paused", "cancelled"):
        left = progress.waiting + progress.leased
        return f"{view.state.capitalize()}: {formatting.counted(left, 'task')} left. Resume to go on."
    if view.held_back:
        if not outage_text(view.held_back):
            return f"Held back: {view.held_back}."
        said = f"Held back: {view.held_back}; {consequence(view.held_back)}"
        if view.held_back.startswith(FEED):
            return f"{said}."
        return f"{said}; check it: trotline doctor {view.spider}.py"
    if not view.workers:
        return "No worker is running. Start one: trotline work FILE (or trotline run FILE on this machine)."
    advice = advise(progress, snapshot.summary)
    said = f"{formatting.rate(rate)} pages/s; " if rate is not None else ""
    return f"{said}{advice.sentence}."
