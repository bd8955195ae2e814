"""Puts tasks of entries that other programs wrote: one that cannot be stored holds up no other."""

from collections.abc import Awaitable, Callable, Sequence

from trotline.errors import FrontierError
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.rules.task_checks import said

DRAINING = "the job or the lane is draining, and admits nothing new"
Put = Callable[[Sequence[Task]], Awaitable[list[Admission]]]


async def put_each(put: Put, tasks: Sequence[Task]) -> list[Admission | str]:
    """Of each task the answer, or why it cannot be stored. After an error that is not the server's, one by one."""
    if not tasks:
        return []
    try:
        return list(await put(tasks))
    except FrontierError:
        raise
    except Exception as error:
        if len(tasks) == 1:
            return [defect(error)]
    return [answer for task in tasks for answer in await put_each(put, [task])]


def defect(error: Exception) -> str:
    """The reason for an error that no check of ours foresaw."""
    return f"defect: {type(error).__name__}: {said(error)}"


def refusal(answer: Admission | str) -> str:
    """Why it was not stored; empty: it was, or it is known."""
    if answer is Admission.REFUSED:
        return DRAINING
    return "" if isinstance(answer, Admission) else answer
