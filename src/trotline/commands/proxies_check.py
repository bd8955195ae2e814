"""Do the proxies of a file work? Each is tried as a worker would use it: with its login, TLS and the same checks."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

import msgspec

from trotline.adapters.http.api_gateway import GatewayFetcher
from trotline.adapters.http.failures import FETCH_ERRORS, explain
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.http.tunnel_probe import TunnelCheck
from trotline.config.proxy_pools import PoolBook
from trotline.errors import SettingsError
from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits
from trotline.model.proxy import ApiGateway, Proxy, ProxyMode, Way
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.rules import proxy_echo, redaction
from trotline.rules.proxy_echo import Anonymity, Echo

TRIES = 3
GOOD_ENOUGH = 2
"""Answers of TRIES with which a proxy works."""
USER_AGENT = "Mozilla/5.0 (compatible; trotline proxies check)"
_LANE = "check"
"""Slots of gateways have a session per lane."""


class CheckPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`echo` or `target`: URLs."""

    pools: tuple[str, ...]
    echo: str = ""
    target: str = ""
    direct: bool = False
    """Ask the echo page also without a proxy: it sees our own address."""
    at_once: int = 16
    timeout: Seconds = 10.0
    most: int | None = None
    """Proxies of each pool."""
    allow_private: bool = False
    allow: tuple[str, ...] = ()


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy. `why` is empty if it works."""

    pool: str
    member: int
    proxy: str
    """host:port."""
    protocol: str
    tries: int = 0
    answers: int = 0
    latency: Seconds | None = None
    """Median."""
    tls: bool = False
    """The target's certificate was verified through the proxy."""
    exits: tuple[str, ...] = ()
    """Addresses that the echo page saw."""
    anonymity: Anonymity | None = None
    region: str = ""
    why: str = ""


class _Try(NamedTuple):
    took: Seconds
    echo: Echo | None = None
    why: str = ""


async def check(book: PoolBook, plan: CheckPlan, emit: Callable[[Checked], None]) -> None:
    """Check every proxy; `emit` gets each result when it is known, in any order."""
    limits = Limits(connect=plan.timeout, first_byte=plan.timeout, total=plan.timeout)
    options = {"allow_private": plan.allow_private, "allow": plan.allow}
    direct = HttpFetcher(limits, user_agent=USER_AGENT, spider="proxies", slots=plan.at_once, **options)  # type: ignore[arg-type]
    try:
        await _refuse_target(plan, direct)
        checker = _Checker(plan, direct, await _own_address(plan, direct))
        room = asyncio.Semaphore(plan.at_once)

        async def one(pool: str, member: int, way: Way) -> None:
            async with room:
                emit(await checker.check(pool, member, way))

        with quiet():
            async with asyncio.TaskGroup() as group:
                for pool, member, way in _ways(book, plan):
                    group.create_task(one(pool, member, way))
    finally:
        await direct.close()


@contextmanager
def quiet() -> Iterator[None]:
    """A failure is a result here, not a warning about pages that wait."""
    log = logging.getLogger("trotline.proxy")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


async def _refuse_target(plan: CheckPlan, direct: HttpFetcher) -> None:
    """Once, and not as a failure of every proxy."""
    url = plan.echo or plan.target
    try:
        await direct.vet(Task(url=url, route="check"))
    except FETCH_ERRORS as error:
        raise SettingsError(
            f"{redaction.url(url)} cannot be used: {explain(error, 'head', direct.limits)[1]}",
            hint="Is the URL right? A private address must be allowed: --allow HOST",
        ) from error


def number(book: PoolBook, plan: CheckPlan) -> int:
    return len(_ways(book, plan))


def _ways(book: PoolBook, plan: CheckPlan) -> list[tuple[str, int, Way]]:
    found = []
    for name in plan.pools:
        for member in book.pool(name).members[: plan.most]:
            way = book.way(name, member.id, _LANE)
            assert way is not None  # noqa: S101 - the book has the members that it lists
            found.append((name, member.id, way))
    return found


