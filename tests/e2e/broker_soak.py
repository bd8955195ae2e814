"""Random `kill -9` of workers whose tasks wait at a broker, and faults of the broker meanwhile: what was lost?

    python -m tests.e2e.broker_soak --broker rabbitmq --kills 200
    python -m tests.e2e.broker_soak --broker sqs --kills 200 --books postgresql

RabbitMQ is a cluster of three nodes. While workers die, the node with the first queues is killed and comes back, a node
is short of memory and blocks publishers, and all connections are closed, so that messages are delivered again. The
server for SQS is away for a while. Lost and duplicated rows must be 0, and the end is announced once.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from tests.e2e.fleet import servers
from tests.e2e.fleet_crawl import Crawl, Terms, crawl
from tests.e2e.fleet_kills import KillPlan, plan_of_arguments, strike
from tests.e2e.fleet_soak import Account

from trotline.testing.rabbitmq_server import RabbitServer, rabbitmq_cluster
from trotline.testing.sqs_server import CREDENTIALS, sqs

Fault = tuple[str, Callable[[], Awaitable[None]]]


@dataclass(kw_only=True)
class Plan(KillPlan):
    """How much is asked of the fleet."""

    broker: str = "rabbitmq"
    books: str = "redis"
    kills: int = 200
    hosts: int = 40
    pages: int = 2_000
    workers: int = 6
    slots: int = 8
    pace: str = "15/m"
    at: str = "0.4-1.2"
    patience: float = 1800.0

    @property
    def terms(self) -> Terms:
        return Terms(hosts=self.hosts, pages=self.pages // self.hosts, pace=self.pace, thinks=self.thinks)


@dataclass
class Place:
    first: str
    """The URL with which the job is started."""
    url: str
    """And that of its workers."""
    faults: list[Fault]


@contextmanager
def place(broker: str, books: str) -> Iterator[Place]:
    if broker == "rabbitmq":
        with rabbitmq_cluster() as nodes:
            urls = [f"{node.url}?books={books}" for node in nodes]
            # The queue of the seeds has its leader where the job was started.
            yield Place(urls[1], urls[0], rabbit_faults(nodes))
    else:
        os.environ.update(CREDENTIALS)
        with sqs() as server:

            async def away() -> None:
                await asyncio.to_thread(server.stop)
                await asyncio.sleep(5)
                await asyncio.to_thread(server.start)

            url = f"{server.url}&books={books}"
            yield Place(url, url, [("the server is stopped for 5 s", away)] * 3)


def rabbit_faults(nodes: list[RabbitServer]) -> list[Fault]:
    async def kill() -> None:
        await asyncio.to_thread(nodes[1].kill)
        await asyncio.sleep(10)
        await asyncio.to_thread(nodes[1].start)

    async def alarm() -> None:
        await asyncio.to_thread(nodes[0].control, "set_vm_memory_high_watermark", "0")
        await asyncio.sleep(10)
        await asyncio.to_thread(nodes[0].control, "set_vm_memory_high_watermark", "0.4")

    async def cut() -> None:
        await asyncio.to_thread(nodes[0].control, "close_all_connections", "soak")

    return [
        ("one node of three is killed", kill),
        ("memory alarm for 10 s", alarm),
        ("all connections closed: delivered again", cut),
    ] * 2


async def struck(job: Crawl, faults: list[Fault]) -> list[str]:
    """One after another, spread over the job. What was done."""
    told: list[str] = []
    total = job.terms.all_pages
    for number, (name, fault) in enumerate(faults):
        await job.until(lambda progress, n=number: progress.done >= total * (n + 1) / (len(faults) + 2), within=1800)
        began = time.monotonic()
        await fault()
        told.append(f"{name} ({time.monotonic() - began:.0f} s)")
    return told


async def soak(plan: Plan, where: Place, sink: str, folder: Path) -> tuple[Account, list[str], bool]:
    async with crawl(folder, where.first, sink, plan.terms) as job:
        job.frontier_url = where.url
        striking = asyncio.create_task(struck(job, where.faults))
        killed = await strike(plan, job)
        striking.cancel()
        told = (await asyncio.gather(striking, return_exceptions=True))[0]
        again = await (await job.frontier()).announce_finish()
        faults = told if isinstance(told, list) else [f"not all of them: {told!r}"]
        return Account(killed, await job.books()), faults, again


def main() -> int:
    plan = plan_of_arguments(Plan(), "tests.e2e.broker_soak", __doc__)
    with servers() as opened, TemporaryDirectory(prefix="trotline-soak-") as folder:
        books, sink = opened.places()
        if plan.books == "postgresql":
            books = quote(f"{opened.postgres.url}?schema=books", safe="")
        with place(plan.broker, books) as where:
            account, faults, again = asyncio.run(soak(plan, where, sink, Path(folder)))
    print(account)
    print(f"{plan.broker}, books on {plan.books}: {'; '.join(faults)}")
    print("finished was announced once" if not again else "WRONG: finished was not announced")
    return 1 if account.books.trouble or again or len(faults) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
