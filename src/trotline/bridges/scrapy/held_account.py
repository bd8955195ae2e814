"""An account that one visit has: its session, and what the visit means for it. docs/decisions/096."""

import random

import msgspec

from trotline.model.account import Account, Session, StoredCookie
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Bury, Outcome, Retry, Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.time import Seconds
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import account_sessions
from trotline.rules.proxy_judgement import AGAIN

LOST = "its account is held by another process"
CONFIRMED_FOR: Seconds = 5.0
"""A login takes several requests: before each one the lease is confirmed, unless it was that long ago."""
_ENDED_FOR = 2
"""Accounts for which a page says "logged out" before it is charged itself."""


class HeldAccount:
    """Used in Scrapy's thread only."""

    def __init__(self, lease: Lease, account: Account, session: Session, proxy: int, asked_at: Seconds) -> None:
        """`proxy`: the member of its proxy pool that it keeps."""
        self.account = account
        self.session = session
        """As it was stored."""
        self.asked_at = asked_at
        """When the frontier was asked last whether the lease is held, by the monotonic clock."""
        self._lease = lease
        self._kept = msgspec.structs.replace(session, proxy=proxy)
        self._new: Session | None = None
        self._rests = False

    @property
    def jar(self) -> str:
        """The cookie jar of the account in this process."""
        return self.account.full_name

    def too_late(self, now: Seconds) -> bool:
        """Another process may have the account by now: nothing may be sent."""
        return now > self.asked_at + DEAD_AFTER

    def logged_in(self, cookies: tuple[StoredCookie, ...]) -> Outcome:
        """The page goes back: the next visit of the account finds it logged in."""
        self._new = account_sessions.logged_in(self._kept, cookies, self._lease.leased_at)
        return Snooze(0.0, "logged in")

    def rejected(self, why: str, chance: random.Random) -> Outcome:
        """The account rests, as after a ban: sites lock accounts after a few wrong passwords."""
        self._rests = True
        self._new = self._new or account_sessions.logged_out(self._kept)
        return Snooze(AGAIN * (1.0 + chance.random()), why)

    def ended(self, why: str, most: int, chance: random.Random) -> tuple[Outcome, MemberResult]:
        """The page says "logged out": the next visit logs in again. If it says so for several accounts, the page is
        charged. `most`: retries of the project."""
        task, member = self._lease.task, self._lease.member
        if member in task.blocked_by or len(task.blocked_by) >= _ENDED_FOR:
            if task.attempt >= most:
                return Bury(
                    f"logged out: {why}", "again after a new login: only this page says so"
                ), MemberResult.UNUSED
            return Retry(AGAIN * (1.0 + chance.random()), f"logged out: {why}"), MemberResult.UNUSED
        self._new = account_sessions.logged_out(self._kept)
        if account_sessions.did_not_last(self.session, self._lease.leased_at):
            return self.rejected(f"login does not last: {why}", chance), MemberResult.BLOCKED
        noted = msgspec.structs.replace(task, blocked_by=(*task.blocked_by, member))
        return Snooze(0.0, f"logged out: {why}", noted), MemberResult.UNUSED

    def _of_this_page(self, why: str, most: int, chance: random.Random) -> Retry | Bury:
        if self._lease.task.attempt >= most:
            return Bury(why, "again after a new login: only this page says so")
        return Retry(AGAIN * (1.0 + chance.random()), why)

    def closed(self, settlement: Settlement, cookies: tuple[StoredCookie, ...]) -> tuple[Settlement, bytes | None]:
        """The settlement, and the session to be saved before it; None: it is as it was."""
        member = settlement.member
        if self._new is not None:
            session = account_sessions.after_result(self._new, member)
        else:
            session = account_sessions.after_visit(self._kept, cookies, member)
        if not self._rests and account_sessions.may_be_the_proxy(self.session, member, self.account.proxies):
            settlement = msgspec.structs.replace(settlement, member=MemberResult.UNCLEAR, news=None)
        if session == self.session:
            return settlement, None
        return settlement, account_sessions.encoded(session)[0]
