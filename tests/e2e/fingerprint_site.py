"""A site over TLS that records how its clients speak: ClientHello, HTTP version, HTTP/2 settings, order of headers.

`admits` decides who gets pages; all others get 403, as from a bot filter.
"""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, StreamEnded
from h2.settings import SettingCodes

_GREASE = frozenset(0x0A0A + 0x1010 * number for number in range(16))


@dataclass(frozen=True)
class Hello:
    """The parts of a ClientHello that tell clients apart, without random values and GREASE."""

    ciphers: tuple[int, ...]
    extensions: frozenset[int]
    """Chrome sends them in random order."""

    @classmethod
    def parse(cls, record: bytes) -> "Hello":
        at = 5 + 4 + 2 + 32
        at += 1 + record[at]
        (size,) = struct.unpack_from("!H", record, at)
        ciphers = struct.unpack_from(f"!{size // 2}H", record, at + 2)
        at += 2 + size
        at += 1 + record[at]
        (left,) = struct.unpack_from("!H", record, at)
        at, extensions = at + 2, set()
        end = at + left
        while at < end:
            kind, size = struct.unpack_from("!HH", record, at)
            extensions.add(kind)
            at += 4 + size
        return cls(
            tuple(one for one in ciphers if one not in _GREASE),
            frozenset(one for one in extensions if one not in _GREASE),
        )


@dataclass
class Seen:
    hello: Hello
    alpn: str
    path: str
    headers: list[tuple[str, str]]
    settings: dict[int, int] = field(default_factory=dict)

    def header(self, name: str) -> str:
        return next((value for known, value in self.headers if known.lower() == name), "")


@dataclass
class FingerprintSite:
    context: ssl.SSLContext
    admits: Callable[[Seen], bool] = lambda _: True
    page: bytes = b"<h1>hello</h1><a href='/next'>next</a>"
    h2: bool = True
    port: int = 0
    log: list[Seen] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/") -> str:
        return f"https://localhost:{self.port}{path}"

    @contextmanager
    def running(self) -> Iterator["FingerprintSite"]:
        self.context.set_alpn_protocols(["h2", "http/1.1"] if self.h2 else ["http/1.1"])
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
            self.port = listening.getsockname()[1]
            threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
            yield self

    def _accept(self, listening: socket.socket) -> None:
        # Closed under it at the end.
        with suppress(OSError):
            while True:
                conn, _ = listening.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn: socket.socket) -> None:
        conn.settimeout(30)
        # Clients come and go as they like.
        with suppress(OSError, ssl.SSLError), conn:
            record = self._first_record(conn)
            with self.context.wrap_socket(conn, server_side=True) as tls:
                alpn = tls.selected_alpn_protocol() or ""
                (self._speak_h2 if alpn == "h2" else self._speak_h1)(tls, Hello.parse(record), alpn)

    def _first_record(self, conn: socket.socket) -> bytes:
        head = conn.recv(5, socket.MSG_PEEK | socket.MSG_WAITALL)
        size = 5 + struct.unpack("!H", head[3:5])[0]
        return conn.recv(size, socket.MSG_PEEK | socket.MSG_WAITALL)

    def answer(self, seen: Seen) -> tuple[int, bytes]:
        self.log.append(seen)
        if seen.path == "/robots.txt":
            return 404, b""
        return (200, self.page) if self.admits(seen) else (403, b"<h1>Forbidden</h1>")

    def _speak_h1(self, tls: ssl.SSLSocket, hello: Hello, alpn: str) -> None:
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = tls.recv(65536)
                if not more:
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
            status, body = self.answer(Seen(hello, alpn or "http/1.1", first.split(" ")[1], headers))
            tls.sendall(
                b"HTTP/1.1 %d X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body
            )

    def _speak_h2(self, tls: ssl.SSLSocket, hello: Hello, alpn: str) -> None:
        talk = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        talk.initiate_connection()
        tls.sendall(talk.data_to_send())
        heads: dict[int, list[tuple[str, str]]] = {}
        while data := tls.recv(65536):
            for event in talk.receive_data(data):
                if isinstance(event, RequestReceived):
                    heads[event.stream_id] = list(event.headers)
                elif isinstance(event, StreamEnded):
                    self._answer_h2(talk, event.stream_id, heads.pop(event.stream_id), hello, alpn)
            tls.sendall(talk.data_to_send())

    def _answer_h2(
        self, talk: H2Connection, stream: int, headers: list[tuple[str, str]], hello: Hello, alpn: str
    ) -> None:
        told = {int(code): talk.remote_settings[code] for code in SettingCodes if code in talk.remote_settings}
        path = dict(headers)[":path"]
        status, body = self.answer(Seen(hello, alpn, path, headers, told))
        pairs = [(":status", str(status)), ("content-type", "text/html"), ("content-length", str(len(body)))]
        talk.send_headers(stream, pairs, end_stream=not body)
        if body:
            talk.send_data(stream, body, end_stream=True)


def python_hello() -> Hello:
    """What Python's own TLS says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        talk.do_handshake()
    return Hello.parse(outgoing.read())
