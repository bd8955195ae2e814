"""Visits with an account: its session is read from the frontier, used by one visit, and saved for the next holder.

docs/decisions/096-accounts-are-pool-members.md
"""

import asyncio
import logging
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

import msgspec

from trotline.errors import FrontierError
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.account import Account, Session
from trotline.model.answer import Answer, Failure
from trotline.model.lease import Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Retry, Snooze
from trotline.model.proxy import ApiGateway, Way
from trotline.model.proxy_pool import NO_PROXY, MemberResult
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.ports import send_deadline
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules import account_sessions, proxy_judgement
from trotline.rules.urls import Address, read
from trotline.spider.handler_failed import HandlerFailed, is_interrupt
from trotline.spider.login_session import LoginSession, LoginUnanswered, result_of
from trotline.spider.page import Page
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker.async_handlers import in_time
from trotline.worker.dependencies import WorkerParts
from trotline.worker.finished_visit import FinishedVisit, failed_visit

log = logging.getLogger("trotline.accounts")

CONFIRMED_FOR: Seconds = 5.0
"""A login takes several requests: before each one the lease is confirmed, unless it was that long ago."""
_LANES = 10_000
_ENDED_FOR = 2
"""Accounts for which a page says "logged out" before it is charged itself."""
LOST = "its account is held by another worker"
_MISSING = "its account has no proxy at the moment"

Step = Callable[[], None]


class _LeaseLost(Exception):
    """Another worker may have the account: nothing may be sent any more."""


class AccountVisit:
    """One lease of an account."""

    def __init__(self, lease: Lease, account: Account, session: Session, way: Way | None, asked_at: Seconds) -> None:
        self.lease = lease
        self.account = account
        self.session = session
        """As it was stored; `new_session` replaces it when the visit is over."""
        self.kept = session
        """The same, with the proxy of this visit."""
        self.new_session: Session | None = None
        self.rests = False
        """Its login was rejected: no other proxy is tried first, as sites lock accounts after a few wrong passwords."""
        self.way = way
        self.confirmed_at = asked_at
        """When the frontier was asked last whether the lease is held, by `send_deadline.clock`."""

    @property
    def jar(self) -> str:
        """The cookie jar of the account in this process."""
        return self.account.full_name


