"""The sentence on top of a job's page: what it does, and what limits it."""

from trotline.coordinator.outlook import consequence, outage_text
from trotline.rules.advice import advise
from trotline.web.pages import text
from trotline.web.snapshots import Snapshot


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
        if not outage_text(view.held_back):
            return f"Held back: {view.held_back}."
        return f"Held back: {view.held_back}; {consequence(view.held_back)}; check it: trotline doctor {view.spider}.py"
    if not view.workers:
        return "No worker is running. Start one: trotline work FILE (or trotline run FILE on this machine)."
    advice = advise(progress, snapshot.summary)
    said = f"{text.rate(rate)} pages/s; " if rate is not None else ""
    return f"{said}{advice.sentence}."
