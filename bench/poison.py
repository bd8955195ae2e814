"""Poison pages in an ordinary crawl: are all good pages stored, each poison page buried, and how fast is the rest?"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contenders import HERE, WORK
from bench.hostile import Request, Site, serving
from bench.measure import Usage, measure

Figures = dict[str, Any]
DEAD = 3
"""The state of a buried task in the frontier's file."""


@dataclass(frozen=True)
class Manner:
    """How a hostile site is crawled."""

    pace: str = "1/s"
    processes: int = 4
    slots: int = 4
    parse: float = 1.0
    total: float = 20.0
    """Seconds that a page may take; a lane that only fails is given up after twice as long."""
    memory: str = "256MiB"


@dataclass(frozen=True)
class Crawl:
    """What became of it."""

    usage: Usage
    requests: list[Request]
    stored: set[str]
    graves: list[tuple[str, int]]
    """Reason, and workers it took."""

    def rate(self, start: str) -> float:
        """Good pages per second of those hosts whose address begins so, from the first request to the last."""
        moments = [each.moment for each in self.requests if each.host.startswith(start) and "/good/" in each.path]
        distinct = {(each.host, each.path) for each in self.requests if each.host.startswith(start)}
        good = sum("/good/" in path for _, path in distinct)
        return good / (max(moments) - min(moments)) if len(moments) > 1 else 0.0


def crawl(site: Site, manner: Manner, name: str, work: Path = WORK) -> Crawl:
    folder = work / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    places = ["--frontier", f"sqlite:{folder}/frontier.db", "--sink", f"sqlite:{folder}/rows.db"]
    load = ["--processes", str(manner.processes), "--slots", str(manner.slots), "--memory", manner.memory]
    command = [sys.executable, "-m", "trotline.cli", "run", str(HERE / "trotline_hostile.py"), *places, *load]
    with serving(site, folder) as server:
        environment = {
            "BENCH_PORT": str(server.port),
            "BENCH_HOSTS": ",".join(site.seeds),
            "BENCH_PACE": manner.pace,
            "BENCH_PARSE": str(manner.parse),
            "BENCH_TOTAL": str(manner.total),
        }
        usage = measure([*command, "--allow-private", "--quiet"], folder, environment)
    return Crawl(usage, server.requests(), stored(folder / "rows.db"), graves(folder / "frontier.db"))


def stored(file: Path) -> set[str]:
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as rows:
        return {json.loads(data)["url"] for (data,) in rows.execute("SELECT data FROM records")}


def graves(file: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as tasks:
        return tasks.execute(f"SELECT why, kills FROM task WHERE state = {DEAD}").fetchall()


def poison(hosts: int, good: int, bad: int, manner: Manner, work: Path = WORK) -> Figures:
    """The same crawl without and with the poison."""
    calm = crawl(Site(hosts, good), manner, "calm", work)
    hurt = crawl(Site(hosts, good, bad), manner, "poisoned", work)
    wrong = [
        *complaints("calm", calm, hosts + good, 0, exit_code=0),
        *complaints("poisoned", hurt, hosts + good, bad, exit_code=3 if bad else 0),
    ]
    return {
        "hosts": hosts,
        "good": good,
        "bad": bad,
        "pace": manner.pace,
        "processes": manner.processes,
        "calm_rate": calm.rate("127."),
        "hurt_rate": hurt.rate("127."),
        "share": hurt.rate("127.") / calm.rate("127.") if calm.rate("127.") else 0.0,
        "most_kills": max((kills for _, kills in hurt.graves), default=0),
        "reasons": sorted({why for why, _ in hurt.graves}),
        "cpu_s": hurt.usage.cpu,
        "calm_cpu_s": calm.usage.cpu,
        "failed": wrong,
    }


def complaints(name: str, crawl: Crawl, pages: int, bad: int, *, exit_code: int) -> list[str]:
    """What is not as promised."""
    found = []
    if crawl.usage.exit_code != exit_code:
        found.append(f"{name}: exit code {crawl.usage.exit_code}, not {exit_code}")
    if len(crawl.stored) != pages:
        found.append(f"{name}: {len(crawl.stored)} pages stored, not {pages}")
    if len(crawl.graves) != bad:
        found.append(f"{name}: {len(crawl.graves)} buried, not {bad}")
    return found + [f"{name}: {why} after {kills} kills" for why, kills in crawl.graves if kills > 2]
