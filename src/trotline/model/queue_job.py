"""Jobs that no spider of ours works on: those of a `Queue`, and those of a Scrapy project."""

from trotline.model.job import Job, LaneRules

SOURCE = "Queue"
"""In place of a spider's file (`LaneRules.source`)."""
SCRAPY = "Scrapy"
"""The same for a job of the Scrapy bridge."""
ROUTE = "task"
"""The route (`job_type`) of tasks that name none."""


def is_queue(job: Job) -> bool:
    """No command of ours can work on it: there is no spider's file."""
    return job.rules.source in (SOURCE, SCRAPY)


def has_ended(job: Job) -> bool:
    """A job of a `Queue` that is finished has ended: programs need not ask for the announcement."""
    return job.rules.source == SOURCE and job.finished_at is not None


def is_scrapy(job: Job) -> bool:
    return job.rules.source == SCRAPY


def made_by(rules: LaneRules) -> str:
    return {SOURCE: "a queue", SCRAPY: "Scrapy"}.get(rules.source, "a spider")


def own_program(job: Job) -> str:
    """What works on the job, for texts that say how it goes on."""
    return f"scrapy crawl {job.spider}" if is_scrapy(job) else f"the program that works on the queue {job.spider!r}"
