"""What makes a job go on that is not finished: nothing, `resume`, or a worker."""

from trotline.cli.job_argument import Target
from trotline.cli.suggested_commands import file_of, same
from trotline.cli.text import count
from trotline.config.backends import is_local
from trotline.model.job import Progress, State


def go_on(target: Target, progress: Progress, workers: int) -> str:
    """Empty if it is finished, or at work. `workers` are those that live."""
    if progress.finished_at is not None:
        return ""
    resume = same("resume", target.name)
    if progress.state is State.PAUSED:
        return f"it is paused; go on: {resume}"
    if progress.state is State.CANCELLED:
        return f"it is cancelled; take it up again: {resume}   (workers that wait for a job join it by themselves)"
    if progress.leased and workers:
        return ""
    if workers:
        return themselves(workers)
    return f"no worker takes part; go on with: {_starting(target)}"


def visit_again(target: Target, workers: int, file: str) -> str:
    """Who visits tasks that were revived."""
    if workers:
        return themselves(workers)
    run = same("run", file, job=target.job)
    if is_local(target.frontier):
        return f"Go on with the command of the last run:  {run}"
    work = same("work", file, job=target.job)
    return f"Workers that wait for a job of {target.job.spider} join it by themselves; start one:  {work}"


def themselves(workers: int) -> str:
    take = "takes part, and goes on by itself" if workers == 1 else "take part, and go on by themselves"
    return f"{count(workers, 'worker')} {take}"


def _starting(target: Target) -> str:
    """A run of one machine, or workers of a fleet."""
    work = same("work", file_of(target.job.spider), job=target.job)
    return f"the same `trotline run` command as before, or any number of: {work}" if is_local(target.frontier) else work
