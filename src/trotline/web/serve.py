"""`trotline web`: from the plan to the end by Ctrl-C."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from aiohttp import web

from trotline.commands.web import WebPlan
from trotline.model.time import Seconds
from trotline.processes.signals import obeyed
from trotline.web import log
from trotline.web.authentication import Access
from trotline.web.downloads import Downloads
from trotline.web.errors import refusal
from trotline.web.forwarded_for import Trusted
from trotline.web.job_snapshots import Snapshots
from trotline.web.jobs_index import JobsIndex
from trotline.web.kind_counts import RowCounter
from trotline.web.login_sessions import Tokens
from trotline.web.metrics import Metrics
from trotline.web.pages.render import Pages
from trotline.web.routes import ROUTES
from trotline.web.seeding import Seeding
from trotline.web.series_and_alerts import Figures
from trotline.web.server import application, listening
from trotline.web.server_sent_events import Feeds
from trotline.web.server_state import Site
from trotline.web.spiders import Spiders

_AGAIN: Seconds = 5.0


def made(plan: WebPlan) -> Site:
    index, feeds = JobsIndex(plan.settings), Feeds()
    return Site(
        plan=plan,
        access=Access(Tokens(plan.view, plan.operate), Trusted(plan.trust_proxies)),
        index=index,
        snapshots=Snapshots(index),
        figures=Figures(index),
        pages=Pages(),
        feeds=feeds,
        downloads=Downloads(),
        spiders=Spiders(plan.spiders, plan.pools),
        seeding=Seeding(),
        row_counts=RowCounter(),
        metrics=Metrics(lambda: feeds.streams),
    )


async def serve(plan: WebPlan, ready: Callable[[str], None]) -> None:
    """Until a signal. `ready` gets the address when connections are accepted."""
    log.to_stderr()
    site = made(plan)
    stop = asyncio.Event()
    app = application(site, ROUTES)

    async def end_streams(_: web.Application) -> None:
        site.feeds.close()
        await site.seeding.close()

    app.on_shutdown.append(end_streams)
    background = [asyncio.create_task(_repeated(work)) for work in (site.index.tidy, site.snapshots.observe_all)]
    try:
        with obeyed(stop.set):
            if plan.end_with_stdin:
                asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _end_if_closed, stop)
            # The program that started us reads the address.
            any_port = plan.end_with_stdin
            async with listening(app, plan.host, plan.port, site.access.trusted, or_any_port=any_port) as (host, port):
                ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
                await stop.wait()
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await site.index.close()


def _end_if_closed(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()


async def _repeated(work: Callable[[], Awaitable[None]]) -> None:
    """Work without an end. What fails unexpectedly is logged, and begun again: the pages go on without it."""
    while True:
        try:
            await work()
        except Exception as error:
            refusal(error)
        await asyncio.sleep(_AGAIN)
