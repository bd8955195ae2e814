"""The consequences of an outage for a job: no estimate, and what to do."""

from trotline.cli.suggested_commands import file_of, same
from trotline.model.job import Job
from trotline.rules.eta import Unknown

_OUTAGES = {
    "sink is unreachable": Unknown.SINK_UNREACHABLE,
    "frontier is unreachable": Unknown.FRONTIER_UNREACHABLE,
}


def outage(held_back: str) -> Unknown | None:
    """Why no page can be finished now; None if pages can, however slowly."""
    return next((why for begin, why in _OUTAGES.items() if held_back.startswith(begin)), None)


def remedy(held_back: str, job: Job) -> str:
    """What to do about it; empty if there is nothing."""
    if outage(held_back) is None:
        return ""
    doctor = same("doctor", file_of(job.spider))
    return f"nothing is lost, and workers go on by themselves when it answers; check it: {doctor}"
