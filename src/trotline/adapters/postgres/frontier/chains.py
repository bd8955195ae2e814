"""Chains: a step is queued when the one before it is done. (Being built.)"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from trotline.adapters.postgres.frontier.task_rows import Held, TaskRow
from trotline.model.time import Moment

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.transaction import Turn


async def lock(turn: "Turn", names: Collection[str]) -> None:
    """Before lanes are locked: no other transaction changes these chains."""
    raise NotImplementedError


async def admit(turn: "Turn", steps: Sequence[tuple[TaskRow, Moment]]) -> None:
    """New steps with their due times, in the order of the call; their chains and lanes are locked. Each is queued
    (`turn.queue`), waits behind others (`turn.queue_chained`), or dies with its chain."""
    raise NotImplementedError


async def release_next(turn: "Turn", ended: Sequence[Held]) -> None:
    """These tasks of chains are done: queue the next steps."""
    raise NotImplementedError


async def bury_followers(turn: "Turn", task_id: int, chain: str, body: bytes, why: str) -> None:
    """A task was buried: if it is the head of a chain, bury the steps behind it."""
    raise NotImplementedError
