"""Runs inside a network namespace of its own: the servers of a fleet, the site, and whoever keeps the books.

Started by `test_fleet_namespaces.py` with `unshare --net`. A line on standard input is a question, a line of JSON on
standard output the answer. Everything is gone when this process ends.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from tests.e2e.fleet_crawl import Crawl, Terms, crawl

from trotline.testing.postgres_server import PASSWORD, USER, postgres
from trotline.testing.redis_server import redis

HUB = "10.77.0.1"
"""One address for all, whichever way somebody comes; the ways are 10.77.1.0/24, 10.77.2.0/24, ..."""
TERMS = Terms(hosts=1, pages=700, seeds=700, pace="30/s", at_once=40, thinks=0.5)


def set_up() -> None:
    for line in ("ip link set lo up", f"ip addr add {HUB}/32 dev lo"):
        subprocess.run(line.split(), check=True)


class Answers:
    """What can be asked for."""

    def __init__(self, job: Crawl) -> None:
        self.job = job

    async def environment(self) -> dict[str, str]:
        return self.job.environment

    async def progress(self) -> dict[str, Any]:
        seen = await self.job.progress()
        crew = await (await self.job.frontier()).workers()
        return {
            "done": seen.done,
            "left": seen.waiting + seen.leased,
            "finished": seen.finished_at is not None,
            "rescued": seen.tallies.get("rescued", 0),
            "crew": {view.name: view.leased for view in crew},
            "did": {view.name: view.done for view in crew},
        }

    async def books(self) -> dict[str, Any]:
        books = await self.job.books()
        by: dict[str, int] = {}
        for visit in books.visits:
            by[visit["worker"]] = by.get(visit["worker"], 0) + (visit["outcome"] == "done")
        return {"trouble": books.trouble, "again": books.again, "refused": books.refused, "by": by}


async def main(folder: Path) -> None:
    set_up()
    with ExitStack() as stack:
        queue = stack.enter_context(redis(settings={"bind": f"127.0.0.1 {HUB}", "protected-mode": "no"}))
        rows = stack.enter_context(postgres(settings={"listen_addresses": f"127.0.0.1,{HUB}"}))
        with (rows.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.77.0.0/16 scram-sha-256\n")
        rows.stop()
        rows.start()
        frontier = f"redis://{HUB}:{queue.port}/0"
        sink = f"postgresql://{USER}:{PASSWORD}@{HUB}:{rows.port}/postgres?schema=fleet"
        async with crawl(folder, frontier, sink, TERMS, hosts=[HUB]) as job:
            answers = Answers(job)
            reader = asyncio.StreamReader()
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
            say({"ready": True})
            while line := await reader.readline():
                say(await getattr(answers, line.decode().strip())())


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1])))
