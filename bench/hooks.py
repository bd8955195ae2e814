"""What hooks cost: visits of one page with no hook, and with one no-op hook of each kind, taking turns.

    python -m bench.hooks            prints CPU per visit and the ratio to a spider without hooks

The page is answered from memory: without HTTP, frontier and sink the share of a hook is larger than in any crawl.
"""

import asyncio
import random
import sys
import time
from statistics import median

from trotline import Page, Spider
from trotline.config.components import open_gate
from trotline.model.answer import Answer
from trotline.model.lease import Lease
from trotline.model.task import Task
from trotline.worker.dependencies import WorkerParts
from trotline.worker.parsing_marker import Marker
from trotline.worker.visit import Visitor

KINDS = ("none", "none again", "before_request", "after_answer", "record")
GOAL = 1.02
LINKS = "".join(f'<li class="card"><a href="/p/{n}">Tea {n}</a><b>{n}.50</b></li>' for n in range(80))
PAGE = f"<html><title>Shop</title><body><h1>Teas</h1><ul>{LINKS}</ul></body></html>".encode()


class Canned:
    async def fetch(self, task: Task, way: object = None) -> Answer:
        return Answer(url=task.url, status=200, headers=(("content-type", "text/html"),), body=PAGE)


def visitor(kind: str) -> Visitor:
    spider = Spider("bench", robots=False, hosts=["shop.example"])

    @spider.page
    def page(page: Page):
        yield {"title": page.css("h1::text").get()}
        yield page.follow(".card a")

    if not kind.startswith("none"):
        getattr(spider, kind)(lambda given: None)
    parts = WorkerParts(
        frontier=None, fetcher=Canned(), sink=None, gate=open_gate(spider), marker=Marker(), chance=random.Random(1)
    )
    return Visitor(spider, parts, "bench")


async def spent(visitor: Visitor, visits: int) -> float:
    """CPU microseconds per visit."""
    began = time.process_time()
    for number in range(visits):
        task = Task(url=f"https://shop.example/{number}", route="page", lane="shop.example", fingerprint=number + 1)
        await visitor.visit(Lease(task, number + 1, 0.0, 0.25, 1000.0, 0.0))
    return (time.process_time() - began) / visits * 1e6


async def main(rounds: int, visits: int) -> None:
    visitors = {kind: visitor(kind) for kind in KINDS}
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for one in visitors.values():
        await spent(one, visits)
    for _ in range(rounds):
        for kind in random.sample(KINDS, len(KINDS)):
            found[kind].append(await spent(visitors[kind], visits))
    for kind, times in found.items():
        ratio = median(mine / other for mine, other in zip(times, found["none"], strict=True))
        print(f"{kind:15} {median(times):7.1f} us/visit   {ratio:.3f} of none" + ("" if ratio <= GOAL else "   > 1.02"))


if __name__ == "__main__":
    asyncio.run(main(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 15, visits=200))
