"""How fast records are merged: records per second of CPU of the whole command, on SQLite and on PostgreSQL.

python -m bench.merge --speed [--each 10000] [--rounds 3] [--where sqlite]

The CPU of the database server stands beside: it is another process, often on another machine.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench import merge_shops
from bench.postgres_sink import server_cpu
from trotline.commands.merge import MergePlan, MergeReport, merge
from trotline.config import backends
from trotline.model.merge import Criterion, MergeRule
from trotline.model.record import Record
from trotline.testing.postgres_server import DEBIAN, PostgresServer, postgres

WHERE = ("sqlite", "postgresql")
_BATCH = 5_000
_RULES: dict[str, tuple[Criterion, ...]] = {
    "key": ("key",),
    "url": ("url",),
    "key, url, content, ids": ("key", "url", "content", "ids"),
    "text": ("text",),
}


class Speed(NamedTuple):
    cpu: float
    server: float
    again: float
    """CPU of a second merge: nothing is new."""
    report: MergeReport


class Place(NamedTuple):
    sink: str
    server: PostgresServer | None

    def server_cpu(self) -> float:
        return server_cpu(self.server.pid) if self.server else 0.0


def speeds(each: int, rounds: int, where: Sequence[str]) -> None:
    apart = merge_shops.shops(each).records
    common = shared_keys(apart, merge_shops.shops(each).truth)
    print(f"{2 * each:,} records, the best of {rounds}, load of the machine {os.getloadavg()[0]:.1f}")
    for name in where:
        for label, by in _RULES.items():
            _show(f"{name}, {label}", _best(name, apart, by, rounds))
            if label == "key":
                _show(f"{name}, key, 30 % shared", _best(name, common, by, rounds))


def shared_keys(records: Sequence[Record], truth: set[tuple[str, str]]) -> list[Record]:
    """The same records, with one key in both shops for what is one product."""
    first = {theirs: ours for ours, theirs in truth}
    return [msgspec.structs.replace(record, key=first.get(record.key, record.key)) for record in records]


def _best(where: str, records: Sequence[Record], by: tuple[Criterion, ...], rounds: int) -> Speed:
    found = []
    for _ in range(rounds):
        with _place(where) as place:
            found.append(asyncio.run(_measured(place, records, MergeRule(by=by))))
    return min(found, key=lambda one: one.cpu)


async def _measured(place: Place, records: Sequence[Record], rule: MergeRule) -> Speed:
    sink = backends.open_sink(place.sink)
    await sink.open()
    for start in range(0, len(records), _BATCH):
        await sink.write(records[start : start + _BATCH])
    await sink.close()
    plan = MergePlan(sink=place.sink, rule=rule)
    began, theirs = time.process_time(), place.server_cpu()
    report = await merge(plan)
    cpu, theirs = time.process_time() - began, place.server_cpu() - theirs
    began = time.process_time()
    await merge(plan)
    return Speed(cpu, theirs, time.process_time() - began, report)


@contextmanager
def _place(where: str) -> Iterator[Place]:
    if where == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield Place(f"sqlite:{Path(folder) / 'rows.db'}", None)
        return
    with postgres(DEBIAN, {"shared_buffers": "256MB", "max_wal_size": "4GB"}) as server:
        yield Place(server.url, server)


def _show(name: str, speed: Speed) -> None:
    number = speed.report.after.sources
    server = f", server {speed.server:.2f} s" if speed.server else ""
    print(
        f"{name:34} {number / speed.cpu:>9,.0f} records/s of CPU{server};"
        f" {number / speed.report.seconds:,.0f}/s by the clock; {speed.report.after.things:,} things;"
        f" again, nothing new: {speed.again:.2f} s"
    )
