"""A job with a known bottleneck, real workers, the advice, and what one more worker really changes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.raw_site import Site, ok, site
from tests.e2e.running import Running, call

from trotline.commands.advice_inputs import ServerExtras
from trotline.config import backends
from trotline.coordinator.job_observer import Observer
from trotline.model.job import WorkerView
from trotline.ports.backend import OpenJob
from trotline.rules.advice import Advice, advise
from trotline.rules.fleet_rates import living
from trotline.rules.survey_note import JobSummary

SPIDER = """
import json
import os
import time

from trotline import Page, Spider, TrapRules

told = json.loads(os.environ["RIG"])
rig = Spider("rig", robots=False, retries=50, max_depth=1_000_000, traps=TrapRules(same_text=0), **told["spider"])
seeds = [f"http://{host}:{told['port']}/{n}" for n in range(told["pages"]) for host in told["hosts"]]


@rig.page(key="url", seeds=seeds)
def page(page: Page):
    # Processor time of this thread: as much on a busy machine as on an idle one.
    until = time.thread_time() + told["parse"]
    while time.thread_time() < until:
        pass
    yield {"url": page.url}
"""
WITHIN = 120.0
POINTS, SHARE = 0.05, 0.20
"""How far a predicted gain may be off: by 5 points, or by a fifth of it, whichever is more."""


@dataclass(frozen=True)
class Result:
    name: str
    expected: tuple[str, ...]
    advice: Advice
    before: float
    """Pages per second, by the job's own counter."""
    after: float
    """With one more worker."""

    @property
    def measured(self) -> float:
        return self.after / self.before - 1.0

    @property
    def predicted(self) -> float | None:
        return self.advice.gain

    @property
    def trouble(self) -> str:
        if self.advice.limit not in self.expected:
            return f"limit {self.advice.limit!r} instead of {' or '.join(self.expected)}: {self.advice.sentence}"
        predicted = self.predicted
        if predicted is None:
            return f"no prediction: {self.advice.sentence}"
        if abs(predicted - self.measured) > max(POINTS, SHARE * max(predicted, self.measured)):
            return f"predicted {predicted:+.0%}, measured {self.measured:+.0%}"
        return ""

    def __str__(self) -> str:
        predicted = "unknown" if self.predicted is None else f"{self.predicted:+.0%}"
        return (
            f"{self.name:10} {self.advice.limit:12} predicted {predicted:>7}  measured {self.measured:+7.1%}"
            f"  {self.before:7.2f} -> {self.after:7.2f}/s  {self.advice.sentence}"
            + (f"  WRONG: {self.trouble}" if self.trouble else "")
        )


@dataclass
class RigJob:
    """A job that was started, and its workers."""

    folder: Path
    frontier: str
    sink: str
    environment: dict[str, str]
    words: Sequence[str] = ()
    """Options of `trotline work`."""
    before: Sequence[str] = ()
    """What a worker's command begins with: `nsenter ...`."""
    spider: str = "rig.py"
    running: list[Running] = field(default_factory=list)

    async def start(self) -> None:
        ended = await call(self.folder, "start", self.spider, "--detach", env=self.environment)
        assert ended.code == 0, ended

    async def work(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *self.before, sys.executable, "-m", "trotline.cli", "work", self.spider, "--quiet", *self.words,
            cwd=self.folder, env={**os.environ, **self.environment}, start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self.running.append(Running(process))

    async def dismiss(self) -> None:
        """The last one: it gives back what it holds."""
        last = self.running.pop()
        last.process.terminate()
        await last.process.wait()

    async def end(self) -> None:
        for running in self.running:
            if running.process.returncode is None:
                running.signal_all(signal.SIGKILL)
                await running.process.wait()


async def trial(
    name: str, expected: tuple[str, ...], job: RigJob, *, workers: int, seconds: float, warm: float = 2.0
) -> Result:
    """Measure with so many workers, ask for advice, add one, and measure again."""
    again = bool(os.environ.get("RIG_AGAIN"))
    try:
        await job.start()
        for _ in range(workers):
            await job.work()
        jobs = await backends.open_jobs(job.frontier)
        [found] = await jobs.all()
        await jobs.close()
        opened = await backends.open_frontier(job.frontier, found)
        try:
            await until_all_report(opened, workers)
            await asyncio.sleep(warm)
            before, advice = await _measure(opened, ServerExtras(job.frontier, job.sink), seconds)
            await job.work()
            await until_all_report(opened, workers + 1)
            await asyncio.sleep(warm)
            after, _ = await _measure(opened, None, seconds)
            if again:
                # A busy machine changes with time: the same again without the new one.
                await job.dismiss()
                await asyncio.sleep(warm)
                before = (before + (await _measure(opened, None, seconds))[0]) / 2
        finally:
            await opened.close()
    finally:
        await job.end()
    return Result(name, expected, advice, before, after)


async def _measure(opened: OpenJob, extras: ServerExtras | None, seconds: float) -> tuple[float, Advice]:
    clock, console = asyncio.get_running_loop().time, opened.console
    observer = Observer(console, clock, extras)
    first = await console.progress()
    summary = await observer.measure(first, await console.workers(), JobSummary())
    points = []
    until = clock() + seconds
    while clock() < until:
        points.append((clock(), (await console.progress()).ended))
        await asyncio.sleep(0.25)
    last = await console.progress()
    assert last.finished_at is None, "the job was too small"
    summary = await observer.measure(last, await console.workers(), summary)
    return _slope(points), advise(last, summary)


def _slope(points: Sequence[tuple[float, int]]) -> float:
    """Pages per second, by least squares: pages end in batches, and two looks would count one more or less."""
    middle = sum(at for at, _ in points) / len(points)
    level = sum(ended for _, ended in points) / len(points)
    spread = sum((at - middle) ** 2 for at, _ in points)
    return sum((at - middle) * (ended - level) for at, ended in points) / spread


async def until_all_report(opened: OpenJob, number: int) -> None:
    """Every worker has sent figures of some visits."""
    async with asyncio.timeout(WITHIN):
        while True:
            crew = living(await opened.console.workers())
            if len(crew) >= number and all(map(_works, crew)):
                return
            await asyncio.sleep(0.3)


def _works(worker: WorkerView) -> bool:
    return worker.about.stats is not None and worker.about.stats.uptime > 0


@asynccontextmanager
async def slow_site(slow: float, hosts: int = 1, size: int = 100) -> AsyncIterator[Site]:
    """Every page takes so long; each host is a lane."""

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(slow)
        # A page of its own for every host: one page of many hosts would be that of a captive proxy.
        head = b" ".join(request.split(b"\r\n", 2)[:2])
        writer.write(ok(b"<html><h1>" + head + b"</h1>" + b"x" * size + b"</html>", "Content-Type: text/html"))

    async with site(answer, hosts) as there:
        yield there


def hosts_of(number: int) -> list[str]:
    return [f"127.0.0.{place + 1}" for place in range(number)]
