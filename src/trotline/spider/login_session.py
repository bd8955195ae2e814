"""The session that a login handler gets: requests with the cookies and the proxy of one account."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from trotline.model.account import Account
from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits
from trotline.model.secret import Secret
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.model.verdict import Kind, Verdict
from trotline.rules import redirects
from trotline.rules.account_sessions import NOT_OF_THE_ACCOUNT
from trotline.rules.urls import Address, read
from trotline.rules.verdicts import judge
from trotline.spider.page import Page
from trotline.spider.task_drafts import draft

ROUTE = "login"
MOST_REQUESTS = 30
HOPS = 10

Fetch = Callable[[Task], Awaitable[Answer | Failure]]


class LoginUnanswered(Exception):
    """A request of the login had no usable answer: not the account's fault."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.why)
        self.verdict = verdict


class LoginSession:
    """What a login handler gets. Cookies are kept, redirects are followed, the pace of the spider is kept."""

    def __init__(
        self,
        account: Account,
        fetch: Fetch,
        *,
        limits: Limits,
        now: Moment,
        ready: Callable[[], Awaitable[None]],
    ) -> None:
        self.name = account.name
        self.user = account.user
        self._account = account
        self._fetch = fetch
        self._limits = limits
        self._now = now
        self._ready = ready
        self._requests = 0
        self._led_to: set[str] = set()
        """Hosts to which a redirect has led, and which the handler has not named itself."""
        self.last = ""
        """The last answer, for messages."""

    @property
    def password(self) -> str:
        return self._account.password.reveal()

    def secret(self, name: str) -> str:
        """Another secret of the account, by its key in the file: `session.secret("totp")`."""
        found = self._account.secrets.get(name)
        if not isinstance(found, Secret):
            known = ", ".join(self._account.secrets) or "none"
            raise KeyError(f"account {self.name} has no secret {name!r}; it has: {known}")
        return found.reveal()

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Page:
        return await self._page(draft(url, ROUTE, {"headers": headers}))

    async def post(
        self,
        url: str,
        *,
        form: Mapping[str, Any] | None = None,
        json: Any = None,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Send a form, JSON or a body; the page is the one at the end of the redirects."""
        return await self._page(
            draft(url, ROUTE, {"method": "POST", "form": form, "json": json, "body": body, "headers": headers})
        )

    async def _page(self, task: Task) -> Page:
        host = urlsplit(task.url).netloc
        if task.body and host in self._led_to:
            raise ValueError(
                f"the login would be sent to {host}, to which a redirect has led; if that is right, write the URL of"
                " the form into the handler"
            )
        for _ in range(HOPS + 1):
            address = read(task.url)
            if not isinstance(address, Address):
                raise ValueError(f"{task.url[:200]!r} cannot be fetched: {address.why}")
            task = msgspec.structs.replace(task, url=address.url, lane=address.lane)
            answer = await self._send(task)
            location = next((value for name, value in answer.headers if name == "location"), "")
            if not (300 <= answer.status < 400 and location):
                return Page(task, answer)
            target = read(urljoin(address.url, location))
            if not isinstance(target, Address):
                raise ValueError(f"the login redirects to a URL that cannot be fetched: {target.why}")
            if task.body and answer.status in (307, 308) and not redirects.may_carry_body(task.url, target.url):
                raise ValueError(f"the login form would be sent to another site, {urlsplit(target.url).netloc}")
            if urlsplit(target.url).netloc != host:
                self._led_to.add(urlsplit(target.url).netloc)
            task = redirects.moved(task, answer.status, target.url, target.lane)
        raise ValueError(f"the login has more than {HOPS} redirects, the last one to {task.url[:200]}")

    async def _send(self, task: Task) -> Answer:
        self._requests += 1
        if self._requests > MOST_REQUESTS:
            raise ValueError(f"the login has sent {MOST_REQUESTS} requests; does it end?")
        await self._ready()
        answer = await self._fetch(task)
        verdict = judge(task, answer, limits=self._limits, now=self._now, wanted_statuses=())
        if isinstance(answer, Failure) or verdict.kind in NOT_OF_THE_ACCOUNT:
            raise LoginUnanswered(verdict)
        if verdict.kind is Kind.BLOCKED and task.method == "GET":
            # The form cannot be read: nothing was rejected yet. The answer to a form is for the handler.
            raise LoginUnanswered(verdict)
        self.last = f"last answer: {answer.status} of {task.method} {urlsplit(task.url).path[:100]}"
        return answer


async def result_of(handler: Callable[[LoginSession], Any], session: LoginSession) -> str:
    """Empty if the handler says that it is logged in, else why not."""
    said = handler(session)
    if inspect.isawaitable(said):
        said = await said
    if isinstance(said, str) and said:
        return said
    # Also None: a handler without `return` has not said that it is logged in.
    return "" if said else f"the login handler returned {said!r}"
