"""A small DNS server that misbehaves on demand: for tests of what a crawler does with names.

    zone = {
        "shop.test": A("93.184.216.34"),
        "mixed.test": A("93.184.216.34", "10.0.0.1"),
        "rebind.test": Turns(A("93.184.216.34"), A("169.254.169.254")),
        "slow.test": Slow(5, A("93.184.216.34")),
        "*.shop.test": CNAME("shop.test"),
        "broken.test": SERVFAIL,
    }
    async with DnsServer(zone) as dns:
        ...  # ask 127.0.0.1, port dns.port, over UDP or TCP

It is authoritative for its zone and for nothing else: other names do not exist. docs/reference/dns-server.md.
"""

import asyncio
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple, Self, cast

from trotline.testing.server_thread import in_thread
from trotline.testing.servers import listen

TYPE_A, TYPE_CNAME, TYPE_AAAA = 1, 5, 28
_KINDS = {TYPE_A: "A", TYPE_CNAME: "CNAME", TYPE_AAAA: "AAAA"}
_NO_ERROR, _FORMAT_ERROR, _SERVFAIL, _NXDOMAIN, _REFUSED = 0, 1, 2, 3, 5
_UDP_ROOM = 512
"""A longer answer is cut, and the asker comes again over TCP, as resolvers do."""
_LONGEST = 65_535
_CHAIN = 64


@dataclass(frozen=True)
class A:
    """Addresses, IPv4 and IPv6 as they come."""

    addresses: tuple[str, ...]
    ttl: int

    def __init__(self, *addresses: str, ttl: int = 0) -> None:
        object.__setattr__(self, "addresses", addresses)
        object.__setattr__(self, "ttl", ttl)


@dataclass(frozen=True)
class CNAME:
    """Another name for it; the answer has the whole chain. A loop is answered as far as one can walk."""

    target: str


@dataclass(frozen=True)
class Code:
    """An answer that is only a code."""

    number: int


NXDOMAIN = Code(_NXDOMAIN)
SERVFAIL = Code(_SERVFAIL)
REFUSED = Code(_REFUSED)


@dataclass(frozen=True)
class Silence:
    """Never an answer."""


@dataclass(frozen=True)
class Garbage:
    """These bytes instead of a message."""

    data: bytes = b"\xff" * 40


@dataclass(frozen=True)
class Slow:
    """An answer after so many seconds."""

    seconds: float
    then: "Answer"


@dataclass(frozen=True)
class Turns:
    """One answer after another, counted for each name and kind; the last one stays. This is rebinding."""

    answers: tuple["Answer", ...]

    def __init__(self, *answers: "Answer") -> None:
        object.__setattr__(self, "answers", answers)


Answer = A | CNAME | Code | Silence | Garbage | Slow | Turns


class Question(NamedTuple):
    name: str
    kind: str
    """"A", "AAAA", "CNAME", or the number of another type."""
    tcp: bool


