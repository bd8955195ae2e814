"""procrastinate by its API: `put N` defers N tasks in batches of 64, `work` runs all that there are, 64 at a time.

python procrastinate_tasks.py put N | work    the database is named by BENCH_POSTGRES
"""

import asyncio
import os
import sys

import procrastinate

BATCH = 64
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=os.environ["BENCH_POSTGRES"]))


@app.task(queue="pages")
async def visit(url: str, route: str, lane: str, site: str) -> None:
    """The page is not the cost that is measured."""


async def put(count: int) -> None:
    await app.schema_manager.apply_schema_async()
    for first in range(0, count, BATCH):
        await visit.batch_defer_async(*(task(number) for number in range(first, min(first + BATCH, count))))


def task(number: int) -> dict[str, str]:
    lane = f"h{number % 1000:05d}.example"
    url = f"https://{lane}/catalogue/item/{number:07d}/".ljust(60, "x")
    return {"url": url, "route": "product", "lane": lane, "site": "shop"}


async def main(what: str, *rest: str) -> None:
    async with app.open_async():
        if what == "put":
            await put(int(rest[0]))
        else:
            await app.run_worker_async(queues=["pages"], concurrency=BATCH, wait=False, listen_notify=False)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
