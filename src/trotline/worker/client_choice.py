"""`Spider(when_blocked="browser")`: a page that is blocked for the default client is tried once with the browser-like
one."""

import random

import msgspec

from trotline.model.client_kind import Client
from trotline.model.lease import Lease
from trotline.model.outcome import Snooze
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict

ESCALATE_AFTER = 3
"""So many pages of a lane in a row that only the browser-like client gets: it is used at once from then on."""
AGAIN: Seconds = 1.0
"""A blocked page is tried again after this, and up to twice as long."""
_LANES = 10_000


class ClientChoice:
    """Of one worker process. The choice for a page is in its task; what is learned of a lane is kept here."""

    def __init__(self) -> None:
        self._passed: dict[str, int] = {}
        """Lane -> pages in a row that were blocked for the default client only."""

    def chosen(self, lease: Lease) -> Lease:
        """The lease with the client of its lane."""
        task = lease.task
        if task.client or self._passed.get(task.lane, 0) < ESCALATE_AFTER:
            return lease
        return msgspec.structs.replace(lease, task=msgspec.structs.replace(task, client=Client.BROWSER))

    def again(self, lease: Lease, verdict: Verdict, chance: random.Random) -> Snooze | None:
        """What becomes of a blocked page; None: as without this setting. No attempt is counted, as it happens once."""
        task = lease.task
        if verdict.kind is not Kind.BLOCKED:
            return None
        if task.client:
            # Blocked for both.
            self._passed.pop(task.lane, None)
        if task.client or verdict.final:
            return None
        wait = max(AGAIN * (1.0 + chance.random()), verdict.retry_after or 0.0)
        why = f"{verdict.kind}: {verdict.why}; next with the browser-like client"
        return Snooze(wait=wait, why=why, task=msgspec.structs.replace(task, client=Client.BROWSER))

    def passed(self, lease: Lease) -> None:
        """A page was read."""
        lane = lease.task.lane
        if not lease.task.client:
            self._passed.pop(lane, None)
            return
        if len(self._passed) >= _LANES:
            self._passed.clear()
        self._passed[lane] = self._passed.get(lane, 0) + 1
