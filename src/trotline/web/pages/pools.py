"""Proxies and accounts: which are free, resting or banned where. Addresses are shown without logins."""

from functools import lru_cache
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from trotline.commands.proxies_list import MemberNames, release
from trotline.config import proxy_pools
from trotline.config.backends import open_proxy_pools
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.model.proxy_pool import LanePoolView, MemberView, RegisteredPool, is_account_pool, without_pool
from trotline.ports.proxy_pools import ProxyPools
from trotline.rules.pool_tallies import PoolUse, uses
from trotline.rules.proxy_bench import GIGABYTE, Prices
from trotline.web.api.types import JobPath, Name
from trotline.web.pages import formatting
from trotline.web.pages.formatting import part
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.pages.render import redirect
from trotline.web.route_table import FORM, HTML, Call, Role, Route

MOST = 40
"""Rows and columns of the map; the rest is counted."""


class PoolsQuery(PageQuery, frozen=True):
    pool: Name = ""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy in one lane."""

    step: int = 0
    """0: never used there; 1 to 4: its quality."""
    lane: str = ""
    hatched: bool = False
    """In quarantine."""
    title: str = ""


class MapRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    cells: list[Cell]


class PoolMap(msgspec.Struct, frozen=True, kw_only=True):
    lanes: list[LanePoolView]
    rows: list[MapRow]
    more_lanes: int = 0
    more_members: int = 0


class Release(msgspec.Struct, frozen=True):
    pool: Name
    lane: Annotated[str, Meta(min_length=1, max_length=300)]


async def proxies(call: Call) -> web.Response:
    return await _page(call, accounts=False)


async def accounts(call: Call) -> web.Response:
    return await _page(call, accounts=True)


async def _page(call: Call, *, accounts: bool) -> web.Response:
    here = "accounts" if accounts else "proxies"
    snapshot, frame = await framed(call, here)
    target = await call.site.index.target(call.path.job)
    used = {use.pool: use for use in uses(snapshot.progress.tallies)} if snapshot.progress is not None else {}
    found = await _looked_up(call, target.frontier, accounts=accounts)
    use = used.get(found["pool"].name) if found["pool"] is not None else None
    cost = cost_of(use, found["prices"])
    shown = found | {"use": use, "cost": cost, "most": MOST}
    return call.site.pages.page("pools.html", call.who, **frame, **shown, accounts=accounts)


class Cost(msgspec.Struct, frozen=True):
    """Of 1,000 pages that the site answered; None: unknown, and why."""

    value: float | None
    why: str

    @property
    def shown(self) -> str:
        """A small cost is not none."""
        if self.value is None:
            return formatting.UNKNOWN
        return f"{self.value:,.2f}" if self.value >= 0.01 or not self.value else f"{self.value:.2g}"


def cost_of(use: PoolUse | None, prices: Prices | None) -> Cost:
    if prices is None or not (prices.per_gb or prices.per_request):
        return Cost(None, "the proxies file has no price: cost_per_gb")
    if use is None or not use.pages:
        return Cost(None, "no page was answered yet")
    if use.size is None and prices.per_gb:
        return Cost(None, "its bytes were not counted")
    spent = (use.size or 0) / GIGABYTE * prices.per_gb + use.requests * prices.per_request
    return Cost(1000 * spent / use.pages, "by the prices of the proxies file")


def _prices(book: proxy_pools.PoolBook, pool: str) -> Prices | None:
    """Accounts cost what the proxies cost that they go out through."""
    lines = {line.name: line for line in book.lines()}
    line = lines.get(pool)
    line = lines.get(line.proxies, line) if line is not None else None
    return None if line is None else Prices(per_gb=line.info.cost_per_gb, per_request=line.info.cost_per_request)


async def _looked_up(call: Call, frontier: str, *, accounts: bool) -> dict[str, Any]:
    nothing: dict[str, Any] = {"pools": [], "pool": None, "map": None, "down": [], "listed": [], "prices": None}
    try:
        opened = await open_proxy_pools(frontier)
    except SettingsError:
        # This kind of frontier has no pools.
        return nothing
    try:
        pools = [one for one in await opened.pools() if is_account_pool(one.name) is accounts]
        chosen = next((one for one in pools if call.query.pool in ("", one.name)), None)
        if chosen is None:
            return nothing | {"pools": pools}
        book = book_of(call.site.plan.settings)
        names = MemberNames(book)
        lanes = await opened.lanes(chosen.name)
        return {
            "pools": pools,
            "pool": chosen,
            "map": await _map(opened, chosen, lanes, names),
            "down": [(names.name(chosen.name, one.member), one) for one in await opened.down(chosen.name)][:MOST],
            "listed": lanes[:MOST],
            "prices": _prices(book, chosen.name),
        }
    finally:
        await opened.close()


def book_of(settings: Settings) -> proxy_pools.PoolBook:
    """The addresses in the operator's own file, if the server was given it; it is read again when it changes."""
    book = _loaded(settings.proxies, settings.allow_private, tuple(settings.allow))
    book.reload()
    return book


