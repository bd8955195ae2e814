"""What to do about an outage of a broker, sink or other server that holds a job back: one line for views of the job."""

from trotline.cli.suggested_commands import file_of, same
from trotline.coordinator.job_eta import FEED, consequence, outage
from trotline.model.job import Job
from trotline.model.queue_job import is_queue
from trotline.rules.broker_shelves import MISSING, UNREACHABLE


def remedy(held_back: str, job: Job) -> str:
    """What to do about it; empty if there is nothing."""
    if held_back.startswith(MISSING):
        again = "with another job" if is_queue(job) else same("start", file_of(job.spider), "--fresh", job=job)
        return f"the broker has lost them, and the job cannot finish: begin anew when the rest is done: {again}"
    if held_back.startswith(FEED):
        return consequence(held_back)
    if outage(held_back) is None and not held_back.startswith(UNREACHABLE):
        return ""
    doctor = same("doctor") if is_queue(job) else same("doctor", file_of(job.spider))
    if held_back.startswith(UNREACHABLE):
        return (
            "pages whose tasks are in the books are visited meanwhile; held back are tasks in its queues, and nothing "
            f"is lost; check it: {doctor}"
        )
    return f"{consequence(held_back)}; check it: {doctor}"
