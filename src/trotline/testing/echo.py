"""A server that answers with what it saw of the client: for tests of `trotline proxies check`.

    async with EchoServer() as echo:
        ...  # ask echo.url through a proxy: {"address": "127.0.0.21", "headers": {...}}

`page` answers something else instead.
"""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Self

Headers = dict[str, str]
_LONGEST_HEAD = 64 * 1024


def plain(address: str, headers: Headers) -> bytes:
    return json.dumps({"address": address, "headers": headers}).encode()


class EchoServer:
    """Listens on a free port of loopback. `asked` has the headers of every request."""

    def __init__(
        self,
        page: Callable[[str, Headers], bytes] = plain,
        *,
        host: str = "127.0.0.1",
        status: int = 200,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`page` makes the body from the client's address and its headers."""
        self.page = page
        self.status = status
        self.asked: list[Headers] = []
        self.connections = 0
        self._host = host
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None, "use it with `async with`"
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        name = "localhost" if self._tls else self._host
        return f"{'https' if self._tls else 'http'}://{name}:{self.port}/"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0, limit=_LONGEST_HEAD, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = (line.partition(":") for line in head.removesuffix("\r\n\r\n").split("\r\n")[1:])
            headers = {name.strip(): value.strip() for name, _, value in lines}
            self.asked.append(headers)
            body = self.page(str(writer.get_extra_info("peername")[0]), headers)
            first = f"HTTP/1.1 {self.status} Answer\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            answer = f"{first}\r\nConnection: close\r\n\r\n".encode() + (b"" if head.startswith("HEAD ") else body)
            writer.write(answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return
        finally:
            self._serving.discard(task)
            writer.close()
