"""Workers of a fleet that are killed at random until their job is finished, and what the kills did."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from tests.e2e.fleet_job import FleetJob
from tests.e2e.running import Running

from trotline.errors import FrontierError

CHILD, SUPERVISOR, BOTH = "child", "supervisor", "both"
KINDS = {CHILD: 7, SUPERVISOR: 2, BOTH: 1}
"""Who is killed, and how often of ten."""
RESTARTED = (b"worker processes died", b"Try again in a moment")
"""A supervisor whose children die too often ends, and so does one that is started while the server is away; what runs
it as a service (systemd, Kubernetes) starts another."""
RESTART_SEC = 0.5


@dataclass(kw_only=True)
class KillPlan:
    """Who is killed, and how often."""

    kills: int
    workers: int
    slots: int
    thinks: float = 0.05
    """Seconds that the spider takes for a page."""
    at: str
    """Seconds from one kill to the next, the least and the most."""
    seed: int = 1
    patience: float
    """Seconds."""

    @property
    def pauses(self) -> tuple[float, float]:
        least, _, most = self.at.partition("-")
        return float(least), float(most or least)


P = TypeVar("P", bound=KillPlan)


@dataclass
class Kind:
    """What kills of one kind did."""

    kills: int = 0
    held: int = 0
    """Tasks that were in the hands of the killed."""
    back: list[float] = field(default_factory=list)
    """Seconds until these could be leased again, one per kill."""


@dataclass
class Kills:
    """What the kills of each kind did."""

    kinds: dict[str, Kind] = field(default_factory=lambda: defaultdict(Kind))
    seconds: float = 0.0
    """From the first worker to the end of the job."""

    @property
    def kills(self) -> int:
        return sum(kind.kills for kind in self.kinds.values())

    @property
    def back(self) -> list[float]:
        """Seconds until others could have what the killed had held, one per kill."""
        return [each for kind in self.kinds.values() for each in kind.back]


class Fleet:
    """Workers that are replaced when they die, and somebody who sees to it that they do."""

    def __init__(self, plan: KillPlan, job: FleetJob) -> None:
        self.plan, self.job = plan, job
        self.chance = Random(plan.seed)
        self.account = Kills()
        self.places: dict[int, Running] = {}
        self.over = False
        self._killed: dict[str, tuple[Kind, float]] = {}
        """Names of the dead, and since when they are. Who held nothing is nobody's to wait for."""
        self._next: list[str] = []
        """The kinds of the next deaths: of every ten as many as KINDS says, so that ten kills have all kinds."""

    async def keep(self, place: int) -> None:
        """A worker in this place, and another when it is gone, until the job is finished."""
        while not self.over:
            running = await self.job.worker("--slots", str(self.plan.slots))
            self.places[place] = running
            out, err = await running.process.communicate()
            self.job.workers.remove(running)
            code = running.process.returncode
            if code == 0:
                self.over = True
            elif code == -signal.SIGKILL:
                continue
            elif any(why in err for why in RESTARTED):
                await asyncio.sleep(RESTART_SEC)
            else:
                raise AssertionError(f"a worker ended with {code}: {out[-2000:].decode()} {err[-2000:].decode()}")

    async def strike(self) -> None:
        """Somebody dies every now and then, until there were enough kills or the job is finished."""
        frontier = await self.job.frontier()
        next_at = 0.0
        while not self.over:
            await asyncio.sleep(0.05)
            try:
                crew = {view.name: view.leased for view in await frontier.workers()}
            except FrontierError:
                continue
            self._note_returns(crew)
            if time.monotonic() >= next_at and self.account.kills < self.plan.kills:
                self._kill_one(crew)
                next_at = time.monotonic() + self.chance.uniform(*self.plan.pauses)

    def _kill_one(self, crew: dict[str, int]) -> None:
        by_pid = {worker.process.pid: worker for worker in self.places.values() if worker.process.returncode is None}
        alive = [name for name in crew if name not in self._killed and supervisor_of(name) in by_pid]
        # Every second one holds something, also on a machine on which most of their time is that of starting. If all
        # did, nobody would live to do the last pages.
        if self.account.kills % 2:
            alive = [name for name in alive if crew[name]]
        if not alive:
            return
        name = self.chance.choice(alive)
        victim = by_pid[supervisor_of(name)]
        if not self._next:
            self._next = self.chance.sample(list(KINDS), k=sum(KINDS.values()), counts=list(KINDS.values()))
        who = self._next[-1]
        with suppress(ProcessLookupError):
            if who == BOTH:
                victim.signal_all(signal.SIGKILL)
            elif who == SUPERVISOR:
                os.kill(victim.process.pid, signal.SIGKILL)
            elif children := at_work(victim):
                os.kill(self.chance.choice(children), signal.SIGKILL)
            else:
                return
            kind = self.account.kinds[self._next.pop()]
            kind.kills += 1
            kind.held += crew[name]
            self._killed[name] = (kind if crew[name] else Kind(), time.monotonic())

    def _note_returns(self, crew: dict[str, int]) -> None:
        """Who is not in the frontier's list any more has nothing left there either."""
        for name in [name for name in self._killed if name not in crew]:
            kind, since = self._killed.pop(name)
            kind.back.append(time.monotonic() - since)


def supervisor_of(name: str) -> int:
    """Workers are named HOST-PROCESS-PLACE-NUMBER."""
    return int(name.split("-")[-3])


def at_work(worker: Running) -> list[int]:
    """Its children, without the process that only bears others."""
    found = []
    for pid in worker.children():
        with suppress(OSError, IndexError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            fork_server = b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes() and parent == worker.process.pid
            if not fork_server:
                found.append(pid)
    return found


async def strike(plan: KillPlan, job: FleetJob, kind: type[Fleet] = Fleet) -> Kills:
    """Kill workers until the job is finished, or patience is at its end: an unfinished job is in the books, too."""
    fleet = kind(plan, job)
    started = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(plan.patience), asyncio.TaskGroup() as group:
            striking = group.create_task(fleet.strike())
            keeping = [group.create_task(fleet.keep(place)) for place in range(plan.workers)]
            await asyncio.gather(*keeping)
            striking.cancel()
    fleet.account.seconds = time.monotonic() - started
    return fleet.account


def plan_of_arguments(usual: P, program: str, description: str | None) -> P:
    """The plan that the command line asks for: an option for each field."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    for name, value in vars(usual).items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"[default: {value}]")
    # A polite end, whoever asks for it: the servers must not outlive us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return type(usual)(**vars(parser.parse_args()))
