"""The graveyard: dead tasks and rejected records by signature, and their revival in batches."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from trotline.commands.dead_reasons import of_tasks_and_records
from trotline.config.backends import open_proxy_pools
from trotline.errors import SettingsError
from trotline.model.proxy_pool import NO_PROXY, is_account_pool
from trotline.ports.console import Console
from trotline.web.api import graveyard as api
from trotline.web.api.types import JobPath, Name
from trotline.web.pages.formatting import part
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.pages.render import redirect
from trotline.web.route_table import FORM, HTML, Call, Role, Route

BATCH = 500
"""Graves that are revived by one request."""
_SIGNATURES = 100
_FIRST = 15
"""Signatures that are shown at once; the others on demand."""
_SHORT = 600
"""Characters of a detail in the list; all of it where one grave is shown."""
Number = Annotated[int, Meta(ge=0, le=10**12)]


class GravesQuery(PageQuery, frozen=True):
    why: api.Reason = ""
    after: Annotated[str, Meta(max_length=40)] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 50


class ReviveQuery(PageQuery, frozen=True):
    why: api.Reason = ""
    pool: Name = ""
    of: Number = 0
    """How many fitted when it began; 0: it has not begun."""
    revived: Number = 0
    looked: Number = 0
    """Graves that were given to the frontier: rejected records of one page are one page."""


class ReviveForm(msgspec.Struct, frozen=True):
    why: api.Reason = ""
    pool: Name = ""
    of: Number = 0
    revived: Number = 0
    looked: Number = 0


async def page(call: Call) -> web.Response:
    asked: GravesQuery = call.query
    _, frame = await framed(call, "graveyard")
    wanted = api.GravesQuery(why=asked.why, after=asked.after, limit=asked.limit)
    found = await api.graves(msgspec.structs.replace(call, query=wanted))
    reasons = sorted(found.reasons.items(), key=lambda one: (-one[1], one[0]))
    tasks, records = of_tasks_and_records(found.reasons)
    before = [asked.after, *(grave.id for grave in found.graves)]
    return call.site.pages.page(
        "graveyard.html",
        call.who,
        **frame,
        reasons=reasons[:_FIRST],
        other_reasons=reasons[_FIRST:_SIGNATURES],
        more_reasons=max(0, len(reasons) - _SIGNATURES),
        total=sum(found.reasons.values()),
        dead_tasks=sum(tasks.values()),
        rejected=sum(records.values()),
        # The one before each: a grave is shown alone as the first after it.
        graves=list(zip(before, found.graves, strict=False)),
        next=found.next,
        why=asked.why,
        after=asked.after,
        alone=asked.limit == 1,
        short=_SHORT,
    )


async def preview(call: Call) -> web.Response:
    """How many fit, through which pool; and between two batches, how far it is."""
    asked: ReviveQuery = call.query
    _, frame = await framed(call, "graveyard")
    wanted = api.Revive(why=asked.why, dry_run=True)
    matching = (await api.revive(msgspec.structs.replace(call, body=wanted))).matching
    left = max(0, min(matching, asked.of - asked.looked)) if asked.of else matching
    return call.site.pages.page(
        "revive.html",
        call.who,
        **frame | {"stream": ""},
        why=asked.why,
        pool=asked.pool,
        pools=await _pools(call),
        direct=NO_PROXY,
        of=asked.of,
        revived=asked.revived,
        looked=asked.looked,
        matching=matching,
        left=left,
        batch=BATCH,
    )


async def revive(call: Call) -> web.Response:
    """One batch. What dies again meanwhile is not revived again: it ends after as many as there were at the start."""
    asked: ReviveForm = call.body
    name: str = call.path.job
    of = asked.of or await call.site.index.ask(name, lambda console: _matching(console, asked.why))
    size = min(BATCH, of - asked.looked)
    graves = []
    if size > 0:
        graves = await call.site.index.ask(name, lambda console: console.graves(why=asked.why, limit=size))
    number = 0
    if graves:
        wanted = api.Revive(ids=[grave.id for grave in graves], pool=asked.pool or None)
        number = (await api.revive(msgspec.structs.replace(call, body=wanted))).revived
    looked = asked.looked + len(graves) if graves else of
    place = f"/jobs/{part(name)}/graveyard/revive?why={part(asked.why)}&pool={part(asked.pool)}"
    return redirect(f"{place}&of={of}&revived={asked.revived + number}&looked={looked}")


async def _matching(console: Console, why: str) -> int:
    return sum(number for reason, number in (await console.reasons()).items() if reason.startswith(why))


async def _pools(call: Call) -> list[str]:
    target = await call.site.index.target(call.path.job)
    try:
        opened = await open_proxy_pools(target.frontier)
    except SettingsError:
        return []
    try:
        return [one.name for one in await opened.pools() if not is_account_pool(one.name)]
    finally:
        await opened.close()


ROUTES = (
    job_page("/graveyard", "Dead tasks and rejected records.", page, GravesQuery),
    Route(
        method="GET",
        path="/jobs/{job}/graveyard/revive",
        role=Role.OPERATE,
        summary="How many graves fit, before they are revived.",
        handler=preview,
        takes=JobPath,
        query=ReviveQuery,
        media=HTML,
        errors=(404,),
    ),
    Route(
        method="POST",
        path="/jobs/{job}/graveyard/revive",
        role=Role.OPERATE,
        summary="Revive one batch of them.",
        handler=revive,
        takes=JobPath,
        body=ReviveForm,
        body_media=FORM,
        media=HTML,
        status=303,
    ),
)
