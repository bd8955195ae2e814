"""Asking again on a connection that is open: the short way for plain pages.

aiohttp's way through session, request and response serves every case, and costs a page of 30 KB a tenth of its CPU.
Most pages are the plainest case of all: GET, the spider's own headers, no cookies, from a host that we have just asked.
Those are written to the open connection as they are, and the answer is read from it. Everything else goes aiohttp's
way: the first page of a host, and a page that has headers or a body of its own. Neither way sends a request twice.
"""

import re
from collections.abc import Mapping

from aiohttp import StreamReader
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import BaseConnector, Connection
from aiohttp.http import RawResponseMessage
from yarl import URL

from trotline.adapters.http.protocol import Line

_KNOWN = 10_000
_OURS = re.compile(r"(?i)host|cookie|connection|content-length|transfer-encoding|expect")
"""Headers that say something about the connection or the request: whoever sets them goes aiohttp's way."""

_Place = tuple[ConnectionKey, bytes]


class Reply:
    """The head of an answer, and the body to come: what of aiohttp's response the fetcher uses."""

    __slots__ = ("_connection", "content", "dialled", "headers", "status", "version")
    method = "GET"

    def __init__(self, connection: Connection, line: Line, message: RawResponseMessage, content: StreamReader) -> None:
        self._connection: Connection | None = connection
        self.dialled = line.dialled
        self.status = message.code
        self.version = message.version
        self.headers = message.headers
        self.content = content
        content.on_eof(self._release)

    def close(self) -> None:
        """Hang up, if the body is not complete."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release()


class Again:
    """Knows how plain requests to each origin look. One per fetcher."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._off = any(_OURS.fullmatch(name) for name in headers)
        self._lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._places: dict[str, _Place] = {}

    def learn(self, origin: str, url: URL, *, checks_certificate: bool) -> None:
        """An origin that was asked aiohttp's way. If aiohttp keeps its connections under another name than this one,
        none is found, and all that is lost is the short way."""
        if self._off or origin in self._places:
            return
        if len(self._places) >= _KNOWN:
            self._places.clear()
        key = ConnectionKey(
            host=url.raw_host or "",
            port=url.port,
            is_ssl=url.scheme == "https",
            ssl=checks_certificate,
            proxy=None,
            proxy_auth=None,
            proxy_headers_hash=None,
            server_hostname=None,
        )
        rest = f" HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n{self._lines}\r\n"
        self._places[origin] = (key, rest.encode())

    async def ask(self, connector: BaseConnector, origin: str, target: str) -> Reply | None:
        """The answer to `GET target`; None if there is no open connection."""
        place = self._places.get(origin)
        connection = None if place is None else await connector._get(place[0], [])
        if place is None or connection is None:
            return None
        line = connection.protocol
        try:
            assert isinstance(line, Line)  # noqa: S101 - for the type checker: the connector makes no other
            line.ask(b"GET " + target.encode("ascii") + place[1])
            message, content = await line.read()
        except BaseException:
            connection.close()
            raise
        return Reply(connection, line, message, content)
