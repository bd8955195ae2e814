"""`trotline web`: from the plan to the end by Ctrl-C."""

import asyncio
from collections.abc import Callable

from trotline.commands.web import WebPlan
from trotline.model.time import Seconds
from trotline.processes.signals import obeyed
from trotline.web import log
from trotline.web.access import Access
from trotline.web.figures import Figures
from trotline.web.jobs_index import JobsIndex
from trotline.web.pages.render import Pages
from trotline.web.routes import ROUTES
from trotline.web.server import application, listening
from trotline.web.sessions import Tokens
from trotline.web.site import Site
from trotline.web.snapshots import Snapshots

_TIDY_EVERY: Seconds = 5.0


def made(plan: WebPlan) -> Site:
    index = JobsIndex(plan.settings)
    return Site(
        plan=plan,
        access=Access(Tokens(plan.view, plan.operate)),
        index=index,
        snapshots=Snapshots(index),
        figures=Figures(index),
        pages=Pages(),
    )


async def serve(plan: WebPlan, ready: Callable[[str], None]) -> None:
    """Until a signal. `ready` gets the address when connections are accepted."""
    log.to_stderr()
    site = made(plan)
    stop = asyncio.Event()
    tidying = asyncio.create_task(_tidy(site.index))
    try:
        with obeyed(stop.set):
            async with listening(application(site, ROUTES), plan.host, plan.port) as (host, port):
                ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
                await stop.wait()
    finally:
        tidying.cancel()
        await site.index.close()


async def _tidy(index: JobsIndex) -> None:
    while True:
        await asyncio.sleep(_TIDY_EVERY)
        await index.close_idle()