class Accounts:
    """The accounts of a worker."""

    def __init__(self, spider: Spider, parts: WorkerParts, worker: str) -> None:
        self._spider = spider
        self._limits = spider.limits or Limits()
        self._parts = parts
        self._worker = worker
        self._outage = OutageLog(log)
        self._next_login: dict[str, Seconds] = {}
        """Lane -> when the next request of a login may start."""

    async def open(self, lease: Lease) -> AccountVisit | FinishedVisit:
        """The visit with its session; finished if it cannot begin."""
        ways = self._parts.ways
        account = None if ways is None else ways.account(lease.task.lane, lease.member)
        if ways is None or account is None:
            return _given_back(lease, "account is unknown to this worker", wait=1.0)
        if account.user and account.pool not in self._spider.logins:
            # A task has named the pool; pools of the spider and its routes are checked when it is loaded.
            return FinishedVisit(lease=lease, outcome=Bury(why=f"handler: no login for {account.pool}"))
        asked_at = send_deadline.clock()
        try:
            state = await self._parts.frontier.read_session(self._worker, lease)
        except FrontierError as error:
            self._outage.report(error.what)
            return _given_back(lease, "the session of its account cannot be read", wait=1.0)
        self._outage.report("")
        if state is None:
            return _given_back(lease, LOST)
        session = account_sessions.decoded(state, account.fingerprint)
        way = None
        if proxy := ways.proxy_id(account, session.moves, session.proxy):
            way = ways.proxy_of(account, session.moves, proxy)
        if account.proxies != NO_PROXY and (way is None or isinstance(way, ApiGateway)):
            return _given_back(lease, _MISSING, wait=5.0)
        visit = AccountVisit(lease, account, session, way, asked_at)
        # It is kept when the session is saved: a proxy that is added or removed moves no other account.
        visit.kept = msgspec.structs.replace(session, proxy=proxy)
        self._parts.fetcher.restore_cookies(visit.jar, session.cookies)
        return visit

    def must_log_in(self, visit: AccountVisit) -> bool:
        return not visit.session.logged_in and visit.account.pool in self._spider.logins

    async def log_in(self, visit: AccountVisit, begin: Step, end: Step) -> FinishedVisit:
        """Run the spider's login handler. Its task is given back: the next visit of the account finds it logged in."""
        return await self.close(visit, await self._logged_in(visit, begin, end))

    async def _logged_in(self, visit: AccountVisit, begin: Step, end: Step) -> FinishedVisit:
        lease, handler = visit.lease, self._spider.logins[visit.account.pool]
        login = LoginSession(
            visit.account,
            lambda task: self.fetch(visit, task),
            limits=self._limits,
            now=lease.leased_at,
            ready=lambda: self._ready(visit),
        )
        try:
            why = await in_time(result_of(handler, login), self._limits.handler, begin, end)
        except LoginUnanswered as unanswered:
            return self._unanswered(visit, unanswered.verdict)
        except _LeaseLost:
            return _given_back(lease, LOST)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            if is_interrupt(error):
                raise
            failed = error if isinstance(error, HandlerFailed) else HandlerFailed.of(error, handler)
            return self._rejected(visit, f"login failed: {failed.group}", failed.traceback_text or str(failed))
        if why:
            return self._rejected(visit, f"login rejected: {why}" + (f" ({login.last})" if login.last else ""))
        cookies = self._parts.fetcher.cookies(visit.jar)
        visit.new_session = account_sessions.logged_in(visit.kept, cookies, lease.leased_at)
        log.info("account.logged-in %s", visit.jar)
        return _given_back(lease, "logged in")

    async def fetch(self, visit: AccountVisit, task: Task) -> Answer | Failure:
        """With the account's cookies, through its proxy; not sent if another worker may have the account by now."""
        with send_deadline.sending_until(visit.confirmed_at + DEAD_AFTER):
            return await self._parts.fetcher.fetch(msgspec.structs.replace(task, session=visit.jar), visit.way)

    def logged_out(self, visit: AccountVisit, route: Route | None, answer: Answer | Failure, verdict: Verdict) -> str:
        """Why the answer means that the session has ended; empty if it does not. HandlerFailed: the author's check
        raised."""
        if isinstance(answer, Failure) or visit.account.pool not in self._spider.logins:
            return ""
        page = Page(visit.lease.task, answer, route, visit.account.name)
        if callable(self._spider.logged_out):
            # It decides alone, also about redirects.
            return self._spider.says_logged_out(page)
        if answer.status == 401:
            return "status 401"
        if verdict.kind is Kind.MOVED and account_sessions.leads_to_login(_path(answer, verdict)):
            return "redirected to a login page"
        return self._spider.says_logged_out(page)

    def ended(self, visit: AccountVisit, why: str) -> FinishedVisit:
        """The session has ended: the next visit logs in again. Without a page since the login, the account rests. If it
        is so again after a new login, the page is charged."""
        task, member = visit.lease.task, visit.lease.member
        if member in task.blocked_by or len(task.blocked_by) >= _ENDED_FOR:
            return FinishedVisit(lease=visit.lease, outcome=self._of_this_page(task, why))
        visit.new_session = account_sessions.logged_out(visit.kept)
        if account_sessions.did_not_last(visit.session, visit.lease.leased_at):
            return self._rejected(visit, f"login does not last: {why}")
        log.info("account.logged-out %s: %s", visit.jar, why)
        again = _before_redirects(task, f"logged out: {why}")
        if isinstance(again, Snooze):
            noted = msgspec.structs.replace(again.task or task, blocked_by=(*task.blocked_by, member))
            again = Snooze(wait=again.wait, why=again.why, task=noted)
        return FinishedVisit(lease=visit.lease, outcome=again)

    def _of_this_page(self, task: Task, why: str) -> Retry | Bury:
        why = f"logged out: {why}"
        if task.attempt >= task.retries:
            return Bury(why=why, detail="again after a new login: only this page says so")
        return Retry(wait=proxy_judgement.AGAIN * (1.0 + self._parts.chance.random()), why=why)

    async def close(self, visit: AccountVisit, finished: FinishedVisit) -> FinishedVisit:
        """Save the session, before the settle frees the account."""
        if visit.new_session is not None:
            session = account_sessions.after_result(visit.new_session, finished.member)
        else:
            cookies = self._parts.fetcher.cookies(visit.jar)
            session = account_sessions.after_visit(visit.kept, cookies, finished.member)
        may_move = not visit.rests
        if may_move and account_sessions.may_be_the_proxy(visit.session, finished.member, visit.account.proxies):
            finished = msgspec.structs.replace(finished, member=MemberResult.UNCLEAR, feedback=None)
        if session == visit.session:
            return finished
        state, dropped = account_sessions.encoded(session)
        if dropped:
            log.warning("account.cookies %s: %d old cookies are dropped, a session has 16 KB", visit.jar, dropped)
        held = await until_reachable(
            lambda: self._parts.frontier.save_session(self._worker, visit.lease, state), self._outage.report
        )
        return finished if held else _given_back(visit.lease, LOST)

    async def _ready(self, visit: AccountVisit) -> None:
        """Before each request of a login: wait for its turn. All logins of this process share the pace of the lane."""
        lane = visit.lease.task.lane
        clock = asyncio.get_running_loop().time
        if len(self._next_login) > _LANES:
            self._next_login.clear()
        start = max(clock(), self._next_login.get(lane, 0.0))
        self._next_login[lane] = start + self._spider.rules.pace(lane).rate.interval
        await asyncio.sleep(start - clock())
        await self._confirm(visit)

    async def _confirm(self, visit: AccountVisit) -> None:
        now = send_deadline.clock()
        if now < visit.confirmed_at + CONFIRMED_FOR:
            return
        held = await until_reachable(
            lambda: self._parts.frontier.read_session(self._worker, visit.lease), self._outage.report
        )
        if held is None:
            raise _LeaseLost
        visit.confirmed_at = now

    def _unanswered(self, visit: AccountVisit, verdict: Verdict) -> FinishedVisit:
        """A request of the login has failed: never a reason to bury the page, which was not fetched."""
        verdict = msgspec.structs.replace(verdict, why=f"login: {verdict.why}")
        if verdict.final or verdict.kind in (Kind.REFUSED, Kind.GONE):
            return self._rejected(visit, f"login failed: {verdict.why.removeprefix('login: ')}")
        finished = failed_visit(visit.lease, verdict, None, self._parts.chance)
        if finished.member is MemberResult.UNUSED:
            finished = msgspec.structs.replace(finished, member=proxy_judgement.member_result(verdict))
        return finished

    def _rejected(self, visit: AccountVisit, why: str, detail: str = "") -> FinishedVisit:
        """The account rests, as after a ban."""
        visit.rests = True
        log.warning("account.rejected %s: %s%s", visit.jar, why, f"\n{detail}" if detail else "")
        wait = proxy_judgement.AGAIN * (1.0 + self._parts.chance.random())
        outcome = _before_redirects(visit.lease.task, why, wait)
        finished = FinishedVisit(lease=visit.lease, outcome=outcome, member=MemberResult.BLOCKED, login_rejected=True)
        visit.new_session = visit.new_session or account_sessions.logged_out(visit.kept)
        return finished


def _given_back(lease: Lease, why: str, wait: Seconds = 0.0) -> FinishedVisit:
    return FinishedVisit(lease=lease, outcome=Snooze(wait=wait, why=why))


def _before_redirects(task: Task, why: str, wait: Seconds = 0.0) -> Snooze | Bury:
    """The page is visited again when its account is logged in: from the URL before its redirects."""
    if not task.hops:
        return Snooze(wait=wait, why=why)
    address = read(task.first_url) if task.first_url else None
    if not isinstance(address, Address):
        return Bury(why="session: logged out after a redirect", detail=f"{why}. A form is not sent again by itself.")
    return Snooze(wait=wait, why=why, task=account_sessions.before_redirects(task, address.lane))


def is_too_late(answer: Answer | Failure) -> bool:
    return isinstance(answer, Failure) and answer.why == send_deadline.TOO_LATE


def _path(answer: Answer, verdict: Verdict) -> str:
    try:
        return urlsplit(urljoin(answer.url, verdict.location)).path
    except ValueError:
        return ""
