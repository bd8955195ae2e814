"""A web site of a test's own, on loopback addresses."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from trotline.testing.servers import listen

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(site: Answer | web.Application, hosts: Sequence[str] = ("127.0.0.1",)) -> AsyncIterator[str]:
    """The address of the first host, without a slash at the end. `site`: answers all requests, or has routes."""
    if not isinstance(site, web.Application):
        answer, site = site, web.Application()
        site.router.add_route("*", "/{path:.*}", answer)
    sockets = listen(hosts)
    # A test that ends in the middle of a slow page should not wait for it.
    runner = web.AppRunner(site, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        for socket in sockets:
            await web.SockSite(runner, socket).start()
        yield f"http://{hosts[0]}:{sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()
