"""The frontier: every task of a job, and the decision which may run next and when."""

from collections.abc import Collection, Sequence
from typing import Protocol

from trotline.model.job import WorkerInfo
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.task import Task
from trotline.model.time import Seconds

BEAT: Seconds = 5.0
"""The interval of heartbeats."""
DEAD_AFTER: Seconds = 15.0
"""A worker silent for this long is dead; what it held is rescued."""
HORIZON: Seconds = 1.0
"""A lease's start moment is at most this far ahead."""
KILLS = 2
"""Worker crashes that a page may cause before it is buried."""
DEATHS = 10
"""Dead workers a task may have been with, guilty or not, before it is buried."""
DIRECT = ("",)
"""The worker serves no proxy pool."""
HIGH_WATER = 1_000_000
"""Waiting tasks above which no more are fed, and the last come are served first: a frontier in memory is finite."""


class Frontier(Protocol):
    """One job's frontier, as workers and seeders see it. Time inside is the server's.

    F1   putting a task twice admits it once; the second answer is "duplicate"
    F2   a task answered "new" can be leased even if the caller dies on the next line
    F3   a waiting task is under at most one live lease, however many workers ask at once
    F4   nothing is leased before its due time; sooner priority first, across lanes that may run now;
         first come first served within a priority of a lane (last come, in a frontier that keeps what waits in memory,
         while more waits than its high water)
    F5   a dead worker's tasks can be leased again within 20 s, with one more attempt counted;
         a stopped worker's within 1 s, with none
    F6   settling with a stale token is refused and changes nothing
    F7   a done task never comes back; putting it again stays "duplicate" until forgotten
    F8   a snooze costs no attempt; a retry costs one
    F9   a buried task keeps its reason, and reviving gives it a fresh start
    F10  waiting + leased + done + dead = admitted, at every moment a caller can look
    F11  leasing waits up to the asked time and returns early when work arrives
    F12  pausing a lane or a job stops leases within 1 s, never puts
    F13  over any window, a lane's starts <= rate x window + burst, over all jobs of the frontier, whatever the number
         of workers, through crashes, and whatever their clocks say (burst: 1 + rate x START_SLACK); the slowest pace in
         force wins, unless the operator says otherwise; jobs that share a lane take turns
    F14  "finished" is announced exactly once, when waiting + leased = 0, and never early
    F15  lanes do not starve each other: one lane with a million tasks does not delay another lane's first task
    F16  while most visits of a lane fail, its retries are capped as a share of its traffic; a lane that only fails
         rests with growing pauses and probes; one that answers again is held up by nothing
    F17  a lease that its worker does not know of goes back when the worker says what it holds: a server that lost its
         last second, or its primary, blocks no task for ever
    F18  of a job that heeds robots.txt, a lane has one visit at a time until a visit reports that it is known; so
         its Crawl-delay holds from the first start
    F19  throttling (429, Retry-After) is a state of the lane, not a failure of the page: the lane rests, one probe goes
         out when the rest is over, and its tasks come back as they were
    F20  of a job with a budget no more pages end than it allows: what is leased is reserved. Where a job is kept in
         several parts, those that are leased at the same moment are on top. A budget that is spent is the end for
         workers, and the job stays unfinished
    F21  of a job with a queue per route (`LaneRules.queues`) a worker that names routes gets tasks of these only,
         however many of other routes wait before them; those are left to other workers, and nothing of F13 changes.
         Within a priority of a lane, F4 holds for each route by itself

    Chains (`Task.chain`):

    C1   of a chain one step is leased at a time, in the order in which the steps were admitted: a step can be leased
         only when the one before it is done. Chains do not wait for each other, nor tasks without one for a chain
    C2   a done step releases the next one in the same atomic step; its children that name the chain join its end
    C3   a step that comes back (retry, snooze, redirect, rescue, a worker that leaves) keeps its place
    C4   a buried step ends its chain: the steps behind it are buried with a reason that names it
         (`rules.chain_failures`), and so are those that are admitted later
    C5   reviving the step, or one that was buried for it, revives all of them, in their order
    C6   steps that wait for another one are counted as waiting, and `whereabouts` says what they wait for
    C7   a chain may have steps in several lanes. A frontier in several parts may refuse that: with an error at `put`,
         and counted under "refused: chain over several shards" for children
    """

    @property
    def generation(self) -> int:
        """Counts reconnects; after one the server may have lost state (a replica took over), and what was concluded
        from earlier answers is invalid."""
        ...

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        """Admit what is new; answers in the order given. When it returns, what is "new" is durable."""
        ...

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        """Up to `limit` tasks that may start within HORIZON; waits up to `wait` if there are none.

        `pools`: only tasks that go out through these proxy pools ("": without one); see `ports.proxy_pools`.
        `routes`: only tasks of these routes (F21); None: of all. FrontierError: the job has no queue for one of them.

        Also rescues, now and then, what dead workers held: no worker depends on a coordinator for that.
        """
        ...

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        """End leases: admit children, apply the outcome, learn the lane's feedback; each settlement is atomic."""
        ...

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
        """The worker's heartbeat. Without one for DEAD_AFTER its leases go back, one attempt counted.

        `about` is shown to operators; the last one is kept.
        """
        ...

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        """The worker stops: all it holds goes back at once, no attempt counted. Returns how many leases that were.

        `guilty` is the token of the lease whose page crashed the worker: that task counts a kill,
        and is buried at the second, with `why` and `detail` in its grave.
        """
        ...

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        """The worker knows of these leases only: all others in its name go back, no attempt counted.

        Not to be called while a lease of the same worker is under way. Returns how many went back.
        """
        ...

    async def session_home(self, session: str, home: str = "") -> str:
        """Which process has logged in to this session of the job; empty if none has. `home` registers it."""
        ...

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        """The state of the lease's account (`ports.proxy_pools`, A5); empty: nothing was saved; None: the lease is no
        longer held."""
        ...

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        """Store the state of the lease's account for its next holder. Call it before `settle`, which frees the account.
        False: the lease is no longer held, and nothing was stored."""
        ...

    async def seal(self) -> None:
        """Seeding is over: from now on an empty frontier is a finished one."""
        ...

    async def finished(self) -> bool:
        """Is the job finished, cancelled, or its budget spent? The announcement (F14) is `announce_finish`."""
        ...

    async def announce_finish(self) -> bool:
        """True exactly once per finish, for the caller that reports it."""
        ...

    async def close(self) -> None: ...
