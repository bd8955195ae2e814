"""What follows from what holds a job back: no estimate, and what to do."""

from trotline.cli.suggested_commands import file_of, same
from trotline.model.job import Job
from trotline.rules.eta import Unknown

_AWAY = {"sink is unreachable": Unknown.SINK_AWAY, "frontier is unreachable": Unknown.FRONTIER_AWAY}


def away(held_back: str) -> Unknown | None:
    """Why no page can be finished now; None if pages can, however slowly."""
    said = held_back.removeprefix("the ")
    return next((why for begin, why in _AWAY.items() if said.startswith(begin)), None)


def remedy(held_back: str, job: Job) -> str:
    """What to do about it; empty if there is nothing."""
    if away(held_back) is None:
        return ""
    doctor = same("doctor", file_of(job.spider))
    return f"nothing is lost, and workers go on by themselves when it answers; check it: {doctor}"
