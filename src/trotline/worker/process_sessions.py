"""Sessions whose cookies are in the memory of one process (docs/decisions/072-sessions-stay-at-home.md)."""

import logging

from trotline.errors import FrontierError
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.lease import Lease
from trotline.model.outcome import Bury, Snooze
from trotline.rules import session_pinning
from trotline.worker.dependencies import WorkerParts

log = logging.getLogger("trotline.visit")


class ProcessSessions:
    """The sessions of this process."""

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts
        self.home = f"{parts.chance.getrandbits(64):x}"
        """Id of this process for session tasks: their cookies are here."""
        self._logins: set[str] = set()
        """Sessions that this process logged in to."""
        self._outage = OutageLog(log)

    async def elsewhere(self, lease: Lease) -> Snooze | Bury | None:
        """The outcome of a task whose session belongs to another process; None if it is ours."""
        task = lease.task
        if not session_pinning.has_home(task) and task.session not in self._logins:
            try:
                home = await self._parts.frontier.session_home(task.session)
            except FrontierError as error:
                self._outage.report(error.what)
                return Snooze(wait=1.0, why="the owner of its session is unknown")
            self._outage.report("")
            task = session_pinning.bound(task, home) if home else task
        return session_pinning.elsewhere(task, self.home, lease.leased_at)

    async def log_in(self, session: str) -> None:
        """Register this process as the owner of the session before the answer is used: from now on other processes
        leave its tasks alone. Retries while the frontier is unreachable."""
        self._logins.add(session)
        await until_reachable(
            lambda: self._parts.frontier.session_home(session, self.home),
            self._outage.report,
        )
