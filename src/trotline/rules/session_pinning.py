"""Session affinity: a session's cookies exist only in the memory of the process that opened it.

A task that continues a session names the process: `anna`, a separator, and the process id. Any other process would
fetch the page without being logged in (docs/decisions/072-sessions-stay-at-home.md).
"""

import msgspec

from trotline.model.answer import Answer
from trotline.model.outcome import Bury, Snooze
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds

SEPARATOR = "\x1f"
PATIENCE: Seconds = 60.0
"""How long a task is snoozed until its own process takes it; then it is buried."""
_AGAIN: Seconds = 0.5


def name_of(session: str) -> str:
    """The session's name without the process."""
    return session.partition(SEPARATOR)[0]


def opened_by(task: Task, answer: Answer) -> bool:
    """Does this visit open or continue a session? Every task with a session does, and a POST whose response sets a
    cookie is a login, also without a name."""
    return bool(task.session) or (task.method == "POST" and _sets_cookie(answer))


def logs_in(task: Task, answer: Answer) -> bool:
    """Is this visit the login of a named session? Then all tasks of that name belong to this process."""
    return bool(name_of(task.session)) and task.method == "POST" and _sets_cookie(answer)


def has_home(task: Task) -> bool:
    """Does the task name the process of its session?"""
    return SEPARATOR in task.session


def bound(task: Task, home: str) -> Task:
    """The task, pinned to a session of the process `home`."""
    return msgspec.structs.replace(task, session=f"{name_of(task.session)}{SEPARATOR}{home}")


def continued(child: Task, parent: Task, home: str) -> Task:
    """The child pinned to the same process if it continues the session of its page.

    A session without a name continues on the same host only, as its cookies do.
    """
    if child.session != name_of(parent.session) or (not child.session and child.lane != parent.lane):
        return child
    return bound(child, home)


def elsewhere(task: Task, home: str, now: Moment) -> Snooze | Bury | None:
    """The outcome of a task whose session is in another process; None if it is in ours, or not opened yet."""
    name, *rest = task.session.split(SEPARATOR)
    if not rest or rest[0] == home:
        return None
    if len(rest) == 1:
        noted = msgspec.structs.replace(task, session=f"{task.session}{SEPARATOR}{now:.3f}")
        return Snooze(wait=_AGAIN, why="its session is in another process", task=noted)
    if now - float(rest[1]) < PATIENCE:
        return Snooze(wait=_AGAIN, why="its session is in another process")
    return Bury(
        why="session: the process that had logged in is gone",
        detail=f"session {name!r} was in the memory of one process. To log in again, start a new job with --fresh.",
    )


def _sets_cookie(answer: Answer) -> bool:
    return any(name == "set-cookie" for name, _ in answer.headers)