@lru_cache(maxsize=4)
def _loaded(file: str, allow_private: bool, allow: tuple[str, ...]) -> proxy_pools.PoolBook:
    return proxy_pools.load(file, allow_private=allow_private, allow=allow)


async def _map(opened: ProxyPools, pool: RegisteredPool, lanes: list[LanePoolView], names: MemberNames) -> PoolMap:
    by_lane = {
        lane.lane: {one.member: one for one in await opened.members(pool.name, lane.lane)} for lane in lanes[:MOST]
    }
    members: dict[int, list[MemberView]] = {}
    for found in by_lane.values():
        for member, view in found.items():
            members.setdefault(member, []).append(view)
    # The worst first: banned in most lanes, then of the lowest quality.
    worst = sorted(
        members, key=lambda one: (-sum(v.banned for v in members[one]), min(v.quality for v in members[one]))
    )
    rows = [
        MapRow(
            name=names.name(pool.name, member),
            cells=[_cell(by_lane[lane.lane].get(member), lane.lane) for lane in lanes[:MOST]],
        )
        for member in worst[:MOST]
    ]
    return PoolMap(
        lanes=lanes[:MOST],
        rows=rows,
        more_lanes=max(0, len(lanes) - MOST),
        more_members=max(0, pool.members - len(rows)),
    )


def _cell(view: MemberView | None, lane: str) -> Cell:
    host = without_pool(lane)
    if view is None:
        return Cell(lane=lane, title=f"{host}: not used")
    state = (
        "in quarantine" if view.banned else "resting" if view.rests_for > 0 else "in use" if view.in_flight else "free"
    )
    title = f"{host}: quality {view.quality:.2f}, {state}, {view.strikes} bans"
    return Cell(lane=lane, step=1 + min(3, max(0, int(view.quality * 4))), hatched=view.banned, title=title)


async def end_quarantines(call: Call) -> web.Response:
    asked: Release = call.body
    target = await call.site.index.target(call.path.job)
    await release(target.frontier, asked.pool, asked.lane, None)
    here = "accounts" if is_account_pool(asked.pool) else "proxies"
    return redirect(f"/jobs/{part(call.path.job)}/{here}?pool={part(asked.pool)}&said=released")


ROUTES = (
    job_page("/proxies", "The proxy pools of the job's frontier.", proxies, PoolsQuery),
    job_page("/accounts", "The account pools of the job's frontier.", accounts, PoolsQuery),
    Route(
        method="POST",
        path="/jobs/{job}/proxies/release",
        role=Role.OPERATE,
        summary="End the quarantines of a lane.",
        handler=end_quarantines,
        takes=JobPath,
        body=Release,
        body_media=FORM,
        media=HTML,
        status=303,
    ),
)
