"""How fast records are merged: records per second of CPU of the whole command, on SQLite and on PostgreSQL.

python -m bench.merge --speed [--each 10000] [--rounds 3] [--where sqlite]

The CPU is that of the command; a database server is another process, often on another machine.
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
from trotline.commands.merge import MergePlan, MergeReport, merge
from trotline.config import backends
from trotline.model.merge import Criterion, MergeRule
from trotline.model.record import Record
from trotline.testing.postgres_server import DEBIAN, postgres

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
    again: float
    """CPU of a second merge: nothing is new."""
    report: MergeReport


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


async def _measured(place: str, records: Sequence[Record], rule: MergeRule) -> Speed:
    sink = backends.open_sink(place)
    await sink.open()
    for start in range(0, len(records), _BATCH):
        await sink.write(records[start : start + _BATCH])
    await sink.close()
    plan = MergePlan(sink=place, rule=rule)
    began = time.process_time()
    report = await merge(plan)
    cpu = time.process_time() - began
    began = time.process_time()
    await merge(plan)
    return Speed(cpu, time.process_time() - began, report)


@contextmanager
def _place(where: str) -> Iterator[str]:
    if where == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:{Path(folder) / 'rows.db'}"
        return
    with postgres(DEBIAN, {"shared_buffers": "256MB", "max_wal_size": "4GB"}) as server:
        yield server.url


def _show(name: str, speed: Speed) -> None:
    number = speed.report.after.sources
    print(
        f"{name:34} {number / speed.cpu:>9,.0f} records/s of CPU;"
        f" {number / speed.report.seconds:,.0f}/s by the clock; {speed.report.after.things:,} things;"
        f" again, nothing new: {speed.again:.2f} s"
    )
