"""Redis servers behind TLS, and a relay before each of them that notes what it was sent."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from trotline.testing.redis_server import RedisServer, SentinelServer
from trotline.testing.servers import listen
from trotline.testing.torture.certificates import Authority

PASSWORD = "hush-hush"  # noqa: S105 - a password of tests
MASTER = "shop"
HANDSHAKE = 0x16
"""The first byte that a client of TLS sends."""


class Relay:
    """Hands bytes on, and notes those that came from clients."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.sent: list[bytearray] = []
        """What each connection sent."""
        [self._listening] = listen(["127.0.0.1"])
        self.port: int = self._listening.getsockname()[1]
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._listening)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        noted = bytearray()
        self.sent.append(noted)
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        await asyncio.gather(_copy(reader, back, noted), _copy(there, writer, bytearray()), return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, noted: bytearray) -> None:
    try:
        while data := await source.read(65_536):
            noted += data
            target.write(data)
            await target.drain()
    finally:
        target.close()


@asynccontextmanager
async def relayed(*targets: int) -> AsyncIterator[list[Relay]]:
    relays = [Relay(target) for target in targets]
    try:
        for relay in relays:
            await relay.start()
        yield relays
    finally:
        for relay in relays:
            await relay.stop()


@contextmanager
def running(server: RedisServer) -> Iterator[RedisServer]:
    """It wants its password once it is up."""
    try:
        server.start()
        if not isinstance(server, SentinelServer):
            server.command("CONFIG", "SET", "requirepass", PASSWORD)
        yield server
    finally:
        server.kill()


def tls_settings(authority: Authority, port: int) -> dict[str, str]:
    authority.server("good")
    return {
        "tls-port": str(port),
        "tls-cert-file": authority.path("good.pem"),
        "tls-key-file": authority.path("good.key"),
        "tls-ca-cert-file": authority.path("ca.pem"),
        "tls-auth-clients": "no",
    }


def free_port() -> int:
    [found] = listen(["127.0.0.1"])
    with found:
        return int(found.getsockname()[1])


@asynccontextmanager
async def alone(folder: Path, authority: Authority) -> AsyncIterator[tuple[str, list[Relay]]]:
    """One server: what follows `rediss` in its URL, and the relays before it."""
    port = free_port()
    with running(RedisServer(folder, settings=tls_settings(authority, port))):
        async with relayed(port) as relays:
            yield f"://:{PASSWORD}@127.0.0.1:{relays[0].port}/0", relays


@asynccontextmanager
async def clustered(folder: Path, authority: Authority) -> AsyncIterator[tuple[str, list[Relay]]]:
    """A Cluster of one node, that names the relay as its address."""
    port = free_port()
    async with relayed(port) as relays:
        settings = tls_settings(authority, port) | {
            "cluster-enabled": "yes",
            "tls-cluster": "yes",
            "cluster-announce-ip": "127.0.0.1",
            "cluster-announce-tls-port": str(relays[0].port),
            "cluster-announce-bus-port": str(relays[0].port),
        }
        with running(RedisServer(folder, settings=settings)) as server:
            server.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383", login=PASSWORD)
            while b"cluster_state:ok" not in server.command("CLUSTER", "INFO", login=PASSWORD):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            yield f"+cluster://:{PASSWORD}@127.0.0.1:{relays[0].port}", relays


@asynccontextmanager
async def watched(folder: Path, authority: Authority) -> AsyncIterator[tuple[str, list[Relay]]]:
    """A server and the sentinel that knows it by its relay."""
    port, sentinel_port = free_port(), free_port()
    folders = [folder / "server", folder / "sentinel"]
    for each in folders:
        each.mkdir()
    async with relayed(port, sentinel_port) as relays:
        told = [
            *(f"{name} {value}" for name, value in tls_settings(authority, sentinel_port).items()),
            "tls-replication yes",
            f"sentinel monitor {MASTER} 127.0.0.1 {relays[0].port} 1",
            f"sentinel auth-pass {MASTER} {PASSWORD}",
            f"sentinel down-after-milliseconds {MASTER} 60000",
        ]
        with (
            running(RedisServer(folders[0], settings=tls_settings(authority, port))),
            running(SentinelServer(folders[1], "debian", told)),
        ):
            yield f"+sentinel://:{PASSWORD}@127.0.0.1:{relays[1].port}/{MASTER}", relays
