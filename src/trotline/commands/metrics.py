"""The metrics endpoint of a command. Its libraries are loaded only if it is set."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trotline.errors import SettingsError


class Metrics:
    """The boards that the endpoint reads at each scrape."""

    def __init__(self) -> None:
        from trotline.rules.metric_boards import JobBoard, WorkerBoard

        clock = asyncio.get_running_loop().time
        self.workers = WorkerBoard(clock)
        self.jobs = JobBoard(clock)


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
            "metrics need the package prometheus_client", hint="Install it: pip install 'trotline[metrics]'"
        ) from error
    metrics = Metrics()
    exposition = Exposition(
        version=version("trotline"),
        workers=metrics.workers.workers if workers else None,
        jobs=metrics.jobs.jobs if jobs else None,
        leading=(lambda: metrics.jobs.leading) if jobs and not workers else None,
    )
    async with serving(*host_and_port(address), exposition.text, CONTENT_TYPE):
        yield metrics
