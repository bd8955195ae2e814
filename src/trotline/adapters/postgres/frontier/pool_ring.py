"""The members of a proxy pool in one lane, in one transaction. (Being built.)"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from trotline.adapters.postgres.pool import Connection
from trotline.model.proxy_pool import MemberResult
from trotline.model.time import Moment, Seconds
from trotline.rules.proxy_ring import LaneRing


class Sent(NamedTuple):
    """A member that goes out."""

    member: int
    start: Moment


class PoolRing:
    """The ring of one lane."""

    state: LaneRing
    returned: bool
    freed: list[int]
    waits: bool

    @classmethod
    async def open(cls, db: Connection, pace_id: int, pool: str, now: Moment, only: int = 0) -> Self:
        raise NotImplementedError

    def want_gap(self, gap: Seconds) -> None:
        raise NotImplementedError

    async def send(self, starts: list[Moment], interval: Seconds, chance: Callable[[], float]) -> list[Sent]:
        raise NotImplementedError

    async def free_at(self) -> Moment:
        raise NotImplementedError

    async def give_back(
        self, member: int, result: MemberResult, *, retry_after: Seconds = 0.0, chance: float = 0.0
    ) -> None:
        raise NotImplementedError

    async def rest(self, member: int) -> None:
        raise NotImplementedError

    async def lift(self, members: Iterable[int]) -> None:
        raise NotImplementedError

    async def flush(self) -> None:
        raise NotImplementedError
