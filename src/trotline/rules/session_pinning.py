"""A session lives in the process that opened it: its cookies are in that process's memory, and nowhere else.

A task that goes on with a session says whose it is: `anna`, a separator, and the process. Any other process would ask
for the page as a stranger, and store what strangers are shown (docs/decisions/072-sessions-stay-at-home.md).
"""

import msgspec

from trotline.model.answer import Answer
from trotline.model.outcome import Bury, Snooze
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds

SEPARATOR = "\x1f"
PATIENCE: Seconds = 60.0
"""So long a page is offered to others until its own process takes it."""
_AGAIN: Seconds = 0.5


def name_of(session: str) -> str:
    """The session as its author calls it."""
    return session.partition(SEPARATOR)[0]


def opened_by(task: Task, answer: Answer) -> bool:
    """Does this visit have a session of its own from now on? Every task with a session has; and a form whose answer
    sets a cookie is a login, also if nobody gave its session a name."""
    return bool(task.session) or (task.method == "POST" and _sets_cookie(answer))


def logs_in(task: Task, answer: Answer) -> bool:
    """Is a session with a name logged in to by this visit? Then all its pages are this process's, also those that
    pages outside of it lead to."""
    return bool(name_of(task.session)) and task.method == "POST" and _sets_cookie(answer)


def has_home(task: Task) -> bool:
    """Does the task itself say in which process its session is?"""
    return SEPARATOR in task.session


def bound(task: Task, home: str) -> Task:
    """The task, going on with a session of the process `home`."""
    return msgspec.structs.replace(task, session=f"{name_of(task.session)}{SEPARATOR}{home}")


def continued(child: Task, parent: Task, home: str) -> Task:
    """Does the child of a page with a session go on with it? Then it belongs to the same process; else it opens its
    own.

    Whoever logged in without a name goes on on the same host: that is how far the cookies go.
    """
    if child.session != name_of(parent.session) or (not child.session and child.lane != parent.lane):
        return child
    return bound(child, home)


def elsewhere(task: Task, home: str, now: Moment) -> Snooze | Bury | None:
    """What becomes of a task whose session is another process's; None if it is ours, or has no session yet."""
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
        detail=f"session {name!r} lives in the memory of one process. Log in again: start anew with --fresh.",
    )


def _sets_cookie(answer: Answer) -> bool:
    return any(name == "set-cookie" for name, _ in answer.headers)
