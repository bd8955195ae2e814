"""Random `kill -9` of workers, and faults of the server that has their tasks meanwhile: what was lost?

    python -m tests.e2e.frontier_soak --frontier postgresql --kills 200
    python -m tests.e2e.frontier_soak --frontier rabbitmq --kills 200
    python -m tests.e2e.frontier_soak --frontier sqs --kills 200 --books postgresql

PostgreSQL has tasks and rows, and a standby. While workers die, it is killed, crashes and is restarted, its sessions
are ended, and the standby takes over in the end. RabbitMQ is a cluster of three nodes: the node with the first queues
is killed and comes back, a node is short of memory and blocks publishers, and all connections are closed, so that
messages are delivered again. The server for SQS is away for a while. Lost and duplicated rows must be 0, and the end
is announced once.
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
from tests.e2e.postgres_standby import administrate, promote

from trotline.testing.postgres_server import PASSWORD, USER, PostgresServer, postgres
from trotline.testing.rabbitmq_server import RabbitServer, rabbitmq_cluster
from trotline.testing.sqs_server import CREDENTIALS, sqs

FRONTIERS = ("postgresql", "rabbitmq", "sqs")
Fault = tuple[str, Callable[[], Awaitable[None]]]


@dataclass(kw_only=True)
class Plan(KillPlan):
    """How much is asked of the fleet."""

    frontier: str = "rabbitmq"
    books: str = "redis"
    """Of a broker."""
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
    sink: str
    faults: list[Fault]
    sink_after: str = ""
    """Where the rows are in the end, if another server has them then."""


@contextmanager
def place(plan: Plan) -> Iterator[Place]:
    if plan.frontier == "postgresql":
        with postgresql_place() as opened:
            yield opened
        return
    with servers() as other:
        books, sink = other.places()
        if plan.books == "postgresql":
            books = quote(f"{other.postgres.url}?schema=books", safe="")
        with (rabbitmq_place if plan.frontier == "rabbitmq" else sqs_place)(books, sink) as opened:
            yield opened


@contextmanager
def postgresql_place() -> Iterator[Place]:
    with postgres() as old, postgres(standby_of=old) as new:
        url = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{old.port},127.0.0.1:{new.port}/postgres"
        options = "target_session_attrs=read-write&schema="
        tasks, rows = f"{url}?{options}tasks", f"{url}?{options}rows"
        yield Place(tasks, tasks, rows, postgresql_faults(old, new), f"{new.url}?schema=rows")


@contextmanager
def rabbitmq_place(books: str, sink: str) -> Iterator[Place]:
    with rabbitmq_cluster() as nodes:
        urls = [f"{node.url}?books={books}" for node in nodes]
        # The queue of the seeds has its leader where the job was started.
        yield Place(urls[1], urls[0], sink, rabbit_faults(nodes))


@contextmanager
def sqs_place(books: str, sink: str) -> Iterator[Place]:
    os.environ.update(CREDENTIALS)
    with sqs() as server:

        async def away() -> None:
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(5)
            await asyncio.to_thread(server.start)

        url = f"{server.url}&books={books}"
        yield Place(url, url, sink, [("the server is stopped for 5 s", away)] * 3)


def postgresql_faults(old: PostgresServer, new: PostgresServer) -> list[Fault]:
    async def kill() -> None:
        await asyncio.to_thread(old.kill)
        await asyncio.sleep(5)
        await asyncio.to_thread(old.start)

    async def stop(how: str) -> None:
        await asyncio.to_thread(old.stop, how)
        await asyncio.sleep(5)
        await asyncio.to_thread(old.start)

    async def cut() -> None:
        await administrate(
            old,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
        )

    async def fail_over() -> None:
        """What the primary has settled, the standby has: workers are told of a commit when both have it."""
        await administrate(old, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        await asyncio.sleep(5)
        await asyncio.to_thread(old.kill)
        await promote(new)

    return [
        ("kill -9 of the server, back after 5 s", kill),
        ("a crash (stop -m immediate), back after 5 s", lambda: stop("immediate")),
        ("all sessions ended", cut),
        ("a restart (stop -m fast)", lambda: stop("fast")),
        ("kill -9 of the server, and its standby takes over", fail_over),
    ]


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


async def soak(plan: Plan, where: Place, folder: Path) -> tuple[Account, list[str], bool]:
    async with crawl(folder, where.first, where.sink, plan.terms) as job:
        job.frontier_url = where.url
        striking = asyncio.create_task(struck(job, where.faults))
        killed = await strike(plan, job)
        striking.cancel()
        told = (await asyncio.gather(striking, return_exceptions=True))[0]
        again = await (await job.frontier()).announce_finish()
        job.sink_url = where.sink_after or job.sink_url
        faults = told if isinstance(told, list) else [f"not all of them: {told!r}"]
        return Account(killed, await job.books()), faults, again


def main() -> int:
    plan = plan_of_arguments(Plan(), "tests.e2e.frontier_soak", __doc__)
    if plan.frontier not in FRONTIERS:
        raise SystemExit(f"--frontier {plan.frontier}: choose {', '.join(FRONTIERS)}")
    with place(plan) as where, TemporaryDirectory(prefix="trotline-soak-") as folder:
        account, faults, again = asyncio.run(soak(plan, where, Path(folder)))
    print(account)
    print(f"{plan.frontier}: {'; '.join(faults)}")
    print("finished was announced once" if not again else "WRONG: finished was not announced")
    return 1 if account.books.trouble or again or len(faults) < len(where.faults) else 0


if __name__ == "__main__":
    sys.exit(main())
