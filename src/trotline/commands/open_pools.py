"""The proxy pools of a frontier, for views."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trotline.config import backends
from trotline.frontier.pool_status import PoolWatch


@asynccontextmanager
async def pool_watch(frontier: str) -> AsyncIterator[PoolWatch]:
    opened = PoolWatch(lambda: backends.open_proxy_pools(frontier))
    try:
        yield opened
    finally:
        await opened.close()
