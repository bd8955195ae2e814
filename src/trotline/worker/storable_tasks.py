"""Checks that values of new tasks can be stored: here only their page fails, in the committer the whole batch would."""

from trotline.model import task_json
from trotline.model.harvest import Harvest
from trotline.model.task import Task
from trotline.rules import task_checks
from trotline.rules.task_checks import InvalidValue


def checked(tasks: list[Task], drafts: int) -> list[Task]:
    """With plain values; InvalidValue if one cannot be stored. Those behind the first `drafts` are links that were
    followed. Links of one Follow share its values, and the gate makes the rest of them: the first is checked for all.
    """
    plain: list[Task] = []
    last: Task | None = None
    for number, task in enumerate(tasks):
        if number < drafts or last is None or not _share_values(task, last):
            last = _checked(task)
            plain.append(last)
        else:
            plain.append(task)
    return plain


def invalid_value(got: Harvest, error: Exception) -> InvalidValue | None:
    """The invalid value of the handler that caused this error; None if the handler did not."""
    if isinstance(error, InvalidValue):
        return error
    try:
        for task in got.tasks:
            if task_checks.task(task) is not task:
                return InvalidValue(
                    f"a task for {task_checks.shown(task.url)} has values of classes of its own; give plain ones"
                )
        for follow in got.follows:
            task_checks.links(follow)
    except InvalidValue as invalid:
        return invalid
    return None


def _share_values(one: Task, other: Task) -> bool:
    return (
        one.meta is other.meta
        and one.route is other.route
        and one.priority is other.priority
        and one.chain is other.chain
        and one.pool is other.pool
    )


def _checked(task: Task) -> Task:
    plain = task_checks.task(task)
    try:
        task_json.encode(plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"a task for {plain.url} cannot be serialized: {task_checks.said(error)}") from error
    return plain
