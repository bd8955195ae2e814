"""The metrics endpoint of a command. Its libraries are loaded only if it is set."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from trotline.errors import SettingsError
from trotline.model.job import Progress

if TYPE_CHECKING:
    from trotline.coordinator.job_observer import Observation
    from trotline.model.metrics import JobGauges
    from trotline.rules.metrics_registry import JobBoard


class Metrics:
    """The boards that the endpoint reads at each scrape."""

    def __init__(self) -> None:
        from trotline.rules.metrics_registry import JobBoard, WorkerBoard

        clock = asyncio.get_running_loop().time
        self.workers = WorkerBoard(clock)
        self.jobs = JobBoard(clock)
        self.troubles: dict[str, Callable[[], str]] = {}
        """By job or frontier: why this process cannot do its work now; empty if it can."""

    def trouble(self) -> str:
        return next((said for each in list(self.troubles.values()) if (said := each())), "")


class RunGauges:
    """The state of the job that this command runs: its counters of every report, the rest of the last observation."""

    def __init__(self, board: "JobBoard", job: str, firing: Callable[[], Collection[str]] | None) -> None:
        """`firing`: rules of alerts; None: they are not evaluated here."""
        self._board = board
        self._job = job
        self._firing = firing
        self._seen: JobGauges | None = None

    def observed(self, observation: "Observation") -> None:
        from trotline.coordinator.job_gauges import gauges

        found = gauges(observation, self._firing() if self._firing is not None else (), {})
        self._seen = found if self._firing is not None else msgspec.structs.replace(found, alerts={})

    def show(self, progress: Progress) -> None:
        from trotline.rules.metrics_registry import gauges_of

        now = gauges_of(progress)
        if self._seen is not None and progress.finished_at is None:
            now = msgspec.structs.replace(self._seen, tasks=now.tasks, delayed=now.delayed, state=now.state)
        self._board.set(self._job, now)


@asynccontextmanager
async def metrics_at(address: str, *, workers: bool = False, jobs: bool = False) -> AsyncIterator[Metrics | None]:
    """Serve metrics while the block runs; None if no address is set. `workers`, `jobs`: what is shown."""
    if not address:
        yield None
        return
    from importlib.metadata import version

    from trotline.config.listen_address import host_and_port

    try:
        from trotline.adapters.prometheus.endpoint import serving
        from trotline.adapters.prometheus.exposition import CONTENT_TYPE, Exposition
    except ModuleNotFoundError as error:
        raise SettingsError(
            "metrics need the package prometheus_client",
            hint="Install it, in your clone of Trotline: pip install '.[metrics]'",
        ) from error
    metrics = Metrics()
    exposition = Exposition(
        version=version("trotline"),
        workers=metrics.workers.workers if workers else None,
        jobs=metrics.jobs.jobs if jobs else None,
        leading=(lambda: metrics.jobs.leading) if jobs and not workers else None,
    )
    async with serving(*host_and_port(address), exposition.text, CONTENT_TYPE, metrics.trouble):
        yield metrics
