"""Visits that robots.txt does not allow, or not yet."""

from random import Random

from trotline.model.lease import LaneFeedback, Lease
from trotline.model.outcome import Done, Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.verdict import Kind, Verdict
from trotline.ports.robots import Permission
from trotline.rules import proxy_judgement, retries
from trotline.worker.finished_visit import FinishedVisit, Request


def not_allowed(lease: Lease, permission: Permission, chance: Random) -> FinishedVisit:
    if permission.ask_again:
        return _unreadable(lease, permission, chance)
    why = f"refused: {permission.why or 'robots.txt'}"
    feedback = LaneFeedback(Kind.REFUSED, interval=permission.delay, robots=True)
    return FinishedVisit(
        lease=lease, outcome=Done(why=why), feedback=feedback, request=Request(verdict=Kind.REFUSED.value)
    )


def _unreadable(lease: Lease, permission: Permission, chance: Random) -> FinishedVisit:
    """robots.txt cannot be fetched: as if the host were unreachable, so it costs an attempt and ends some time. If
    robots.txt was rate limited, the lane rests, as if the page had been."""
    why = permission.why or "robots.txt: cannot be read"
    if permission.way_failed:
        # Through a pool, the next visit has another proxy.
        again = proxy_judgement.AGAIN if lease.member else permission.ask_again
        wait = again * (1.0 + chance.random())
        return FinishedVisit(lease=lease, outcome=Snooze(wait=wait, why=why), member=MemberResult.FAULT)
    kind = Kind.THROTTLED if permission.throttled else Kind.UNREACHABLE
    outcome = retries.plan(lease.task, Verdict(kind, why, retry_after=permission.ask_again), chance)
    rest = permission.ask_again if permission.throttled else 0.0
    return FinishedVisit(lease=lease, outcome=outcome, feedback=LaneFeedback(kind=kind, rest=rest))
