"""Proxies from a list over HTTP: whoever writes the list does not choose what we connect to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy, ProxyScheme
from trotline.model.task import Task


@asynccontextmanager
async def _listener() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server on this machine that was not meant for us: its port, and what it received."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], received


async def _fetch(proxy: Proxy, allow: tuple[str, ...] = ()) -> Failure:
    fetcher = HttpFetcher(Limits(connect=2.0), user_agent="Trotline", spider="test", allow=allow, proxy=proxy, slots=1)
    try:
        # An address literal that is public: nothing is resolved, and the proxy is asked first.
        found = await fetcher.fetch(Task(url="http://93.184.216.34/", route="page"))
    finally:
        await fetcher.close()
    assert isinstance(found, Failure)
    return found


@pytest.mark.parametrize("scheme", list(ProxyScheme))
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1"])
async def test_a_list_over_http_cannot_point_at_this_machine(scheme: ProxyScheme, host: str) -> None:
    async with _listener() as (port, received):
        proxy = Proxy.parse(f"{scheme}://anna:s3cret-77@{host}:{port}", listed_elsewhere=True)
        failure = await _fetch(proxy)
        assert failure.trouble is FailureKind.PROXY
        assert "its list is read over HTTP" in failure.why
        assert "--allow" in failure.why
        assert received == []


async def test_the_operator_can_allow_it() -> None:
    async with _listener() as (port, received):
        await _fetch(Proxy(host="127.0.0.1", port=port, listed_elsewhere=True), allow=("127.0.0.0/8",))
        assert received[0].startswith(b"CONNECT 93.184.216.34:80")


async def test_a_proxy_that_the_operator_wrote_may_be_private() -> None:
    async with _listener() as (port, received):
        await _fetch(Proxy(host="127.0.0.1", port=port))
        assert received[0].startswith(b"CONNECT 93.184.216.34:80")
