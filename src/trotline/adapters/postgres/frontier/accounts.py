"""Accounts: members of a pool that one visit at a time has, over all lanes. (Being built.)"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.transaction import Turn


async def wake(turn: "Turn", pool: str, member: int, pace_id: int) -> bool:
    """Lanes of all jobs that wait for this account, which came back from a lane, are tried again. False: there are
    none."""
    raise NotImplementedError
