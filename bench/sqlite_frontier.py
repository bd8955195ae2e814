"""What the SQLite frontier costs its process, per task: CPU, and bytes of the file.

    python -m bench.sqlite_frontier [--tasks N] [--lanes M] [--workers W]

Every put and settle is on the disk before it is answered, one fsync per batch of 64.
"""

import argparse
import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.frontier_load import HEADING, RULE, Cost, batches, line, measure, rules
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.testing.clients import sqlite_client

SIZES = ((10_000, 1, 1), (100_000, 1, 1), (100_000, 1_000, 1), (100_000, 10_000, 1), (300_000, 1_000, 1))


class FileMeter:
    def __init__(self, path: Path) -> None:
        self._path = path

    def cpu(self) -> float:
        return time.process_time()

    def size(self) -> int:
        with closing(sqlite3.connect(self._path)) as looking:
            looking.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return sum(file.stat().st_size for file in self._path.parent.iterdir())


async def cost(path: Path, count: int, lanes: int, workers: int) -> Cost:
    jobs = SqliteJobs(str(path))
    job = await jobs.start("bench", rules(lanes))
    await jobs.close()
    frontier = sqlite_client(str(path), job)
    ready = list(batches(count, lanes, job.started_at))
    found = await measure(frontier, FileMeter(path), ready, lanes, workers)
    await frontier.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="What the SQLite frontier costs its process, per task.")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    sizes = SIZES
    if given.tasks or given.lanes or given.workers:
        sizes = ((given.tasks or 100_000, given.lanes or 1_000, given.workers or 1),)
    print(HEADING)
    print(RULE)
    for size in sizes:
        with TemporaryDirectory() as folder:
            print(line(asyncio.run(cost(Path(folder) / "frontier.db", *size))), flush=True)


if __name__ == "__main__":
    main()
