"""`trotline try` with a named account: a login of its own, outside of the fleet."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from trotline.errors import SettingsError
from trotline.model.account import Account, StoredCookie
from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits
from trotline.model.proxy import Way
from trotline.model.task import Task
from trotline.ports.fetcher import Fetcher
from trotline.spider.handler_failed import HandlerFailed, is_interrupt
from trotline.spider.login_session import LoginSession, LoginUnanswered, result_of
from trotline.spider.spider import Spider
from trotline.worker.async_handlers import in_time


class AccountFetcher:
    """Fetches with the cookies and the proxy of one account."""

    def __init__(self, fetcher: Fetcher, account: Account, way: Way | None) -> None:
        self._fetcher = fetcher
        self._jar = account.full_name
        self._way = way
        fetcher.restore_cookies(self._jar, ())

    async def fetch(self, task: Task, way: Way | None = None) -> Answer | Failure:
        return await self._fetcher.fetch(msgspec.structs.replace(task, session=self._jar), self._way)

    async def fetch_start(self, task: Task, most: int, way: Way | None = None) -> Answer | Failure:
        return await self._fetcher.fetch_start(task, most, self._way)

    def restore_cookies(self, session: str, cookies: Sequence[StoredCookie]) -> None:
        self._fetcher.restore_cookies(session, cookies)

    def cookies(self, session: str) -> tuple[StoredCookie, ...]:
        return self._fetcher.cookies(session)

    async def close(self) -> None:
        await self._fetcher.close()


async def log_in(spider: Spider, account: Account, fetcher: AccountFetcher) -> None:
    """SettingsError if the login handler does not log in; nothing happens if the pool has none."""
    handler = spider.logins.get(account.pool)
    if handler is None:
        return
    limits = spider.limits or Limits()
    session = LoginSession(account, fetcher.fetch, limits=limits, now=time.time(), ready=_waiting(spider))
    try:
        why = await in_time(result_of(handler, session), limits.handler)
    except LoginUnanswered as unanswered:
        why = f"no answer: {unanswered.verdict.why}"
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if is_interrupt(error):
            raise
        failed = error if isinstance(error, HandlerFailed) else HandlerFailed.of(error, handler)
        raise SettingsError(
            f"the login of {account.full_name} failed: {failed}", hint="Mend the login handler."
        ) from error
    if why:
        raise SettingsError(
            f"the login of {account.full_name} was not accepted: {why}",
            hint="Check its user and password in the proxies file, and what the login handler returns.",
        )


def _waiting(spider: Spider) -> Callable[[], Awaitable[None]]:
    """Keeps the pace of the spider. No frontier is asked: no other worker can take the account away."""
    begun = False

    async def wait() -> None:
        nonlocal begun
        if begun:
            await asyncio.sleep(spider.rules.default.rate.interval)
        begun = True

    return wait
