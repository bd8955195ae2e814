"""Accounts: members of a pool that one visit at a time has, over all lanes. (Being built.)"""

from typing import TYPE_CHECKING

from trotline.adapters.postgres.pool import Connection
from trotline.model.lease import Lease

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.transaction import Turn


async def wake(turn: "Turn", pool: str, member: int, pace_id: int) -> bool:
    """Lanes of all jobs that wait for this account, which came back from a lane, are tried again. False: there are
    none."""
    raise NotImplementedError


async def read_session(db: Connection, job: int, worker: str, lease: Lease) -> bytes | None:
    """None: the worker does not have this lease."""
    raise NotImplementedError


async def save_session(db: Connection, job: int, worker: str, lease: Lease, state: bytes) -> bool:
    """False: the worker does not have this lease. An account that was removed from its pool meanwhile has no state."""
    raise NotImplementedError
