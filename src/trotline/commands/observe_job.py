"""Keeps the figures of a job that this command runs, for all who look at it, now or later."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from trotline.coordinator.job_observer import OBSERVE_EVERY, Extras, Observation, Observer
from trotline.errors import FrontierError
from trotline.ports.backend import OpenJob

if TYPE_CHECKING:
    from trotline.commands.open_alerts import JobAlerts


@contextlib.asynccontextmanager
async def observed(
    opened: OpenJob,
    alerts: "JobAlerts | None" = None,
    extras: Extras | None = None,
    seen: Callable[[Observation], None] | None = None,
) -> AsyncIterator[None]:
    """Observe the job now and then while the block runs, and once at its end; with its alerts, if any are wanted.
    `seen` gets each observation but the last."""
    observer = Observer(opened.console, asyncio.get_running_loop().time, extras)

    async def look() -> None:
        observation = await (observer.observe() if alerts is None else alerts.look())
        if seen is not None:
            seen(observation)

    observing = asyncio.create_task(_observe(look))
    try:
        yield
    finally:
        observing.cancel()
        await asyncio.gather(observing, return_exceptions=True)
        await _once(observer.observe if alerts is None else alerts.finish)


async def _observe(look: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(OBSERVE_EVERY)
        await _once(look)


async def _once(look: Callable[[], Awaitable[object]]) -> None:
    # Workers and reports say that the frontier is unreachable: a point is missing in the series, and no more.
    with contextlib.suppress(FrontierError):
        await look()
