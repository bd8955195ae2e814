"""As many worker processes on this machine as are worth having: starts and stops `trotline work` by the advice."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator, Mapping

import msgspec

from trotline.commands.advice_inputs import ServerExtras
from trotline.commands.run_report import Ending, ending_of
from trotline.config import backends
from trotline.config.backend_urls import public
from trotline.config.settings import Settings
from trotline.coordinator.held_back import held_back_by
from trotline.coordinator.job_eta import outage_text
from trotline.coordinator.job_observer import OBSERVE_EVERY, Observer
from trotline.errors import FrontierError, TrotlineError
from trotline.model.job import Job, State, WorkerView
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.processes.signals import obeyed
from trotline.rules.advice import Advice, advise
from trotline.rules.autoscale import ScaleRules, ScaleState, decide
from trotline.rules.fleet_rates import living

QUICK: Seconds = 10.0
"""A worker that fails sooner could not start."""
MOST_FAILURES = 3
"""Workers in a row that could not start: then the fleet ends."""
KILL_AFTER: Seconds = 15.0
"""Beyond the grace time; a worker ends its own children before."""


_PR_SET_PDEATHSIG = 1


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    spider: str
    settings: Settings
    """With the places of the spider (`Settings.of`)."""
    rules: ScaleRules
    environment: Mapping[str, str] = {}
    """Settings of the workers: never on their command lines, which every user can read."""
    until_finished: bool = False
    upgrade: bool = False
    """The workers let their version of the spider's code into jobs that were started with another."""

    @property
    def words(self) -> list[str]:
        """Of a worker's command line."""
        return ["work", self.ref, "--quiet", "--processes", "1", *(["--upgrade"] if self.upgrade else [])]


class FleetEvent(msgspec.Struct, frozen=True, kw_only=True):
    event: str
    """"fleet.started", "fleet.scaled", "fleet.worker_failed", "fleet.unreachable", "fleet.finished", "fleet.ended"."""
    text: str
    workers: int
    wanted: int | None = None


_ENDED = {
    Ending.CANCELLED: "the job was cancelled",
    Ending.STOPPED_AT_LIMIT: "the job has stopped at its limit; trotline resume continues it",
}
Emit = Callable[[FleetEvent], None]


async def fleet(plan: FleetPlan, emit: Emit) -> bool:
    """Until a signal, `max_time`, or the end of the job with `until_finished`. False: a signal ended it."""
    return await _Fleet(plan, emit).run()


