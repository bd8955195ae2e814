"""A downloader middleware that logs in the account of a request, before anything is sent for its page."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future

from trotline.bridges.scrapy.held_account import CONFIRMED_FOR, LOST, HeldAccount
from trotline.bridges.scrapy.pool_middlewares import OfVisits
from trotline.bridges.scrapy.request_codec import LOGIN
from trotline.bridges.scrapy.visits import Visit
from trotline.bridges.scrapy.way_out import failure_of, verdict_of_failure, verdict_of_response
from trotline.model.lease import Lease
from trotline.model.outcome import Outcome, Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.time import Seconds
from trotline.model.verdict import Verdict
from trotline.rules import proxy_judgement, redaction
from trotline.rules.account_sessions import NOT_OF_THE_ACCOUNT

log = logging.getLogger("trotline.accounts")

METHOD = "trotline_login"
"""Of the spider: `async def trotline_login(self, account, download)`. It returns why the login was rejected; empty,
None or True: it is logged in."""
BEFORE_ROBOTS = 50
"""Its place: before RobotsTxtMiddleware (100)."""
_LATER: Seconds = 5.0
_LONGEST = 200


class _Unanswered(Exception):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.why)
        self.verdict = verdict


class _LeaseLost(Exception):
    pass


class LogIn(OfVisits):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.confirm: Callable[[Lease], Awaitable[bool]] | None = None
        """Is the lease still held?"""
        self.cookies: Any = None
        """The cookies of a held account, as they are stored."""

    async def process_request(self, request: Request, spider: Any = None) -> Request | None:
        visit = self.visits.get(request)
        held = visit.way.account if visit is not None and visit.way is not None else None
        method = getattr(self._crawler.spider, METHOD, None)
        if visit is None or visit.way is None or held is None or held.session.logged_in or method is None:
            return None
        visit.way.outcome = await self._log_in(visit, held, method)
        # Not sent: it goes back to the frontier.
        return request.copy()

    async def _log_in(self, visit: Visit, held: HeldAccount, method: Any) -> Outcome:
        way = visit.way
        assert way is not None  # noqa: S101 - for the type checker
        try:
            said = await method(held.account, lambda request: self._download(request, visit, held))
        except _LeaseLost:
            return Snooze(0.0, LOST)
        except _Unanswered as error:
            # The page was not asked for: it pays nothing, and neither does the account.
            way.used, way.member = True, proxy_judgement.member_result(error.verdict)
            return Snooze(_LATER * (1.0 + self.chance.random()), f"login: {error.verdict.kind}: {error.verdict.why}")
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said is None or said is True or said == "":
            log.info("account.logged-in %s", held.jar)
            return held.logged_in(self.cookies(held))
        why = redaction.text(f"login rejected: {said or 'no reason given'}", about=visit.lease.task)[:_LONGEST]
        log.warning("account.rejected %s: %s", held.jar, why)
        way.used, way.member = True, MemberResult.BLOCKED
        return held.rejected(why, self.chance)

    async def _download(self, request: Request, visit: Visit, held: HeldAccount) -> Response:
        await self._confirmed(visit, held)
        request.meta.update({"cookiejar": held.jar, LOGIN: visit.lease.token, "dont_obey_robotstxt": True})
        engine = cast(Any, self._crawler.engine)
        try:
            if hasattr(engine, "download_async"):
                response = await engine.download_async(request)
            else:
                response = await maybe_deferred_to_future(engine.download(request))
        except Exception as error:
            found = failure_of(error)
            if found is None:
                raise
            raise _Unanswered(verdict_of_failure(visit.lease.task, *found)) from error
        verdict = verdict_of_response(request, response, visit.lease.task, wanted=False, now=time.time())
        if verdict.kind in NOT_OF_THE_ACCOUNT:
            raise _Unanswered(verdict)
        return cast(Response, response)

    async def _confirmed(self, visit: Visit, held: HeldAccount) -> None:
        now = time.monotonic()
        if now < held.asked_at + CONFIRMED_FOR:
            return
        assert self.confirm is not None  # noqa: S101 - set when the spider opens
        if not await self.confirm(visit.lease):
            raise _LeaseLost
        held.asked_at = now
