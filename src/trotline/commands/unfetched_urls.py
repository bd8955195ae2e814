"""The URLs of `trotline fetch` without a record: dead ones with their reason, and those that were not fetched."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from trotline.config import backends, components
from trotline.model.job import Job, Progress
from trotline.model.task import Task
from trotline.ports.console import Console
from trotline.spider.spider import Spider

MOST = 20
"""URLs that are named; the others are counted."""
_LOOKED_AT = 5_000
"""Lines of a list that are looked at for those that wait: each is a question to the frontier."""
_WAITING = ("waiting", "delayed", "leased", "shelved")


class Unfetched(msgspec.Struct, frozen=True, kw_only=True):
    dead: tuple[tuple[str, str], ...] = ()
    """URL and reason of the first ones."""
    all_dead: int = 0
    waiting: tuple[str, ...] = ()
    """The first ones that were not fetched when the command was stopped."""
    all_waiting: int = 0


async def unfetched(frontier: str, job: Job, progress: Progress, spider: Spider, seeds: Path) -> Unfetched:
    """`seeds`: the list, as JSON lines; some may be empty."""
    left = progress.waiting + progress.leased
    if not progress.dead and not left:
        return Unfetched()
    opened = await backends.open_frontier(frontier, job)
    try:
        graves = await opened.console.graves(limit=MOST) if progress.dead else []
        waiting = await _waiting(opened.console, spider, seeds, progress.now) if left else []
    finally:
        await opened.close()
    return Unfetched(
        dead=tuple((grave.url, grave.why) for grave in graves if not grave.record),
        all_dead=progress.dead,
        waiting=tuple(waiting),
        all_waiting=left,
    )


async def _waiting(console: Console, spider: Spider, seeds: Path, now: float) -> list[str]:
    gate = components.open_gate(spider)
    [route] = spider.routes
    found: list[str] = []
    for url in _urls(seeds):
        for task in gate.seeds([Task(url=url, route=route)], now).tasks:
            if (await console.whereabouts(task)).state in _WAITING:
                found.append(url)
        if len(found) >= MOST:
            break
    return found


def _urls(seeds: Path) -> Iterator[str]:
    """The last ones first: they wait longest."""
    with seeds.open("rb") as file:
        lines = [line for line in file if line.strip()]
    for line in reversed(lines[-_LOOKED_AT:]):
        url = msgspec.json.decode(line, type=dict[str, object]).get("url")
        if isinstance(url, str):
            yield url
