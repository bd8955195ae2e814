"""Delete jobs: all that is kept of them. Their records stay where they were stored."""

from collections.abc import Sequence

from trotline.commands.find_jobs import Target, console_of
from trotline.config.backends import open_jobs
from trotline.coordinator.job_eta import living
from trotline.errors import FrontierError, FrontierUnreachable, SettingsError
from trotline.model.job import State


async def forget(targets: Sequence[Target], *, force: bool) -> None:
    """All of them, or none if one of them must stay."""
    if not force:
        for target in targets:
            await check(target)
    for target in targets:
        await forget_id(target.frontier, target.job.id)


async def forget_id(frontier: str, job_id: str) -> None:
    jobs = await open_jobs(frontier)
    try:
        await jobs.forget(job_id)
    finally:
        await jobs.close()


async def check(target: Target) -> None:
    """SettingsError if it has not ended, or if workers take part in it."""
    name = target.job.id
    try:
        async with console_of(target) as console:
            progress, workers = await console.progress(), await console.workers()
    except FrontierUnreachable:
        raise
    except FrontierError:
        # No worker can join a job that cannot be read.
        return
    if target.job.finished_at is None and progress.state is not State.CANCELLED:
        left = progress.waiting + progress.leased
        raise SettingsError(
            f"{name} has not ended: {left:,} of its tasks are still to be visited",
            hint=f"End it first (trotline cancel {name}), or forget it with all that waits: --force",
        )
    if living(workers):
        raise SettingsError(
            f"workers still take part in {name}", hint="Wait until they have left, or forget it all the same: --force"
        )
