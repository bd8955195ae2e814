"""How fast records go into PostgreSQL: rows/s and client CPU, 1 KB of JSON each, one connection, durable.

    python -m bench.postgres_sink [--rows 60000] [--batch 500] [--build debian|wheel] [--pgbouncer]

Four passes over the same keys: new rows, the same again (unchanged), the same with another price (changed: every row
also gives one of history), and one with the visits of a ledger beside the records.
"""

import argparse
import asyncio
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from trotline.adapters.postgres.sink import PostgresSink
from trotline.model.record import Record
from trotline.model.visit_row import VisitRow
from trotline.testing.postgres_server import BUILDS, DEBIAN, PostgresServer, pgbouncer, postgres

GOAL = 25_000
"""Rows/s of new records."""
NOW = 1_790_000_000.0
_LETTERS = "abcdefghijklmnopqrstuvwxyz      "


def records(count: int, turn: int, price: int) -> list[Record]:
    chance = random.Random(1)
    text = "".join(chance.choices(_LETTERS, k=4000))
    made = []
    for number in range(count):
        start = chance.randrange(3000)
        data = {
            "sku": f"SKU-{number:08}",
            "title": text[start : start + 60],
            "price": price + number / 100,
            "currency": "EUR",
            "in_stock": number % 3 > 0,
            "tags": ["tea", "green", str(number % 100)],
            "description": text[start : start + 830],
        }
        url = f"https://shop.example/products/{number}"
        made.append(Record(kind="product", key=str(data["sku"]), data=data, url=url, site="shop", seen_at=NOW + turn))
    return made


def visits(batch: list[Record], start: int) -> list[VisitRow]:
    return [
        VisitRow(
            job="shop-1", token=start + number, site="shop", url=record.url, fingerprint=hash(record.url),
            route="product", lane="shop.example", worker="w1", leased_at=record.seen_at, status=200, took=0.1,
            size=30_000, verdict="ok", outcome="done", records=1,
        )
        for number, record in enumerate(batch)
    ]  # fmt: skip


def batches(rows: list[Record], size: int) -> Iterator[list[Record]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def server_cpu(pid: int) -> float:
    """Seconds that the processes of the server have used."""
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


class Figures(NamedTuple):
    """Rows per second, and microseconds of CPU for each: ours and the server's."""

    rate: float
    client: float
    server: float

    @property
    def possible(self) -> float:
        """Rows per second if nobody else used the machine and the disk took no time: one works, the other waits."""
        return 1e6 / (self.client + self.server)


async def measure(
    sink: PostgresSink, server: PostgresServer, rows: list[Record], size: int, *, ledger: bool = False
) -> Figures:
    lines = [visits(batch, start) if ledger else [] for start, batch in enumerate(batches(rows, size))]
    began, used, theirs = time.perf_counter(), time.process_time(), server_cpu(server.pid)
    for batch, line in zip(batches(rows, size), lines, strict=True):
        await sink.write(batch, line)
    took, used = time.perf_counter() - began, time.process_time() - used
    theirs = server_cpu(server.pid) - theirs
    return Figures(len(rows) / took, used / len(rows) * 1e6, theirs / len(rows) * 1e6)


async def run(url: str, server: PostgresServer, count: int, size: int) -> dict[str, Figures]:
    sink = PostgresSink(url)
    await sink.open()
    try:
        # So that the first batch does not pay for what is paid once.
        await sink.write([Record(kind="warm", key="up", data={}, url="", site="shop", seen_at=NOW)])
        return {
            "new rows": await measure(sink, server, records(count, 0, 1), size),
            "seen again, unchanged": await measure(sink, server, records(count, 1, 1), size),
            "changed, with history": await measure(sink, server, records(count, 2, 2), size),
            "new, with visits": await measure(
                sink, server, [_renamed(record) for record in records(count, 3, 1)], size, ledger=True
            ),
        }
    finally:
        await sink.close()


def _renamed(record: Record) -> Record:
    return Record(
        kind="offer", key=record.key, data=record.data, url=record.url, site=record.site, seen_at=record.seen_at
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=60_000)
    asked.add_argument("--batch", type=int, default=500)
    asked.add_argument("--goal", type=int, default=GOAL, help="new rows per second")
    asked.add_argument("--build", choices=BUILDS, default=DEBIAN)
    asked.add_argument("--pgbouncer", action="store_true", help="through pgbouncer in transaction mode")
    asked.add_argument("--uvloop", action="store_true", help="as worker processes run it")
    given = asked.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(postgres(given.build, {"shared_buffers": "256MB", "max_wal_size": "4GB"}))
        url = stack.enter_context(pgbouncer(server)) if given.pgbouncer else server.url
        load = os.getloadavg()[0]
        if given.uvloop:
            import uvloop

            figures = uvloop.run(run(url, server, given.rows, given.batch))
        else:
            figures = asyncio.run(run(url, server, given.rows, given.batch))
    print(f"{given.rows:,} rows of 1 KB in batches of {given.batch}, {given.build}, fsync and synchronous commit on")
    print(f"load of the machine before: {load:.1f}")
    print("                                  rows/s   client CPU   server CPU (us per row)   rows/s by CPU alone")
    for name, found in figures.items():
        print(f"  {name:24} {found.rate:12,.0f} {found.client:12.1f} {found.server:12.1f} {found.possible:33,.0f}")
    good = figures["new rows"].rate >= given.goal
    # A slow machine misses it, and that is a figure, not a failure of the benchmark.
    print(f"goal: {given.goal:,} new rows/s: {'reached' if good else 'missed'}")


if __name__ == "__main__":
    main()
