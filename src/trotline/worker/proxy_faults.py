"""Why proxies failed lately: the frontier only counts their faults, and an operator has to know what to mend."""

from trotline.model.outcome import Bury, Retry, Snooze
from trotline.model.proxy_pool import MemberResult, hex_id
from trotline.rules import redaction
from trotline.worker.finished_visit import FinishedVisit

MOST = 20
"""Members that are remembered: they are sent with each heartbeat."""
LONGEST = 120
"""Characters of a reason."""


class ProxyFaults:
    """Of one worker process."""

    def __init__(self) -> None:
        self._why: dict[int, str] = {}

    def settled(self, visit: FinishedVisit) -> None:
        member = visit.lease.member
        if visit.member is MemberResult.GOOD:
            self._why.pop(member, None)
        elif visit.member is MemberResult.FAULT and isinstance(visit.outcome, Retry | Snooze | Bury):
            self._why.pop(member, None)
            self._why[member] = redaction.text(visit.outcome.why)[:LONGEST]
            if len(self._why) > MOST:
                del self._why[next(iter(self._why))]

    def newest(self) -> dict[str, str]:
        return {hex_id(member): why for member, why in self._why.items()}