async def _own_address(plan: CheckPlan, direct: HttpFetcher) -> str:
    if not (plan.echo and plan.direct):
        return ""
    echo = _read(await direct.fetch_start(Task(url=plan.echo, route="check"), proxy_echo.LARGEST))
    if isinstance(echo, str):
        raise SettingsError(
            f"the echo page cannot be used, without a proxy: {echo}",
            hint="Is the URL right? It must answer with the client's address. Or leave out --direct.",
        )
    return echo.address


def _read(answer: Answer | Failure) -> Echo | str:
    """The echo, or why there is none."""
    if isinstance(answer, Failure):
        return answer.why
    if answer.status != 200:
        return f"the echo page answered with status {answer.status}"
    return proxy_echo.read(answer.body) or "the answer is not an echo page; perhaps it is the proxy's own"


class _Checker:
    def __init__(self, plan: CheckPlan, direct: HttpFetcher, own: str) -> None:
        self._plan = plan
        self._direct = direct
        self._own = own
        self._tunnels = None if plan.echo else TunnelCheck(direct, plan.target)

    async def check(self, pool: str, member: int, way: Way) -> Checked:
        protocol = "api" if isinstance(way, ApiGateway) else str(way.scheme)
        checked = Checked(pool=pool, member=member, proxy=way.public, protocol=protocol)
        if isinstance(way, ApiGateway) and not self._plan.echo:
            why = "an API gateway opens no tunnels: check it with --echo URL"
            return msgspec.structs.replace(checked, why=why)
        tries: list[_Try] = []
        while len(tries) < TRIES and sum(1 for each in tries if each.why) <= TRIES - GOOD_ENOUGH:
            tries.append(await self._try(way))
        return self._judged(checked, tries)

    async def _try(self, way: Way) -> _Try:
        started = time.perf_counter()
        if self._tunnels is not None and not isinstance(way, ApiGateway) and not self._forwards(way):
            why = await self._tunnels.attempt(way)
            return _Try(time.perf_counter() - started, why=why)
        # A fetcher for each try: a kept connection would hide the time of the tunnel, and a rotating exit.
        fetcher = GatewayFetcher(way, self._direct) if isinstance(way, ApiGateway) else self._direct.through(way)
        url, method = (self._plan.echo, "GET") if self._plan.echo else (self._plan.target, "HEAD")
        try:
            answer = await fetcher.fetch_start(Task(url=url, route="check", method=method), proxy_echo.LARGEST)
        finally:
            await fetcher.close()
        took = time.perf_counter() - started
        if not self._plan.echo:
            return _Try(took, why=answer.why if isinstance(answer, Failure) else "")
        echo = _read(answer)
        return _Try(took, why=echo) if isinstance(echo, str) else _Try(took, echo)

    def _forwards(self, proxy: Proxy) -> bool:
        """Does this target need no tunnel?"""
        return proxy.mode is ProxyMode.FORWARD and self._plan.target.startswith("http:")

    def _judged(self, checked: Checked, tries: Sequence[_Try]) -> Checked:
        good = [each for each in tries if not each.why]
        echoes = [each.echo for each in good if each.echo is not None]
        works = len(good) >= GOOD_ENOUGH
        url = self._plan.echo or self._plan.target
        return msgspec.structs.replace(
            checked,
            tries=len(tries),
            answers=len(good),
            latency=median(each.took for each in good) if good else None,
            tls=bool(good) and url.startswith("https:"),
            exits=tuple(dict.fromkeys(echo.address for echo in echoes)),
            anonymity=_worst([proxy_echo.anonymity(echo, self._own) for echo in echoes]),
            region=next((echo.region for echo in echoes if echo.region), ""),
            why="" if works else next(each.why for each in tries if each.why),
        )


def _worst(found: Sequence[Anonymity]) -> Anonymity | None:
    order = (Anonymity.TRANSPARENT, Anonymity.ANONYMOUS, Anonymity.UNKNOWN, Anonymity.ELITE)
    return min(found, key=order.index, default=None)
