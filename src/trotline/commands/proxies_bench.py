"""How good are proxies on real pages? Each page is fetched and judged as a crawl would, through every proxy, slowly."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

from trotline.adapters.http.failures import FETCH_ERRORS, explain
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.http.proxy_pool_fetcher import PooledFetcher
from trotline.commands.proxies_check import quiet
from trotline.config.proxy_pools import PoolBook
from trotline.errors import SettingsError
from trotline.model.answer import Answer, Failure
from trotline.model.limits import Limits
from trotline.model.proxy import Way
from trotline.model.proxy_pool import MemberResult, PoolRules, lane_of
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.rules import content_types, redaction, redirects
from trotline.rules.proxy_bench import Result, Sample, result_of
from trotline.rules.proxy_judgement import member_result
from trotline.rules.urls import Address, read
from trotline.rules.verdicts import judge

REDIRECTS = 3
"""Of one page."""
BLOCKED_IN_A_ROW = 5
"""Proxies of a pool: then the site blocks us, whatever the proxy, and is left in peace."""
LONGEST_WAIT: Seconds = 60.0
"""A longer Retry-After ends the requests of this proxy on this host."""
_ROUTE = "bench"


class Target(NamedTuple):
    url: str
    host: str
    """With the port, if it is not the usual one."""


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    targets: tuple[Target, ...]
    members: dict[str, tuple[int, ...]]
    """By pool."""
    sampled: frozenset[str] = frozenset()
    """Pools of which only some members are asked."""
    requests: int = 5
    """For each page through each proxy."""
    at_once: int = 16
    interval: Seconds = 1.0
    """Between two requests through one proxy to one host."""
    host_interval: Seconds = 0.1
    """Between two requests to one host, over all proxies."""
    timeout: Seconds = 30.0
    user_agent: str
    allow_private: bool = False
    allow: tuple[str, ...] = ()

    @property
    def pages(self) -> int:
        return sum(map(len, self.members.values())) * len(self.targets) * self.requests

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(target.host for target in self.targets))

    def least_time(self, rules: Callable[[str], PoolRules]) -> Seconds:
        """If every answer came at once."""
        per_host = Counter(target.host for target in self.targets)
        proxies = sum(map(len, self.members.values()))
        most = max(per_host.values()) * self.requests
        of_proxies = max((self.interval_of(rules(pool)) for pool in self.members), default=0.0) * (most - 1)
        return max(of_proxies, self.host_interval * (proxies * most - 1), 0.0)

    def interval_of(self, rules: PoolRules) -> Seconds:
        """The pool's own limits apply too: its pace on a host, and its rate over all hosts."""
        return max(self.interval, rules.interval, rules.member_interval * len(self.hosts))


def targets_of(urls: Sequence[str]) -> tuple[Target, ...]:
    """SettingsError if one cannot be fetched."""
    found = []
    for url in dict.fromkeys(urls):
        address = read(url)
        if not isinstance(address, Address):
            raise SettingsError(
                f"{redaction.url(url)} is not an http:// or https:// URL without a login",
                hint="For example: trotline proxies bench https://shop.example/p/17",
            )
        found.append(Target(address.url, address.lane))
    return tuple(dict.fromkeys(found))


def members_of(book: PoolBook, pools: Sequence[str], most: int | None, chance: random.Random) -> dict[str, list[int]]:
    """All of each pool, or so many at random: the first ones of a list are often the oldest."""
    found = {}
    for name in pools:
        ids = [member.id for member in book.pool(name).members]
        found[name] = ids if most is None or most >= len(ids) else chance.sample(ids, most)
    return found


