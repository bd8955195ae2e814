"""How to continue a job that is not finished: by itself, with `resume`, or with a worker."""

from trotline.cli.formatting import count, safe
from trotline.cli.job_argument import Target
from trotline.cli.suggested_commands import file_of, same
from trotline.config.backends import is_local
from trotline.model.job import Progress, State
from trotline.model.queue_job import is_queue, own_program
from trotline.rules.scrapy_job_owner import crawl_command

_LONGEST = 200


def go_on(target: Target, progress: Progress, workers: int) -> str:
    """Empty if it is finished or running, or cannot. `workers`: how many are running."""
    if progress.finished_at is not None:
        return ""
    resume = same("resume", target.name)
    if progress.state is State.PAUSED:
        return f"it is paused; resume: {resume}"
    if progress.state is State.CANCELLED:
        return f"it is cancelled; resume: {resume}   (waiting workers join it)"
    if (progress.leased and workers) or progress.missing:
        return ""
    if workers:
        return themselves(workers)
    return f"no worker is running; continue with: {_starting(target)}{_other_version(target)}"


def visit_again(target: Target, workers: int, file: str) -> str:
    if workers:
        return themselves(workers)
    if is_queue(target.job):
        return f"Continue with:  {_own_program(target)}"
    run = same("run", file, job=target.job)
    if is_local(target.frontier) and target.followed:
        work = same("work", file, "--until-finished", job=target.job)
        return f"`trotline run` goes on with the newest job only. Continue this one with:  {work}"
    if is_local(target.frontier):
        return f"Continue with the command of the last run:  {run}"
    work = same("work", file, job=target.job)
    return f"Waiting workers of {target.job.spider} join it; start one:  {work}"


def themselves(workers: int) -> str:
    continues = "is running, and continues by itself" if workers == 1 else "are running, and continue by themselves"
    return f"{count(workers, 'worker')} {continues}"


def _own_program(target: Target) -> str:
    known = crawl_command(target.scrapy, target.job.spider) if target.scrapy else own_program(target.job)
    return safe(known, _LONGEST)


def _other_version(target: Target) -> str:
    """Workers that wait for this reason are not in the books of the job: it cannot be said whether there are some."""
    if is_queue(target.job) or not target.job.version:
        return ""
    upgrade = same("work", file_of(target.job.spider), "--upgrade", job=target.job)
    return f"; if workers wait because their code is of another version, let it in: {upgrade}"


def _starting(target: Target) -> str:
    if is_queue(target.job):
        return _own_program(target)
    work = same("work", file_of(target.job.spider), job=target.job)
    if is_local(target.frontier) and not target.followed:
        return f"the same `trotline run` command as before, or any number of: {work}"
    return work
