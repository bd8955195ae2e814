"""The life of a URL: asked of the ledger, the frontier and the gate."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from trotline.commands.dead_reasons import BAD_RECORD, REJECTED
from trotline.config import backends, components
from trotline.model.job import Grave, Job, LaneView, Progress, TaskStatus
from trotline.model.proxy_pool import lane_of, pool_of
from trotline.model.queue_job import ROUTE, SOURCE, is_scrapy
from trotline.model.task import Task
from trotline.model.visit_row import VisitRow
from trotline.ports.console import Console
from trotline.ports.frontier import DEAD_AFTER
from trotline.ports.ledger import Ledger
from trotline.rules import redaction, scrapy_redis
from trotline.rules.scrapy_identity import of_url
from trotline.rules.url_history import UNKNOWN, Facts, Identity, rule_behind
from trotline.rules.urls import LONGEST_TEXT, Address, Refusal, UrlRules, fingerprint, read
from trotline.spider.spider import Spider

_GRAVES = 500
_SEEN = 100
"""Leases and graves that are looked at for routes."""
_ROWS = 200
_VISITS = 1_000
"""Among which those of one job are looked for."""


@asynccontextmanager
async def ledger_at(sink_url: str) -> AsyncIterator[Ledger | None]:
    """The ledger behind the sink's URL; None if that keeps none, or is not there. Looking never makes a file."""
    ledger = backends.open_ledger(sink_url)
    try:
        yield ledger
    finally:
        if ledger is not None:
            await ledger.close()


async def routes_seen(job: Job, console: Console, named: Sequence[str] = ()) -> tuple[str, ...]:
    """The routes in which a task is looked for where the spider's code is not known: identities belong to a route. A
    job names its routes; those of a queue, and of a job of an older version, are known only from its tasks. `named`:
    by the user; they come first."""
    if is_scrapy(job):
        return ()
    first = (ROUTE,) if job.rules.source == SOURCE else job.rules.routes
    under_way = [each.route for each in await console.in_flight(_SEEN)]
    graves = [grave.route for grave in await console.graves(limit=_SEEN)]
    return tuple(dict.fromkeys([*named, *first, *(route for route in (*under_way, *graves) if route)]))


async def scrapy_numbers(url: str, job: Job, console: Console) -> dict[int, str]:
    """The fingerprints of a plain GET of this URL in a job of the Scrapy bridge, with what each stands for; empty for
    other jobs. One that was imported has those of scrapy-redis."""
    found = of_url(url) if is_scrapy(job) else {}
    if found:
        (note,) = await console.read_notes([scrapy_redis.NOTE])
        if note is not None:
            found[scrapy_redis.number_of(url)] = ""
    return found


async def trace(
    url: str,
    job: str,
    console: Console,
    ledger: Ledger | None,
    spider: Spider | None = None,
    *,
    routes: Sequence[str] = (),
    numbers: Mapping[int, str] | None = None,
    alone: bool = False,
    limit: int = 20,
) -> Facts:
    """All that is known about `url`: where it is in `job`, and its visits in that and (unless `alone`) in other jobs.
    Nothing is fetched, and nothing is changed.

    Without the spider, and without `routes`, only what was visited under this very URL is found. `numbers`: other
    fingerprints that the URL has in this job, with what each stands for.
    """
    progress = await console.progress()
    # A link that is too long for the spider may be one that its pages led to.
    rules = msgspec.structs.replace((spider.urls if spider else None) or UrlRules(), max_length=LONGEST_TEXT)
    address = read(url, rules)
    if isinstance(address, Refusal):
        return Facts(job=job, asked=url, refusal=address.why, progress=progress)
    routes = tuple(spider.routes) if spider else routes
    known = [fingerprint(route, address.identity) for route in routes] + list(numbers or ())
    routes = (*routes, *(numbers or {}).values())
    visits = await _visits(ledger, known, address, _VISITS if alone else limit + 1) if ledger is not None else []
    visits = [visit for visit in visits if not alone or visit.job == job]
    crew = await console.workers()
    lanes = _lanes(address.lane, spider, (pool for worker in crew for pool in worker.about.pools))
    last = [visit.lane for visit in visits[-1:]]
    # By their names: a job may have a hundred thousand.
    views = {view.lane: view for view in await console.lane_views([*lanes, *last])}
    identities = [
        Identity(
            route=route, fingerprint=number, whereabouts=await _whereabouts(console, number, address, visits, lanes)
        )
        for number, route in _names(known, routes, visits).items()
    ]
    why = _why_not(spider, address) if spider else ""
    return Facts(
        job=job,
        asked=url,
        url=address.url,
        same_as=address.identity,
        lane=address.lane,
        refusal=why,
        rule=rule_behind(spider.scope, address.url, why) if spider else "",
        identities=tuple(identities),
        visits=tuple(visits[-limit:]),
        earlier=len(visits) > limit,
        rows=tuple(await ledger.rows(_pages(url, address, visits), _ROWS)) if ledger is not None else (),
        rejected=tuple(await _rejected(console, progress, _pages(url, address, visits))),
        progress=progress,
        lane_view=_lane(views, lanes, visits),
        workers=sum(worker.silent_for < DEAD_AFTER for worker in crew),
    )


