"""What a frontier on SQS costs: API calls and money per task, for put, lease and settle, with the books on Redis.

    python -m bench.sqs_frontier [--tasks 10000] [--lanes 1000] [--batch 64] [--links 5]

Real servers on this machine: ministack (pip) for SQS, Redis for the books. Calls are counted by the client; a call with
more than 64 KiB is paid for as several. "filled" puts all tasks first, in batches; "links" is a crawl: each page
brings some links, which are settled with it, by workers at once. Times say nothing about AWS.
"""

import argparse
import asyncio
import os
import time
from collections import Counter

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.open_job import open_books
from trotline.adapters.sqs.broker import SqsBroker
from trotline.adapters.sqs.broker_url import address_of
from trotline.frontier.brokered_frontier import brokered
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.model.task import Task
from trotline.ports.backend import OpenJob
from trotline.testing.frontier_contract.bench import BRISK, task
from trotline.testing.redis_server import redis
from trotline.testing.sqs_server import CREDENTIALS, sqs

DOLLARS = 0.40
"""List price of a million calls to a standard queue, in most regions; not checked here."""
STEPS = {"send": "send_message_batch", "receive": "receive_message", "delete": "delete_message_batch"}


async def opened(redis_url: str, sqs_url: str) -> tuple[OpenJob, SqsBroker]:
    jobs = RedisJobs(connect(redis_url), shelf=True)
    job = await jobs.start("bench", BRISK)
    await jobs.close()
    broker = SqsBroker(address_of(sqs_url), job)
    return brokered(open_books(connect(redis_url), job), broker), broker


def tasks(start: int, count: int, lanes: int) -> list[Task]:
    return [
        task(f"https://shop{n % lanes}.example/product/{n}", lane=f"shop{n % lanes}.example")
        for n in range(start, start + count)
    ]


async def filled(job: OpenJob, given: argparse.Namespace) -> None:
    for start in range(0, given.tasks, given.batch):
        await job.frontier.put(tasks(start, min(given.batch, given.tasks - start), given.lanes))
    done = 0
    while done < given.tasks:
        leases = await job.frontier.lease("w", given.batch, wait=5.0)
        await job.frontier.settle("w", [Settlement(lease, Done()) for lease in leases])
        done += len(leases)


async def links(job: OpenJob, given: argparse.Namespace) -> None:
    """Eight workers with one visit at a time each; a page brings links until there are enough."""
    made, done = 1, 0
    await job.frontier.put(tasks(0, 1, given.lanes))

    async def work(name: str) -> None:
        nonlocal made, done
        while done < given.tasks:
            for lease in await job.frontier.lease(name, 1, wait=1.0):
                count = min(given.links, given.tasks - made)
                children, made = tasks(made, count, given.lanes), made + count
                await job.frontier.settle(name, [Settlement(lease, Done(), children=tuple(children))])
                done += 1

    await asyncio.gather(*(work(f"w{n}") for n in range(8)))


def report(name: str, calls: Counter[str], units: int, given: argparse.Namespace, took: float) -> None:
    total = sum(calls.values())
    steps = ", ".join(f"{step} {calls[verb] / given.tasks:.4f}" for step, verb in STEPS.items())
    others = total - sum(calls[verb] for verb in STEPS.values())
    print(
        f"{name}: calls per task: {steps}; others {others} in all."
        f" Paid for: {units / given.tasks:.4f} per task, ${units / given.tasks * DOLLARS:.4f} per million tasks"
        f" (at ${DOLLARS:.2f} per million calls; {given.tasks:,} tasks, {given.tasks / took:,.0f}/s here,"
        f" load {os.getloadavg()[0]:.0f})"
    )


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--lanes", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--links", type=int, default=5)
    given = parser.parse_args()
    os.environ.update(CREDENTIALS)
    with redis() as books, sqs() as server:
        for run in (filled, links):
            job, broker = await opened(books.url, server.url)
            began = time.perf_counter()
            await run(job, given)
            took = time.perf_counter() - began
            progress = await job.console.progress()
            assert (progress.done, progress.waiting, progress.leased) == (given.tasks, 0, 0), progress
            await job.close()
            report(run.__name__, broker.api.calls, broker.api.units, given, took)


if __name__ == "__main__":
    asyncio.run(main())
