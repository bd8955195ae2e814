"""The fast path: plain requests on an open connection, without aiohttp's session, request and response.

Those cost a page of 30 KB a tenth of its CPU. Most pages are plain: GET, the spider's own headers, no cookies, and a
connection to the host is open. They are written to it directly, and the answer is read from it. Everything else (the
first page of a host, tasks with headers or a body) uses aiohttp's session. Neither path sends a request twice.
"""

import re
from collections.abc import Mapping

from aiohttp import StreamReader
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import BaseConnector, Connection
from aiohttp.http import RawResponseMessage
from yarl import URL

from trotline.adapters.http.limited_connection import WatchedConnection

_KNOWN = 10_000
_NOT_PLAIN = re.compile(r"(?i)host|cookie|connection|content-length|transfer-encoding|expect")
"""Headers about the connection or the framing: a spider that sets one does not use the fast path."""

_Place = tuple[ConnectionKey, bytes]


class Reply:
    """The part of aiohttp's response that the fetcher uses."""

    __slots__ = ("_connection", "content", "headers", "status", "target_address", "version")
    method = "GET"

    def __init__(
        self, connection: Connection, target_address: str, message: RawResponseMessage, content: StreamReader
    ) -> None:
        self._connection: Connection | None = connection
        self.target_address = target_address
        self.status = message.code
        self.version = message.version
        self.headers = message.headers
        self.content = content
        content.on_eof(self._release)

    def close(self) -> None:
        """Close the connection, unless the body is complete."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release()


class FastPath:
    """Prepared plain requests by origin. One per fetcher."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._off = any(_NOT_PLAIN.fullmatch(name) for name in headers)
        self._lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._places: dict[str, _Place] = {}

    def learn(self, origin: str, url: URL, *, checks_certificate: bool) -> None:
        """Prepare for an origin that aiohttp has connected to. Should aiohttp use other connection keys than this, no
        connection is found, and the fast path is not used."""
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
        protocol = connection.protocol
        try:
            assert isinstance(protocol, WatchedConnection)  # noqa: S101 - for the type checker: the connector makes no other
            protocol.ask(b"GET " + target.encode("ascii") + place[1])
            message, content = await protocol.read()
        except BaseException:
            connection.close()
            raise
        return Reply(connection, protocol.target_address, message, content)
