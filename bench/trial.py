"""One trial: one contender crawls one site, and the harness checks that it did the whole job."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench import site
from bench.contenders import WORK, Contender
from bench.measure import Usage, measure
from bench.nginx import Hits, Server
from bench.services import NOTHING, Services, Spent


class Failed(Exception):
    """A contender did not do the job; its figures must not be used."""


@dataclass(frozen=True)
class Trial:
    """What one crawl cost, and what the server saw of it."""

    pages: int
    usage: Usage
    hits: Hits
    server_cpu: float
    spent: Spent = NOTHING

    @property
    def cpu_per_page(self) -> float:
        """CPU milliseconds per page, the whole life of the process tree counted."""
        return self.usage.cpu * 1000 / self.pages

    @property
    def rate(self) -> float:
        """Pages per second between the first and the last page request."""
        return self.pages / self.hits.window if self.hits.window else 0.0

    @property
    def first_page(self) -> float:
        """Seconds from the start of the command to its first page request."""
        return self.hits.moments[0] - self.usage.started

    @property
    def peak_mb(self) -> float:
        return self.usage.peak / 1e6


def attempt(
    contender: Contender,
    pages: int,
    kind: str = "product",
    server: type[Server] = Server,
    check: bool = True,
    services: Services | None = None,
) -> Trial:
    """Run one contender on a fresh server and a fresh folder."""
    root = site.build(WORK / "sites", pages, kind)
    folder = WORK / "runs" / contender.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    out = folder / contender.out
    if services is not None:
        os.environ.update(services.environment)
        services.begin()
    with server(root, WORK / "server") as running:
        seed = running.base + site.path(0)
        environment = {**contender.environment, "BENCH_SEED": seed, "BENCH_OUT": str(out)}
        usage = measure(contender.command(out), folder, environment)
    spent = NOTHING if services is None else services.end()
    trial = Trial(pages, usage, running.hits(), running.cpu, spent)
    if check:
        confirm(contender, trial, out, folder)
    return trial


def confirm(contender: Contender, trial: Trial, out: Path, folder: Path) -> None:
    """Every page fetched, every item stored with the right fields: otherwise say what went wrong and where to look."""
    if trial.usage.exit_code != 0:
        raise Failed(f"{contender.name} ended with exit code {trial.usage.exit_code}: see {folder / 'stderr'}")
    if trial.hits.distinct != trial.pages:
        raise Failed(f"{contender.name} fetched {trial.hits.distinct} pages of {trial.pages}: see {folder}")
    if complaints := site.wrong_items(contender.items(out), trial.pages):
        raise Failed(f"{contender.name}: {len(complaints)} items wrong, first: {complaints[0]}: see {out}")
