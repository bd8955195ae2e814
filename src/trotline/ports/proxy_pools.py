"""The proxy pools of a frontier, shared by all its jobs and workers."""

from collections.abc import Sequence
from typing import Protocol

from trotline.model.proxy_pool import DownMember, LanePoolView, MemberView, Pool, RegisteredPool


class ProxyPools(Protocol):
    """What a frontier promises for lanes with a pool, besides F1 to F21. Members are chosen in the step that reserves
    task and start (`Frontier.lease`), and given back with the result by `settle`, `leave`, `holds` and rescue.

    R1   every lease of a lane with a pool names a member of this pool; a lease without a pool names none
    R2   at most one live lease of a lane goes through a member, over all jobs and workers, through deaths and
         stale settles
    R3   two starts of a lane through one member are at least its interval apart: that of the pool, or the longest of
         the paces "per proxy" in force
    R4   after a ban no lease of the lane goes through the member until its quarantine is over (`PoolRules.rest`,
         doubled by each further ban); leases of other lanes do
    R5   while no member is free, nothing of the lane is leased and no attempt is counted; it is served as soon as the
         first one is back
    R6   a member that fails by itself three times in a row rests for all lanes; one good visit clears it
    R7   members with equal history get equal turns; `hold` visits in a row through one (0: as long as it works)
    R8   after `register`, a removed member gets no lease, and an added one gets its turns; an older version is ignored
    R9   over all lanes, a member's starts keep `member_interval` and its leases stay within `member_concurrency`
    R10  members blocked one after another without a good visit in between are a block by the site: the lane rests as
         after failures and probes through further members; when one is answered, a member banned in this time is
         tried, and if it is answered, too, the other quarantines of this time are lifted
    R11  a worker gets leases only of the pools that it asks for

    Account pools (`@NAME`; their members are accounts, `member_concurrency` is 1):

    A1   at most one live lease goes through an account, over all lanes, jobs and workers
    A2   a lane with an account in its name (`via @buyers/anna`) is visited through this account only; its workers ask
         for `@buyers`
    A3   an account that a silent worker held rests for `rest_of_dead`, for all lanes; one that was settled, or given
         back by `leave`, does not
    A4   of an account no more than `member_uses` visits start within a window; then it rests for all lanes
    A5   the state that `save_session` stored is read by the next holder, whatever its job and worker; without a live
         lease nothing is stored; removing the account from its pool deletes it
    A6   where a job is kept in several parts, all lanes of an account pool are in one part: A1 to A5 hold there, too

    Where a job is kept in several parts (shards), R6 counts failures in the lanes of one part, and of R9 each part has
    its share of the rate and of the concurrency: the sums hold, the spacing between two parts does not.
    """

    async def register(self, pool: Pool) -> bool:
        """Make this version of the pool the one in force; False: a newer one is."""
        ...

    async def pools(self) -> list[RegisteredPool]:
        """All pools that were registered, by name."""
        ...

    async def lanes(self, pool: str, only: Sequence[str] = ()) -> list[LanePoolView]:
        """Lanes that use the pool, those with members at rest first. `only`: these lanes, also those without a visit so
        far; a view of all costs time for every member of every lane."""
        ...

    async def members(self, pool: str, lane: str) -> list[MemberView]:
        """Members with a history in the lane."""
        ...

    async def down(self, pool: str) -> list[DownMember]:
        """Members that rest for all lanes."""
        ...

    async def release(self, pool: str, lane: str, member: int | None = None) -> int:
        """End quarantines of the lane: of one member, or of all. How many."""
        ...

    async def close(self) -> None: ...
