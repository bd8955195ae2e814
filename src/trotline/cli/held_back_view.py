"""The consequences of an outage for a job: no estimate, and what to do."""

from trotline.cli.suggested_commands import file_of, same
from trotline.coordinator.outlook import PATIENT, outage
from trotline.model.job import Job


def remedy(held_back: str, job: Job) -> str:
    """What to do about it; empty if there is nothing."""
    if outage(held_back) is None:
        return ""
    doctor = same("doctor", file_of(job.spider))
    return f"{PATIENT}; check it: {doctor}"