class DnsServer:
    """Use it as `async with DnsServer(zone) as dns`, or in a thread as `with DnsServer.in_thread(zone) as dns`."""

    def __init__(self, zone: Mapping[str, Answer], host: str = "127.0.0.1", port: int = 0) -> None:
        """`zone` may be changed while the server runs. `*.name` answers for everything below that has no own entry."""
        self.zone = dict(zone)
        self.host = host
        self.port = port
        self.questions: list[Question] = []
        """What was asked so far."""
        self._turns: Counter[tuple[str, int]] = Counter()
        self._waiting: set[asyncio.Task[None]] = set()

    @classmethod
    @contextmanager
    def in_thread(cls, zone: Mapping[str, Answer], host: str = "127.0.0.1", port: int = 0) -> Iterator[Self]:
        with in_thread(cls(zone, host, port), "dns server") as server:
            yield server

    async def __aenter__(self) -> Self:
        [listening] = listen([self.host], self.port)
        self.port = listening.getsockname()[1]
        self._tcp = await asyncio.start_server(self._serve_tcp, sock=listening)
        self._udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Datagrams(self), (self.host, self.port)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._udp.close()
        self._tcp.close()
        for task in list(self._waiting):
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        await self._tcp.wait_closed()

    async def _serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            while True:
                (size,) = struct.unpack("!H", await reader.readexactly(2))
                message = await self.answer(await reader.readexactly(size), tcp=True)
                if message is not None:
                    writer.write(struct.pack("!H", len(message)) + message)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            self._waiting.discard(task)
            writer.close()

    async def answer(self, message: bytes, *, tcp: bool) -> bytes | None:
        """The bytes to send back; None for silence."""
        asked = _read_question(message)
        if asked is None:
            return (message + b"\0\0")[:2] + struct.pack("!HHHHH", 0x8000 | _FORMAT_ERROR, 0, 0, 0, 0)
        name, kind = asked
        self.questions.append(Question(name, _KINDS.get(kind, str(kind)), tcp))
        said = await self._said(name, kind)
        if isinstance(said, Silence):
            return None
        if isinstance(said, Garbage):
            return said.data
        records, code = self._records(name, kind, said)
        return _message(message, records, code, _LONGEST if tcp else _UDP_ROOM)

    async def _said(self, name: str, kind: int) -> Answer:
        """What the zone says to this question, after waiting and taking turns."""
        said = self._entry(name)
        while isinstance(said, (Slow, Turns)):
            if isinstance(said, Slow):
                await asyncio.sleep(said.seconds)
                said = said.then
            else:
                turn = self._turns[name, kind]
                self._turns[name, kind] += 1
                said = said.answers[min(turn, len(said.answers) - 1)]
        return said

    def _entry(self, name: str) -> Answer:
        found = self.zone.get(name)
        parent = name
        while found is None and "." in parent:
            parent = parent.partition(".")[2]
            found = self.zone.get(f"*.{parent}")
        return found or NXDOMAIN

    def _records(self, name: str, kind: int, said: Answer) -> tuple[list[bytes], int]:
        """The answer section and the code. A chain of names is walked to its end."""
        records: list[bytes] = []
        for _ in range(_CHAIN):
            match said:
                case CNAME(target):
                    records.append(_record(name, TYPE_CNAME, 0, _wire_name(target)))
                    name, said = target, self._entry(target)
                case A(addresses, ttl):
                    parsed = [ip_address(address) for address in addresses]
                    wanted = [each for each in parsed if isinstance(each, IPv6Address) == (kind == TYPE_AAAA)]
                    if kind in (TYPE_A, TYPE_AAAA):
                        records += [_record(name, kind, ttl, each.packed) for each in wanted]
                    return records, _NO_ERROR
                case Code(number):
                    return records, number
                case _:
                    return records, _SERVFAIL
        return records, _NO_ERROR


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, asker: tuple[str, int]) -> None:
        task = asyncio.get_running_loop().create_task(self._reply(data, asker))
        self._server._waiting.add(task)
        task.add_done_callback(self._server._waiting.discard)

    async def _reply(self, data: bytes, asker: tuple[str, int]) -> None:
        message = await self._server.answer(data, tcp=False)
        if message is not None:
            self._transport.sendto(message, asker)


def _read_question(message: bytes) -> tuple[str, int] | None:
    """Name and type of the first question; None if it is not a question."""
    if len(message) < 17 or message[2] & 0x80 or message[4:6] == b"\0\0":
        return None
    labels, place = [], 12
    while place < len(message) and (size := message[place]):
        if size > 63:
            return None
        labels.append(message[place + 1 : place + 1 + size])
        place += 1 + size
    if place + 5 > len(message):
        return None
    (kind,) = struct.unpack_from("!H", message, place + 1)
    return b".".join(labels).decode("ascii", "replace").lower(), kind


def _message(question: bytes, records: list[bytes], code: int, room: int) -> bytes:
    end = 12
    while question[end]:
        end += 1 + question[end]
    asked = question[12 : end + 5]
    kept, size = 0, 12 + len(asked)
    while kept < len(records) and size + len(records[kept]) <= room:
        size += len(records[kept])
        kept += 1
    cut = 0x0200 if kept < len(records) and room == _UDP_ROOM else 0
    wants_recursion = question[2] & 1
    # An answer, authoritative, recursion available: a stub resolver wants no less.
    flags = 0x8480 | wants_recursion << 8 | cut | code
    return question[:2] + struct.pack("!HHHHH", flags, 1, kept, 0, 0) + asked + b"".join(records[:kept])


def _record(name: str, kind: int, ttl: int, data: bytes) -> bytes:
    return _wire_name(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def _wire_name(name: str) -> bytes:
    labels = [label.encode("ascii") for label in name.rstrip(".").split(".")]
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
