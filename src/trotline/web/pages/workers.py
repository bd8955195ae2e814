"""The workers of a job: who does how much, and who is behind. By host, if there are many."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec
from aiohttp import web

from trotline.model.job import WorkerView
from trotline.model.time import Seconds
from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.web.api.types import Name
from trotline.web.pages.page_frame import PageQuery, framed, job_page
from trotline.web.route_table import Call

MANY = 50
"""More workers are shown by host."""
_SHOWN = 200


class WorkersQuery(PageQuery, frozen=True):
    host: Name = ""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, or all of one host. None: unknown."""

    name: str
    host: str
    number: int = 1
    state: str
    share: float | None
    """Of all that the workers of the job ended."""
    ended: int
    failed: int
    leased: int
    slots: int
    busy: float | None
    """The share of its slots' time that was spent in visits."""
    cpu: float | None
    """Processor seconds per second."""
    lag: Seconds | None
    memory: int | None
    version: str
    note: str
    silent_for: Seconds


async def page(call: Call) -> web.Response:
    snapshot, frame = await framed(call, "workers")
    crew = [each for each in snapshot.crew if call.query.host in ("", each.about.host)]
    whole = sum(each.done + each.failed for each in snapshot.crew)
    by_host = len(crew) > MANY and not call.query.host
    rows = _hosts(crew, whole) if by_host else [_worker(each, whole) for each in crew]
    rows.sort(key=lambda row: (-row.ended - row.failed, row.name))
    return call.site.pages.page(
        "workers.html",
        call.who,
        **frame,
        rows=rows[:_SHOWN],
        more=max(0, len(rows) - _SHOWN),
        by_host=by_host,
        host=call.query.host,
        balance=balance(crew),
        total=len(crew),
        silent=sum(each.silent_for >= DEAD_AFTER for each in crew),
        slots=sum(each.about.slots for each in crew),
        gone=[each for each in snapshot.log.gone if call.query.host in ("", each.host)],
        gone_before=snapshot.log.gone_before,
    )


def balance(crew: Sequence[WorkerView]) -> float | None:
    """The most that one of them ended, by the mean: 1 is even. None: nothing is ended, or there is one worker."""
    ended = [each.done + each.failed for each in crew]
    total = sum(ended)
    return max(ended) * len(ended) / total if len(ended) > 1 and total else None


def _worker(one: WorkerView, whole: int) -> Worker:
    about, stats = one.about, one.about.stats
    ended = one.done + one.failed
    slots = None if stats is None else sum(msgspec.structs.astuple(stats.slots))
    return Worker(
        name=one.name.removeprefix(f"{about.host}-") if about.host else one.name,
        host=about.host,
        state=_state(one),
        share=ended / whole if whole else None,
        ended=one.done,
        failed=one.failed,
        leased=one.leased,
        slots=about.slots,
        busy=stats.slots.busy / slots if stats is not None and slots else None,
        cpu=stats.cpu / stats.uptime if stats is not None and stats.uptime else None,
        lag=stats.lag if stats is not None else None,
        memory=about.memory or None,
        version=about.version[:7],
        note=_note(one),
        silent_for=one.silent_for,
    )


def _state(one: WorkerView) -> str:
    if one.silent_for >= DEAD_AFTER:
        return "silent"
    return "held back" if one.about.held_back else "ok"


def _note(one: WorkerView) -> str:
    if one.about.proxies_trouble:
        return f"proxies file: {one.about.proxies_trouble}"
    if one.silent_for > 2 * BEAT or one.about.held_back:
        return one.about.held_back
    pools = () if "" in one.about.pools else one.about.pools
    only = (*(f"route {name}" for name in one.about.routes), *pools)
    return f"only {', '.join(only)}" if only else ", ".join(one.about.regions)


def _hosts(crew: Sequence[WorkerView], whole: int) -> list[Worker]:
    groups: defaultdict[str, list[WorkerView]] = defaultdict(list)
    for each in crew:
        groups[each.about.host].append(each)
    return [_host(host, group, whole) for host, group in groups.items()]


def _host(host: str, group: list[WorkerView], whole: int) -> Worker:
    rows = [_worker(each, whole) for each in group]
    silent = sum(row.state == "silent" for row in rows)
    busy = [row.busy for row in rows if row.busy is not None]
    cpu = [row.cpu for row in rows if row.cpu is not None]
    lags = [row.lag for row in rows if row.lag is not None]
    memory = [row.memory for row in rows if row.memory is not None]
    return Worker(
        name=host or "unknown host",
        host=host,
        number=len(rows),
        state="silent" if silent == len(rows) else "held back" if silent else "ok",
        share=sum(row.ended + row.failed for row in rows) / whole if whole else None,
        ended=sum(row.ended for row in rows),
        failed=sum(row.failed for row in rows),
        leased=sum(row.leased for row in rows),
        slots=sum(row.slots for row in rows),
        busy=sum(busy) / len(busy) if busy else None,
        cpu=sum(cpu) if cpu else None,
        lag=max(lags, default=None),
        memory=sum(memory) if memory else None,
        version=", ".join(sorted({row.version for row in rows})[:3]),
        note=f"{silent} silent" if silent else "",
        silent_for=min(row.silent_for for row in rows),
    )


ROUTES = (job_page("/workers", "The workers of a job.", page, WorkersQuery),)
