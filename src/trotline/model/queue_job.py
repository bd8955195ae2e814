"""Jobs of a `Queue`, which no spider works on."""

from trotline.model.job import Job

SOURCE = "Queue"
"""In place of a spider's file (`LaneRules.source`)."""
ROUTE = "task"
"""The route (`job_type`) of tasks that name none."""


def is_queue(job: Job) -> bool:
    return job.rules.source == SOURCE


def routes(job: Job) -> tuple[str, ...]:
    """The routes that are known without the code that works on the job."""
    return (ROUTE,) if is_queue(job) else ()
