"""Merges two rigged shops, and compares the result with the truth; measures the speed of exact and of similar keys.

python -m bench.merge                 quality of 10,000 products per shop, both rigs
python -m bench.merge --speed         records per second of CPU, exact keys and similar texts, both databases
python -m bench.merge --each 2000 --seed 5
"""

import argparse
import asyncio
import itertools
import random
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench import merge_held_out, merge_shops, merge_speed
from bench.merge_shops import Shops
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.commands.merge import AT_ONCE, MergePlan, MergeReport, merge
from trotline.model.record import Record

RIGS = {"two shops": merge_shops.shops, "held out": merge_held_out.shops}


class Quality(NamedTuple):
    precision: float
    recall: float
    wrong: list[tuple[str, str]]
    missed: list[tuple[str, str]]


async def store(path: Path, records: Sequence[Record]) -> None:
    sink = SqliteSink(path)
    await sink.open()
    for start in range(0, len(records), 5_000):
        await sink.write(records[start : start + 5_000])
    await sink.close()


def merged_pairs(path: Path) -> set[tuple[str, str]]:
    """Keys of sources of one thing, each pair once, in the order of their sites."""
    things: dict[str, list[tuple[str, str]]] = {}
    connection = sqlite3.connect(path)
    for thing, site, key in connection.execute("SELECT thing, site, key FROM merge_sources"):
        things.setdefault(thing, []).append((site, key))
    connection.close()
    pairs = (pair for sources in things.values() for pair in itertools.combinations(sorted(sources), 2))
    return {(a[1], b[1]) for a, b in pairs}


def quality(found: set[tuple[str, str]], truth: set[tuple[str, str]]) -> Quality:
    right = len(found & truth)
    precision = right / len(found) if found else 1.0
    return Quality(precision, right / len(truth) if truth else 1.0, sorted(found - truth), sorted(truth - found))


async def measured(shops: Shops, path: Path, at_once: int = AT_ONCE) -> tuple[Quality, MergeReport]:
    await store(path, shops.records)
    report = await merge(MergePlan(sink=f"sqlite:{path}", at_once=at_once))
    return quality(merged_pairs(path), shops.truth), report


def _show(name: str, shops: Shops, found: Quality, report: MergeReport, cpu: float, examples: int) -> None:
    print(
        f"{name:10}  {len(shops.records):,} records, {len(shops.truth):,} pairs in truth:"
        f" precision {found.precision:.4f}, recall {found.recall:.4f};"
        f" {len(found.wrong)} wrong, {len(found.missed)} missed;"
        f" {report.after.review:,} for review, {report.pairs:,} pairs compared, {report.crowded:,} keys too crowded;"
        f" {cpu:.1f} s CPU"
    )
    titles = {record.key: next(iter(record.data.values())) for record in shops.records}
    for label, pairs in (("wrong", found.wrong), ("missed", found.missed)):
        for a, b in random.Random(1).sample(pairs, min(examples, len(pairs))):
            print(f"  {label}: {titles[a]}\n         {titles[b]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=10_000, help="products per shop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=0, help="show so many wrong and missed pairs")
    parser.add_argument("--rig", choices=list(RIGS), help="only this one")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--rounds", type=int, default=3, help="of --speed: the best counts")
    parser.add_argument("--where", choices=merge_speed.WHERE, help="with --speed: only this database")
    given = parser.parse_args()
    if given.speed:
        merge_speed.speeds(given.each, given.rounds, (given.where,) if given.where else merge_speed.WHERE)
        return
    for name, rig in RIGS.items():
        if given.rig in (None, name):
            shops = rig(given.each, seed=given.seed)
            with tempfile.TemporaryDirectory() as folder:
                began = time.process_time()
                found, report = asyncio.run(measured(shops, Path(folder) / "rows.db"))
                _show(name, shops, found, report, time.process_time() - began, given.examples)


if __name__ == "__main__":
    main()