class Bench:
    """`samples` and `left_out` are right at any time, also if the run is cancelled."""

    def __init__(self, book: PoolBook, plan: BenchPlan) -> None:
        self._book = book
        self._plan = plan
        self._limits = Limits(connect=min(10.0, plan.timeout), first_byte=plan.timeout, total=plan.timeout)
        self._limits = msgspec.structs.replace(self._limits, redirects=REDIRECTS)
        self._hosts: defaultdict[str, _HostPace] = defaultdict(lambda: _HostPace(plan.host_interval))
        self._blocks: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        """Members of a pool that a host has blocked, since its last good answer."""
        self.samples: list[Sample] = []
        self.left_out: Counter[tuple[str, str, str]] = Counter()
        """Pages that were not asked for: by pool, host and reason."""

    async def run(self, emit: Callable[[Sample], None]) -> None:
        """`emit` gets each result when it is known."""
        plan = self._plan
        direct = HttpFetcher(
            self._limits,
            user_agent=plan.user_agent,
            spider=_ROUTE,
            slots=plan.at_once,
            types=content_types.EVERYTHING,
            allow_private=plan.allow_private,
            allow=plan.allow,
        )
        fetcher = PooledFetcher.over(direct)
        self._room = asyncio.Semaphore(plan.at_once)
        try:
            for target in plan.targets:
                await _refuse(target.url, direct)
            with quiet():
                async with asyncio.TaskGroup() as group:
                    for pool, ids in plan.members.items():
                        for member in ids:
                            group.create_task(self._through(pool, member, fetcher, emit))
        finally:
            await fetcher.close()

    async def _through(self, pool: str, member: int, fetcher: PooledFetcher, emit: Callable[[Sample], None]) -> None:
        """All requests through one proxy: hosts side by side, one request at a time on each."""
        rules = self._book.pool(pool).rules
        places = asyncio.Semaphore(rules.member_concurrency or len(self._plan.hosts))
        async with asyncio.TaskGroup() as group:
            for host in self._plan.hosts:
                way = self._book.way(pool, member, lane_of(host, pool))
                assert way is not None  # noqa: S101 - the book has the members that it lists
                visits = _Visits(pool, host, member, way, self._plan.interval_of(rules), places)
                group.create_task(self._on_host(visits, fetcher, emit))

    async def _on_host(self, visits: "_Visits", fetcher: PooledFetcher, emit: Callable[[Sample], None]) -> None:
        urls = [target.url for target in self._plan.targets if target.host == visits.host] * self._plan.requests
        interval, due = visits.interval, 0.0
        for number, url in enumerate(urls):
            await _sleep_until(due)
            if len(self._blocks[visits.pool, visits.host]) >= BLOCKED_IN_A_ROW:
                self._leave_out(visits, len(urls) - number, f"{BLOCKED_IN_A_ROW} proxies in a row were blocked")
                return
            sample, verdict, started = await self._sample(visits, url, fetcher)
            self._note(sample, verdict)
            emit(sample)
            if verdict.kind is Kind.THROTTLED:
                interval *= 2
            rest = verdict.retry_after if verdict.kind is Kind.THROTTLED and verdict.retry_after else 0.0
            if rest > LONGEST_WAIT:
                self._leave_out(visits, len(urls) - number - 1, f"429 with a Retry-After above {LONGEST_WAIT:.0f} s")
                return
            due = max(started + interval, asyncio.get_running_loop().time() + rest)

    def _leave_out(self, visits: "_Visits", pages: int, why: str) -> None:
        if pages:
            self.left_out[visits.pool, visits.host, why] += pages

    def _note(self, sample: Sample, verdict: Verdict) -> None:
        self.samples.append(sample)
        blocked = self._blocks[sample.pool, sample.host]
        if member_result(verdict) is MemberResult.BLOCKED:
            blocked.add(sample.member)
        elif sample.result is Result.GOOD:
            blocked.clear()

    async def _sample(self, visits: "_Visits", url: str, fetcher: PooledFetcher) -> tuple[Sample, Verdict, Seconds]:
        """And when the last request was started."""
        took, received, requests = 0.0, 0, 0
        task = Task(url=url, route=_ROUTE, lane=lane_of(visits.host, visits.pool), pool=visits.pool)
        while True:
            answer, started = await self._request(visits, task, fetcher)
            verdict = judge(task, answer, limits=self._limits, now=time.time())
            took, received, requests = took + answer.timing.total, received + _bytes(answer), requests + 1
            moved = read(verdict.location) if verdict.kind is Kind.MOVED else None
            if not isinstance(moved, Address) or not isinstance(answer, Answer):
                break
            await _sleep_until(started + visits.interval)
            task = redirects.moved(task, answer.status, moved.url, moved.lane)
        sample = Sample(
            pool=visits.pool,
            host=visits.host,
            member=visits.member,
            result=result_of(verdict),
            why=_why(verdict, visits.way),
            took=took,
            bytes=received,
            requests=requests,
        )
        return sample, verdict, started

    async def _request(self, visits: "_Visits", task: Task, fetcher: PooledFetcher) -> tuple[Answer | Failure, Seconds]:
        """One hop. An idle connection that was closed is replaced, as in a crawl: no request was sent."""
        address = read(task.url)
        host = address.lane if isinstance(address, Address) else visits.host
        async with visits.places, self._hosts[host].turn(self._room) as started:
            answer = await fetcher.fetch(task, visits.way)
            if judge(task, answer, limits=self._limits, now=0.0).once:
                answer = await fetcher.fetch(task, visits.way)
            return answer, started


class _Visits(NamedTuple):
    """The requests of one proxy on one host."""

    pool: str
    host: str
    member: int
    way: Way
    interval: Seconds
    places: asyncio.Semaphore
    """Of the proxy over all hosts."""


class _HostPace:
    """Starts on one host, over all proxies."""

    def __init__(self, interval: Seconds) -> None:
        self._interval = interval
        self._line = asyncio.Lock()
        self._next: Seconds = 0.0

    @asynccontextmanager
    async def turn(self, room: asyncio.Semaphore) -> AsyncIterator[Seconds]:
        """When the request may start. Only the first in line takes a place of `room` while it waits."""
        async with self._line:
            await room.acquire()
            try:
                await _sleep_until(self._next)
            except BaseException:
                room.release()
                raise
            started = asyncio.get_running_loop().time()
            self._next = started + self._interval
        try:
            yield started
        finally:
            room.release()


async def _sleep_until(moment: Seconds) -> None:
    wait = moment - asyncio.get_running_loop().time()
    if wait > 0:
        await asyncio.sleep(wait)


async def _refuse(url: str, direct: HttpFetcher) -> None:
    """Once, and not as a failure of every proxy."""
    try:
        await direct.vet(Task(url=url, route=_ROUTE))
    except FETCH_ERRORS as error:
        raise SettingsError(
            f"{redaction.url(url)} cannot be used: {explain(error, 'head', direct.limits)[1]}",
            hint="Is the URL right? A private address must be allowed: --allow HOST",
        ) from error


def _bytes(answer: Answer | Failure) -> int:
    """Body and headers as they were received, without TLS and tunnels. What a failed request received is not known."""
    if isinstance(answer, Failure):
        return 0
    return answer.wire_bytes + sum(len(name) + len(value) + 4 for name, value in answer.headers)


def _why(verdict: Verdict, way: Way) -> str:
    """Without the proxy: reasons are counted over all of them."""
    return (
        (verdict.why or str(verdict.kind)).removeprefix(f"proxy {way.public}: ").removeprefix(f"gateway {way.public}: ")
    )
