"""Keeps the figures of a job that this command runs, for all who look at it, now or later."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from trotline.coordinator.observer import OBSERVE_EVERY, Extras, Observer
from trotline.errors import FrontierError
from trotline.ports.backend import OpenJob


@contextlib.asynccontextmanager
async def observed(opened: OpenJob, extras: Extras | None = None) -> AsyncIterator[None]:
    """Observe the job now and then while the block runs, and once at its end."""
    observer = Observer(opened.console, asyncio.get_running_loop().time, extras)
    observing = asyncio.create_task(_observe(observer))
    try:
        yield
    finally:
        observing.cancel()
        await asyncio.gather(observing, return_exceptions=True)
        await _look(observer)


async def _observe(observer: Observer) -> None:
    while True:
        await asyncio.sleep(OBSERVE_EVERY)
        await _look(observer)


async def _look(observer: Observer) -> None:
    # Workers and reports say that the frontier is unreachable: a point is missing in the series, and no more.
    with contextlib.suppress(FrontierError):
        await observer.observe()
