"""Proxies and accounts of the job's frontier, as all its workers see them. Never an address with a login."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from trotline.commands.proxies_list import MemberNames, PoolState, members, survey
from trotline.model.proxy_pool import LanePoolView, hex_id, is_account_pool
from trotline.model.time import Seconds
from trotline.web.api.types import JobPath, Name
from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX
from trotline.web.route_table import Call, Role, Route

MOST_MEMBERS = 1000


class PoolsQuery(msgspec.Struct, frozen=True):
    pool: Name = ""
    """Only this one."""
    lane: Annotated[str, Meta(max_length=300)] = ""
    """With the members that have a history in this lane; needs `pool`."""


class DownRow(msgspec.Struct, frozen=True, kw_only=True):
    member: str
    """Its id."""
    name: str
    """host:port, or the account, from the file of proxies; else the id. Never a login."""
    faults: int
    until: Seconds
    """Seconds until it is tried again."""


class MemberRow(msgspec.Struct, frozen=True, kw_only=True):
    member: str
    name: str
    quality: float
    strikes: int
    in_flight: bool
    rests_for: Seconds
    banned: bool


class PoolRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    members: int
    lanes: list[LanePoolView]
    """Those with members at rest first."""
    down: list[DownRow]
    """Members that fail by themselves, whatever the lane."""


class PoolsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    pools: list[PoolRow]
    members: list[MemberRow] = []
    """Of `lane`."""
    more: int = 0
    """Members that are not listed."""


async def proxies(call: Call) -> PoolsAnswer:
    return await _pools(call, accounts=False)


async def accounts(call: Call) -> PoolsAnswer:
    return await _pools(call, accounts=True)


async def _pools(call: Call, *, accounts: bool) -> PoolsAnswer:
    asked: PoolsQuery = call.query
    if asked.lane and not asked.pool:
        raise Refused(400, "lane: of which pool?", hint="Give pool=NAME, too.")
    target = await call.site.index.target(call.path.job)
    found = await survey(target.frontier, asked.pool or None)
    name = _names(call)
    rows = [_row(state, name) for state in found if is_account_pool(state.pool.name) is accounts]
    if asked.pool and not rows:
        raise Refused(404, f"there is no pool {asked.pool!r}")
    listed = await members(target.frontier, asked.pool, asked.lane) if asked.lane else []
    return PoolsAnswer(
        job=call.path.job,
        pools=rows,
        members=[
            MemberRow(
                member=hex_id(one.member),
                name=name(asked.pool, one.member),
                quality=one.quality,
                strikes=one.strikes,
                in_flight=one.in_flight,
                rests_for=one.rests_for,
                banned=one.banned,
            )
            for one in listed[:MOST_MEMBERS]
        ],
        more=max(0, len(listed) - MOST_MEMBERS),
    )


def _names(call: Call) -> Callable[[str, int], str]:
    book = call.site.plan.book
    if book is None:
        return lambda _, member: hex_id(member)
    names, listed = MemberNames(book), book.listed
    return lambda pool, member: names.name(pool, member) if pool in listed else hex_id(member)


def _row(state: PoolState, name: Callable[[str, int], str]) -> PoolRow:
    pool = state.pool.name
    return PoolRow(
        name=pool,
        members=state.pool.members,
        lanes=state.lanes,
        down=[
            DownRow(member=hex_id(one.member), name=name(pool, one.member), faults=one.faults, until=one.until)
            for one in state.down
        ],
    )


ROUTES = tuple(
    Route(
        method="GET",
        path=f"{PREFIX}/jobs/{{job}}/{name}",
        role=Role.VIEW,
        summary=summary,
        handler=handler,
        takes=JobPath,
        query=PoolsQuery,
        answer=PoolsAnswer,
    )
    for name, summary, handler in (
        ("proxies", "The proxy pools of the job's frontier, by lane.", proxies),
        ("accounts", "The account pools of the job's frontier, by lane.", accounts),
    )
)