async def _visits(ledger: Ledger, known: Sequence[int], address: Address, limit: int) -> list[VisitRow]:
    """By identity and by URL; then those of other identities, so that the history of a redirect is complete."""
    found = await ledger.story(known, url=redaction.url(address.url), limit=limit)
    if address.identity != address.url:
        found += await ledger.story([], url=redaction.url(address.identity), limit=limit)
    others = {visit.fingerprint for visit in found} - set(known)
    if others:
        found = await ledger.story([*known, *others], url=redaction.url(address.url), limit=limit)
    once = {(visit.job, visit.token, visit.leased_at): visit for visit in found}
    return sorted(once.values(), key=lambda visit: (visit.leased_at, visit.token))


def _names(known: Sequence[int], routes: Sequence[str], visits: Sequence[VisitRow]) -> dict[int, str]:
    """Fingerprint -> route."""
    names = dict(zip(known, routes, strict=True))
    return names | {visit.fingerprint: visit.route for visit in visits}


def _lanes(host: str, spider: Spider | None, served: Iterable[str]) -> list[str]:
    """The host's lanes: directly, through the pools that the spider names, and through those that workers serve."""
    pools = [*(spider.pools if spider else ()), *served]
    return list(dict.fromkeys([host, *(lane_of(host, pool) for pool in pools if pool)]))


async def _whereabouts(
    console: Console, number: int, address: Address, visits: Sequence[VisitRow], of_host: Sequence[str]
) -> TaskStatus:
    """A task is looked for in every lane that it may be in: a redirect takes it to another one."""
    lanes = dict.fromkeys(of_host)
    for visit in visits:
        if visit.fingerprint == number:
            lanes[visit.lane] = None
            there = read(visit.moved_to) if visit.moved_to else address
            lanes |= {lane_of(there.lane, pool_of(visit.lane)): None} if isinstance(there, Address) else {}
    best = UNKNOWN
    for lane in lanes:
        there_now = await console.whereabouts(Task(url=address.url, route="", lane=lane, fingerprint=number))
        if there_now.state not in ("unknown", "ended", "shelved"):
            return there_now
        best = there_now if there_now.state != "unknown" else best
    return best


def _lane(views: Mapping[str, LaneView], of_host: Sequence[str], visits: Sequence[VisitRow]) -> LaneView | None:
    """That of its last visit, if there is one: a redirect may have taken it to another host."""
    wanted = [*(visit.lane for visit in visits[-1:] if visit.lane not in of_host), *of_host]
    return next((views[lane] for lane in wanted if lane in views), None)


async def _rejected(console: Console, progress: Progress, pages: Sequence[str]) -> list[Grave]:
    """The page's rejected records, by its names. All are looked through: a job keeps MOST_REJECTS at most."""
    if not progress.tallies.get(REJECTED):
        return []
    names = set(map(redaction.url, pages))
    found: list[Grave] = []
    after = ""
    while portion := await console.graves(why=BAD_RECORD, limit=_GRAVES, after=after):
        found += [grave for grave in portion if grave.url in names]
        after = portion[-1].id
    return found


def _pages(url: str, address: Address, visits: Sequence[VisitRow]) -> list[str]:
    """The names under which rows may have been stored: rows keep URLs whole."""
    return list(dict.fromkeys([url, address.url, address.identity, *(visit.url for visit in visits)]))


def _why_not(spider: Spider, address: Address) -> str:
    """Why the gate would not let it in as a link of its own host; empty if it would.

    Seeds are not asked for: they may come from a database, and traps do not hold for them.
    """
    gate = components.open_gate(spider)
    front = Task(url=f"{address.url.partition('://')[0]}://{address.lane}/", route="")
    verdicts = [gate.explain(Task(url=address.url, route=route), front).verdict for route in spider.routes]
    return "" if "admitted" in verdicts else next(iter(verdicts), "").removeprefix("refused: ")
