"""The way out of a leased request: a member of a proxy pool, and what its visit means for it."""

import random
import re

import msgspec
from scrapy import Request
from scrapy.http import Response

from trotline.bridges.scrapy.held_account import HeldAccount
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.lease import Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Outcome, Snooze
from trotline.model.proxy import Proxy
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.rules import proxy_judgement, retries
from trotline.rules.provider_errors import provider_error
from trotline.rules.verdicts import judge

_LIMITS = Limits()
_TUNNEL = re.compile(r"'status': (\d{3})")
_OF_THE_PROXY = frozenset((401, 402, 407, 429))
"""Refusals of a tunnel that say nothing about the target."""
_NOT_CONNECTED = frozenset(
    (
        "ConnectionRefusedError", "DownloadConnectionRefusedError", "DNSLookupError", "CannotResolveHostError",
        "ConnectError", "NoRouteError", "ConnectBindError", "TCPTimedOutError", "HostUnreachableError",
    )
)  # fmt: skip
"""Through a proxy, these are about the connection to the proxy."""
_TIMED_OUT = frozenset(("TimeoutError", "DownloadTimeoutError"))


class WayOut:
    """Of one visit. Used in Scrapy's thread only."""

    __slots__ = ("account", "lift", "member", "outcome", "proxy", "used")

    def __init__(self, proxy: Proxy | None, account: HeldAccount | None = None) -> None:
        self.proxy = proxy
        """None: an account without a proxy."""
        self.account = account
        self.used = False
        """A request was sent."""
        self.member = MemberResult.UNUSED
        self.lift: tuple[int, ...] = ()
        self.outcome: Outcome | None = None
        """The page goes out through another member: neither its callback nor Scrapy's retries see this visit."""

    def charge(self, lease: Lease, verdict: Verdict, most: int, chance: random.Random) -> bool:
        """What the verdict means for the member. True: the page is visited again, and `outcome` says when. False: the
        response or failure is the business of Scrapy. `most`: retries of the project."""
        self.member = proxy_judgement.member_result(verdict)
        found = self._again(lease, verdict, most, chance)
        if found is None or isinstance(found, Bury):
            return False
        self.outcome = found
        return True

    def _again(self, lease: Lease, verdict: Verdict, most: int, chance: random.Random) -> Outcome | None:
        task = lease.task
        if verdict.kind is Kind.BLOCKED and not verdict.final:
            self.member = MemberResult.BLOCKED
            bounded = msgspec.structs.replace(task, retries=most)
            page = proxy_judgement.blocked(
                bounded, lease.member, verdict.why, chance, site_blocked=lease.site_blocked
            )  # fmt: skip
            self.lift = page.lift
            return _of_own(page.outcome, task)
        if verdict.kind is Kind.THROTTLED:
            # Retry-After is for the member.
            return retries.plan(task, msgspec.structs.replace(verdict, retry_after=None), chance)
        if verdict.of_proxy and verdict.free:
            # The member rests; the page goes out through another one.
            return Snooze(proxy_judgement.AGAIN * (1.0 + chance.random()), f"{verdict.kind}: {verdict.why}")
        return None


def _of_own(outcome: Outcome, task: Task) -> Outcome:
    """With the retries that the task had."""
    if isinstance(outcome, Snooze) and outcome.task is not None:
        return Snooze(outcome.wait, outcome.why, msgspec.structs.replace(outcome.task, retries=task.retries))
    return outcome


def verdict_of_response(request: Request, response: Response, task: Task, *, wanted: bool, now: float) -> Verdict:
    """`wanted`: the spider handles this status."""
    if wanted or 300 <= response.status < 400:
        return Verdict(Kind.OK)
    headers = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, values in response.headers.items()
        for value in values
    )
    if request.url.startswith("http:") and response.status >= 400:
        said = provider_error(headers)
        if response.status == 407:
            said = FailureKind.PROXY, "authentication failed"
        if said is not None:
            return verdict_of_failure(task, said[0], f"{said[1]} ({response.status})")
    answer = Answer(url=response.url, status=response.status, headers=headers, body=response.body)
    return judge(task, answer, limits=_LIMITS, now=now, wanted_statuses=())


def verdict_of_failure(task: Task, kind: FailureKind, why: str) -> Verdict:
    return judge(task, Failure(url=task.url, trouble=kind, why=why), limits=_LIMITS, now=0.0)


def failure_of(error: BaseException) -> tuple[FailureKind, str] | None:
    """Whose failure an exception of a download through a proxy is; None: not one of the network."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if type(error).__name__ in _TIMED_OUT:
        # Asked first: in Twisted it is a failure to connect, too.
        return FailureKind.TIMEOUT, "timed out"
    if names & _NOT_CONNECTED:
        return FailureKind.PROXY, "no connection to the proxy"
    if "TunnelError" in names:
        return _tunnel(str(error))
    if names & {"ResponseFailed", "DownloadFailedError", "ConnectionLost", "ConnectionDone", "ResponseNeverReceived"}:
        return FailureKind.CONNECT, "connection lost"
    return None


def _tunnel(said: str) -> tuple[FailureKind, str]:
    found = _TUNNEL.search(said)
    if found is None:
        return FailureKind.PROXY, "reply to CONNECT is not HTTP"
    status = int(found[1])
    if status in _OF_THE_PROXY:
        return FailureKind.PROXY, f"refuses the tunnel ({status})"
    return (FailureKind.CONNECT if status >= 500 else FailureKind.PROXY_REFUSED), f"no tunnel ({status})"