def _end_with_us() -> None:
    """In the new process: if we are killed, it stops gracefully, as after SIGTERM. Linux only."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class _Fleet:
    def __init__(self, plan: FleetPlan, emit: Emit) -> None:
        self._plan = plan
        self._emit = emit
        self._workers: dict[int, tuple[Process, Seconds]] = {}
        """By process id, with the time of the start."""
        self._leaving: set[Process] = set()
        self._target = plan.rules.least
        self._state = ScaleState()
        self._stopped = asyncio.Event()
        self._out_of_time = False
        self._failures = 0
        self._watched: tuple[Job, OpenJob, Observer] | None = None
        self._trouble = ""

    async def run(self) -> bool:
        with obeyed(self._stopped.set), self._limited():
            rules, place = self._plan.rules, public(self._plan.settings.frontier)
            text = f"{rules.least} to {rules.most} workers of {self._plan.spider}, for its jobs in {place}"
            self._emit(FleetEvent(event="fleet.started", text=text, workers=0, wanted=rules.least))
            try:
                while not self._stopped.is_set():
                    self._reap()
                    await self._start_missing()
                    advice, ending = await self._look()
                    if ending is not None and self._plan.until_finished:
                        self._say("fleet.finished", _ENDED.get(ending, "the job is finished"))
                        return ending is not Ending.CANCELLED
                    if advice is not None:
                        self._scale(advice)
                    await self._rest()
                return self._out_of_time
            finally:
                await self._end()

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        """`max_time` ends the fleet: a worker that it ended would only be replaced."""
        if self._plan.settings.max_time is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(self._plan.settings.max_time, self._end_in_time)
        try:
            yield
        finally:
            timer.cancel()

    def _end_in_time(self) -> None:
        self._out_of_time = True
        self._stopped.set()

    @property
    def _count(self) -> int:
        return len(self._workers)

    async def _rest(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OBSERVE_EVERY):
                await self._stopped.wait()

    # Workers

    async def _start_missing(self) -> None:
        while self._count < self._target and not self._stopped.is_set():
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "trotline.cli",
                *self._plan.words,
                env={**os.environ, **self._plan.environment},
                stdin=asyncio.subprocess.DEVNULL,
                # Ctrl-C reaches us alone: we stop them gracefully.
                start_new_session=True,
                preexec_fn=_end_with_us,
            )
            self._workers[process.pid] = (process, asyncio.get_running_loop().time())

    def _reap(self) -> None:
        now = asyncio.get_running_loop().time()
        self._leaving = {process for process in self._leaving if process.returncode is None}
        for pid, (process, started) in list(self._workers.items()):
            if process.returncode is None:
                continue
            del self._workers[pid]
            self._failures = self._failures + 1 if process.returncode and now - started < QUICK else 0
            self._say("fleet.worker_failed", f"a worker ended with code {process.returncode}, and is replaced")
            if self._failures >= MOST_FAILURES:
                raise TrotlineError(
                    f"{MOST_FAILURES} workers in a row could not start; their messages are above",
                    hint=f"Try one alone: trotline work {self._plan.ref}",
                )

    def _stop_one(self) -> None:
        """The newest: the others have longer histories. It finishes its visits and gives back the rest."""
        pid = max(self._workers, key=lambda each: self._workers[each][1])
        process, _ = self._workers.pop(pid)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        self._leaving.add(process)

    async def _end(self) -> None:
        while self._workers:
            self._stop_one()
        waiting = [asyncio.create_task(process.wait()) for process in self._leaving if process.returncode is None]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=self._plan.settings.grace + KILL_AFTER)
            for process in self._leaving:
                if late and process.returncode is None:
                    process.kill()
            await asyncio.gather(*waiting)
        if self._watched is not None:
            with contextlib.suppress(FrontierError):
                await self._watched[1].close()
        self._say("fleet.ended", "all workers have stopped")

    # Scaling

    def _scale(self, advice: Advice) -> None:
        now = asyncio.get_running_loop().time()
        wanted = None if advice.wanted_workers is None else max(0, advice.wanted_workers - self._elsewhere)
        self._state, target = decide(self._state, self._plan.rules, now, self._target, wanted)
        if target == self._target:
            return
        self._target = target
        while self._count > target:
            self._stop_one()
        text = f"{target} worker{'' if target == 1 else 's'}: {advice.sentence}"
        self._emit(FleetEvent(event="fleet.scaled", text=text, workers=target, wanted=wanted))

    async def _look(self) -> tuple[Advice | None, Ending | None]:
        """The advice for the running job; None if there is none, or if it cannot be seen. And how it ended."""
        try:
            watched = await self._watch()
            if watched is None:
                return None, None
            seen = await watched[2].observe()
        except FrontierError as error:
            # Unknown: what runs is kept.
            if self._trouble != error.what:
                self._trouble = error.what
                self._say("fleet.unreachable", f"{error.what}: the number of workers stays as it is")
            return None, None
        self._trouble = ""
        self._elsewhere = sum(not self._is_ours(worker) for worker in living(seen.crew))
        # At its limit a job has ended when a worker has said so: it also finishes the sink.
        going_on = seen.progress.finished_at is None and seen.progress.state is not State.CANCELLED
        ending = None if going_on else ending_of(seen.progress, watched[0].rules)
        if seen.progress.finished_at is not None:
            await self._forget()
            return None, ending
        outage, workers = outage_text(held_back_by(seen.crew)), len(living(seen.crew))
        return advise(seen.progress, seen.summary, outage, workers), ending

    _elsewhere = 0
    """Workers of the job on other machines, or started by others."""

    def _is_ours(self, worker: WorkerView) -> bool:
        ours = {*self._workers, *(process.pid for process in self._leaving)}
        return worker.about.host == socket.gethostname() and worker.about.process in ours

    async def _watch(self) -> tuple[Job, OpenJob, Observer] | None:
        frontier = self._plan.settings.frontier
        if backends.is_missing(frontier):
            return None
        jobs = await backends.open_jobs(frontier)
        try:
            job = await jobs.latest(self._plan.spider)
        finally:
            await jobs.close()
        if job is None or (self._watched is None and job.finished_at is not None and not self._plan.until_finished):
            return None
        if self._watched is None or self._watched[0].id != job.id:
            await self._forget()
            opened = await backends.open_frontier(frontier, job)
            extras = ServerExtras(frontier, self._plan.settings.sink, job.rules.default)
            self._watched = (job, opened, Observer(opened.console, asyncio.get_running_loop().time, extras))
        return self._watched

    async def _forget(self) -> None:
        if self._watched is not None:
            watched, self._watched = self._watched, None
            await watched[1].close()

    def _say(self, event: str, text: str) -> None:
        self._emit(FleetEvent(event=event, text=text, workers=self._count))
