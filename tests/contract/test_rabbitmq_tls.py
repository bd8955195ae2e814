"""RabbitMQ behind TLS: a plain server with a TLS terminator before it, as many clouds have it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.contract.rabbitmq_servers import rabbit

from trotline.adapters.amqp.server_check import notices
from trotline.errors import FrontierUnreachable
from trotline.testing.torture.certificates import Authority

pytestmark = pytest.mark.xdist_group("rabbitmq")


@asynccontextmanager
async def terminator(authority: Authority, kind: str) -> AsyncIterator[int]:
    """Its port."""

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, to_server = await asyncio.open_connection("127.0.0.1", rabbit().port)
        await asyncio.gather(copy(reader, to_server), copy(behind, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=authority.server(kind))
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_server_whose_certificate_is_trusted_is_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with terminator(authority, "good") as port:
        assert await notices(f"amqps://127.0.0.1:{port}/?ca={authority.path('ca.pem')}") == []


async def test_another_certificate_is_named_as_the_reason(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with terminator(authority, "self-signed") as port:
        with pytest.raises(FrontierUnreachable, match="TLS handshake failed"):
            await notices(f"amqps://127.0.0.1:{port}/?ca={authority.path('ca.pem')}")
