"""What a blocked or failed visit through a proxy counts against: the member of the pool, the page, or the site."""

import random

import msgspec

from trotline.model.outcome import Bury, Outcome, Retry, Snooze
from trotline.model.proxy_pool import MemberResult, is_account_pool
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict

BLOCKED_THROUGH = 4
"""A page that is blocked through so many members, while the lane answers others, is blocked itself."""
AGAIN: Seconds = 1.0
"""A page that was blocked goes out through another member after this, and up to twice as long."""

_RESULTS = {
    Kind.BLOCKED: MemberResult.BLOCKED,
    Kind.THROTTLED: MemberResult.THROTTLED,
    # A failure of the site, or of the proxy's exit.
    Kind.UNREACHABLE: MemberResult.UNCLEAR,
    Kind.REFUSED: MemberResult.UNUSED,
}


class BlockedPage(msgspec.Struct, frozen=True):
    """What becomes of a page that was blocked through a member of a pool."""

    outcome: Outcome
    lift: tuple[int, ...] = ()
    """Members that were banned for this page: it was not their fault."""


def member_result(verdict: Verdict) -> MemberResult:
    """What a visit's verdict means for its member."""
    if verdict.once:
        # An idle connection was closed.
        return MemberResult.UNUSED
    if verdict.of_proxy:
        return MemberResult.FAULT
    return _RESULTS.get(verdict.kind, MemberResult.GOOD)


def blocked(task: Task, member: int, why: str, chance: random.Random, *, site_blocked: bool) -> BlockedPage:
    """No attempt is counted: the next visit goes through another member. While the site blocks all members, nothing is
    counted for the page either. Blocked again through a member that has blocked it before: that costs an attempt, as a
    pool may have fewer members than it takes to bury the page."""
    why = f"{Kind.BLOCKED}: {why}" if why else str(Kind.BLOCKED)
    wait = AGAIN * (1.0 + chance.random())
    if site_blocked:
        return BlockedPage(Snooze(wait=wait, why=why))
    again = member in task.blocked_by
    members = (*(each for each in task.blocked_by if each != member), member)
    if len(members) >= BLOCKED_THROUGH:
        return BlockedPage(Bury(why=why, detail=f"through {len(members)} {_kind(task)}"), members)
    if again and task.attempt >= task.retries:
        return BlockedPage(Bury(why=why, detail=f"again and again, through {len(members)} {_kind(task)}"), members)
    if again:
        return BlockedPage(Retry(wait=wait, why=why))
    return BlockedPage(Snooze(wait=wait, why=why, task=msgspec.structs.replace(task, blocked_by=members)))


def _kind(task: Task) -> str:
    return "accounts" if is_account_pool(task.pool) else "proxies"
