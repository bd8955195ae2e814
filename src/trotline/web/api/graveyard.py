"""Dead tasks and rejected records: look at them, give them a fresh start."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from trotline.config.backends import open_proxy_pools
from trotline.model.job import Grave
from trotline.model.proxy_pool import NO_PROXY, is_account_pool
from trotline.model.time import iso
from trotline.rules import pool_names
from trotline.web.api.types import JobPath, Limit, Name
from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route

MOST_IDS = 1000
Reason = Annotated[str, Meta(max_length=2000)]
GraveId = Annotated[str, Meta(min_length=1, max_length=40)]


class GravesQuery(msgspec.Struct, frozen=True):
    why: Reason = ""
    """Only those whose reason starts like this."""
    after: Annotated[str, Meta(max_length=40)] = ""
    """The last id of the page before."""
    limit: Limit = 50


class GraveRow(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    url: str
    route: str
    why: str
    detail: str
    lane: str
    attempts: int
    died_at: str
    parent: str
    record: str
    """A record that failed validation, as JSON text; empty: it is a task."""
    task: dict[str, Any]


class GravesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    reasons: dict[str, int]
    """How many are buried for which reason, of those that fit."""
    graves: list[GraveRow]
    """The oldest first."""
    next: str
    """The next page: after=...; empty: this was the last one."""


class Revive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By ids, or all whose reason starts with `why`; "" are all of them."""

    ids: Annotated[list[GraveId], Meta(max_length=MOST_IDS)] | None = None
    why: Reason | None = None
    pool: Name | None = None
    """They go out through this proxy pool from now on; "direct": through none."""
    dry_run: bool = False
    """Only count them."""


class RevivedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    dry_run: bool
    matching: int
    """Graves that fit when it was asked for. Rejected records count, and are one page each or fewer."""
    revived: int
    """Pages that will be visited again."""


async def graves(call: Call) -> GravesAnswer:
    asked: GravesQuery = call.query
    async with call.site.index.opened(call.path.job) as opened:
        reasons = await opened.console.reasons()
        found = await opened.console.graves(why=asked.why, limit=asked.limit + 1, after=asked.after)
    more = len(found) > asked.limit
    return GravesAnswer(
        job=call.path.job,
        reasons={why: number for why, number in reasons.items() if why.startswith(asked.why)},
        graves=[grave_row(grave) for grave in found[: asked.limit]],
        next=found[asked.limit - 1].id if more else "",
    )


def grave_row(grave: Grave) -> GraveRow:
    return GraveRow(
        id=grave.id,
        url=grave.url,
        route=grave.route,
        why=grave.why,
        detail=grave.detail,
        lane=grave.lane,
        attempts=grave.attempt,
        died_at=iso(grave.died_at),
        parent=grave.parent,
        record=grave.record,
        task=grave.task,
    )


async def revive(call: Call) -> RevivedAnswer:
    asked: Revive = call.body
    if (asked.ids is None) == (asked.why is None):
        raise Refused(400, "which ones: ids, or why?", hint='All whose reason starts like this: {"why": "blocked"}')
    ids, why = tuple(asked.ids or ()), asked.why or ""
    place, _ = await call.site.index.find(call.path.job)
    if asked.pool is not None:
        await _check_pool(call, place.url, asked.pool)
    if asked.ids is not None and not ids:
        return RevivedAnswer(job=call.path.job, dry_run=asked.dry_run, matching=0, revived=0)
    async with call.site.index.opened(call.path.job) as opened:
        reasons = await opened.console.reasons()
        matching = len(ids) or sum(number for reason, number in reasons.items() if reason.startswith(why))
        revived = 0 if asked.dry_run else await opened.console.revive(ids=ids, why=why, pool=asked.pool)
    call.site.snapshots.forget(call.path.job)
    call.site.index.forget_list()
    return RevivedAnswer(job=call.path.job, dry_run=asked.dry_run, matching=matching, revived=revived)


async def _check_pool(call: Call, frontier: str, pool: str) -> None:
    """A pool that no worker serves would hide the tasks for ever."""
    if pool == NO_PROXY:
        return
    if is_account_pool(pool):
        raise Refused(400, "pool: tasks cannot be moved to accounts", hint="Name a pool of proxies.")
    pools = await open_proxy_pools(frontier)
    try:
        known = {each.name for each in await pools.pools()}
    finally:
        await pools.close()
    if pool not in known:
        raise Refused(409, pool_names.missing(pool), hint=pool_names.hint(pool, known))


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/graveyard",
        role=Role.VIEW,
        summary="Dead tasks and rejected records, the oldest first.",
        handler=graves,
        takes=JobPath,
        query=GravesQuery,
        answer=GravesAnswer,
    ),
    Route(
        method="POST",
        path=f"{PREFIX}/jobs/{{job}}/graveyard/revive",
        role=Role.OPERATE,
        summary="Give buried tasks a fresh start, by ids or by reason; dry_run counts them only.",
        handler=revive,
        takes=JobPath,
        body=Revive,
        answer=RevivedAnswer,
    ),
)
