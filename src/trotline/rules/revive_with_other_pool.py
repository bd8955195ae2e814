"""Tasks that are revived with another proxy pool."""

import msgspec

from trotline.errors import FrontierError
from trotline.model.proxy_pool import NO_PROXY, is_account_pool, lane_of, without_pool
from trotline.model.task import Task
from trotline.rules import pool_names


def check(pool: str) -> None:
    """Raises FrontierError for a pool that revived tasks cannot go out through."""
    if is_account_pool(pool):
        raise FrontierError(
            f"{pool[:80]!r} is a pool of accounts: revived tasks are moved between proxy pools only",
            hint=f"Name a proxy pool, or {NO_PROXY!r} for direct connections.",
        )
    if not pool_names.NAME.fullmatch(pool):
        raise FrontierError(
            f"{pool[:80]!r} is not the name of a proxy pool",
            hint=f"Use letters, digits, - or _; {NO_PROXY!r} for direct connections.",
        )


def moved(task: Task, pool: str) -> Task:
    """The task with this pool. One of an account pool stays as it is: its pages depend on the account."""
    if is_account_pool(task.pool):
        return task
    lane = lane_of(without_pool(task.lane), pool)
    # Bans by members of its old pool say nothing about the new one.
    blocked_by = task.blocked_by if lane == task.lane else ()
    return msgspec.structs.replace(task, pool=pool, lane=lane, blocked_by=blocked_by)
