"""How far jobs are: the state that every view of a job shows."""

from trotline.commands.dead_reasons import REJECTED
from trotline.model.job import Progress, State

UNFINISHED = "unfinished"
FINISHED = "finished"


def state(progress: Progress, *, alive: bool = True) -> str:
    """`alive`: some worker of the job is running."""
    if progress.finished_at is not None:
        return FINISHED
    if progress.state is not State.RUNNING:
        return progress.state.value
    # Between two starts of a slow lane no task is leased.
    return State.RUNNING.value if alive and progress.leased + progress.waiting else UNFINISHED


def rejected(progress: Progress) -> int:
    """Records that failed validation; their pages are done."""
    return progress.tallies.get(REJECTED, 0)
