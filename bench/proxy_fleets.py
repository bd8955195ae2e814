"""Fleets that crawl a site through proxies: workers that share a pool, and processes of a peer that share nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.ban_world import World
from bench.contenders import HERE, WORK
from bench.services import Services, process_cpu

STOP_WITHIN, SCRAPY_STOPS_WITHIN = 30.0, 2.0
"""Scrapy would first wait for all requests that it has given to proxies, at their delays."""
SLOTS = 16


@dataclass(frozen=True)
class Size:
    """A row of the table that is reproduced."""

    workers: int
    proxies: int
    kind: str
    per_minute: float
    """What the site allows each address."""
    pace: float
    """Of each proxy, pages a minute: a little less."""
    claimed: int
    """Pages a minute of the table."""

    @property
    def ceiling(self) -> float:
        return self.proxies * self.per_minute

    @property
    def name(self) -> str:
        return f"{self.workers} workers, {self.proxies} {self.kind} proxies"


@dataclass
class Crew:
    """The processes of one fleet."""

    folder: Path
    stop_within: float = STOP_WITHIN
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        number = len(self.running)
        with (self.folder / f"{number}.out").open("wb") as out, (self.folder / f"{number}.err").open("wb") as err:
            self.running.append(
                subprocess.Popen(
                    command, stdout=out, stderr=err, env={**os.environ, **environment}, start_new_session=True
                )
            )

    def cpu(self) -> float:
        return sum(process_cpu(process.pid) for process in self.running)

    def ended(self) -> list[int]:
        """Exit codes of those that have ended by themselves."""
        return [code for process in self.running if (code := process.poll()) is not None]

    def stop(self) -> None:
        """What does not stop in time is killed: its pages no longer count."""
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + self.stop_within
        for process in self.running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class TrotlineFleet:
    name = "trotline"
    title = "Trotline: one pool in Redis"
    requirements: str | None = None

    def start(self, size: Size, world: World, pages: int, folder: Path, services: Services) -> Crew:
        program = str(Path(sys.executable).with_name("trotline"))
        spider = str(HERE / "trotline_proxied.py")
        pools = write_pools(folder, size.kind, world.proxies)
        environment = {
            "BENCH_SITE": world.site,
            "BENCH_PAGES": str(pages),
            "BENCH_POOL": "bench",
            "BENCH_PACE": f"{size.pace:g}/m per proxy",
            "TROTLINE_FRONTIER": services.environment["BENCH_REDIS"],
            "TROTLINE_SINK": services.environment["BENCH_POSTGRES"],
            "TROTLINE_ALLOW_PRIVATE": "yes",
        }
        words = ["--proxies", str(pools), "--quiet"]
        subprocess.run(
            [program, "start", spider, "--detach", *words], env={**os.environ, **environment}, check=True, cwd=folder
        )
        crew = Crew(folder)
        for _ in range(size.workers):
            crew.start([program, "work", spider, "--slots", str(SLOTS), *words], environment)
        return crew


@dataclass(frozen=True)
class ScrapyProcesses:
    """As many processes as workers, each with its own quarantine."""

    name: str
    title: str
    divided: bool
    """The delay is multiplied by the number of processes: together they keep the rate that the site allows."""
    spread: bool
    """They are started one after another: each asks every proxy as soon as it starts, and all at once are too many."""
    requirements: str | None = "requirements-scrapy-rotating.txt"

    def start(self, size: Size, world: World, pages: int, folder: Path, _services: Services) -> Crew:
        program = str(WORK / "venvs" / "scrapy-rotating" / "bin" / "scrapy")
        crew = Crew(folder, SCRAPY_STOPS_WITHIN)
        for number in range(size.workers):
            environment = {
                "BENCH_SITE": world.site,
                "BENCH_PAGES": str(pages),
                "BENCH_WORKER": str(number),
                "BENCH_WORKERS": str(size.workers),
                "BENCH_DELAY": str(60 / size.pace * (size.workers if self.divided else 1)),
                "BENCH_ACTIVE": str(max(64, 2 * size.proxies)),
                "BENCH_PROXIES": " ".join(world.proxies),
                "BENCH_OUT": str(folder / f"items-{number}.jsonl"),
            }
            if self.spread and number:
                time.sleep(60 / size.pace)
            crew.start([program, "runspider", str(HERE / "peers" / "scrapy_rotating.py")], environment)
        return crew


Fleet = TrotlineFleet | ScrapyProcesses
TROTLINE = TrotlineFleet()
SCRAPY = ScrapyProcesses("scrapy-rotating", "Scrapy + scrapy-rotating-proxies, a process per worker", False, False)
SCRAPY_DIVIDED = ScrapyProcesses("scrapy-divided", "the same, delay times the number of processes", True, False)
SCRAPY_SPREAD = ScrapyProcesses("scrapy-spread", "the same, and started one after another", True, True)
FLEETS: tuple[Fleet, ...] = (TROTLINE, SCRAPY, SCRAPY_DIVIDED, SCRAPY_SPREAD)


def write_pools(folder: Path, kind: str, proxies: Sequence[str]) -> Path:
    """A file with the pool `bench`."""
    path = folder / "proxies.toml"
    path.write_text(f'[pools.bench]\nkind = "{kind}"\nproxies = {json.dumps(list(proxies))}\n')
    path.chmod(0o600)
    return path


def empty_folder(name: str) -> Path:
    folder = WORK / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
