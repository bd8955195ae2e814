"""A site of many hosts for the hostile scenarios: good pages, poison pages, and one host that is a tar pit.

Every address of 127.0.0.0/8 is a host of its own, and so a lane of its own. The poison is named in the page and taken
by the handler (`trotline_hostile.py`): the page is what its author's parser would choke on.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bench.nginx import free_port, wait_for_port

POISONS = ("segfault", "memory", "loop", "regex")
TEXT = b"<p>" + b"Lorem ipsum dolor sit amet, consectetur adipiscing elit. " * 40 + b"</p>"
PIT = "127.0.200.1"
DRIP = 1.0
"""Seconds between two bytes of the tar pit."""


def host(number: int) -> str:
    return f"127.0.{number // 200}.{number % 200 + 1}"


@dataclass(frozen=True)
class Site:
    """So many good and bad pages, spread evenly over the hosts; the tar pit has as many pages as a host."""

    hosts: int
    good: int
    bad: int = 0
    pit: int = 0

    def links(self, name: str) -> list[str]:
        if name == PIT:
            return [f"/good/pit-{number}" for number in range(self.pit)]
        place = next(number for number in range(self.hosts) if host(number) == name)
        good = [f"/good/{number}" for number in range(place, self.good, self.hosts)]
        bad = [f"/bad/{POISONS[number % 4]}/{number}" for number in range(place, self.bad, self.hosts)]
        # Between the good ones, and on each host at another place: nowhere do twenty sites break in the same second.
        step = len(good) // (len(bad) + 1) + 1
        for number, each in enumerate(bad):
            good.insert((number + 1) * step + number - step * place // self.hosts, each)
        return good

    @property
    def seeds(self) -> list[str]:
        return [host(number) for number in range(self.hosts)] + ([PIT] if self.pit else [])


@dataclass(frozen=True)
class Request:
    moment: float
    host: str
    path: str


class Running:
    """The server process; its log is read when it has stopped."""

    def __init__(self, port: int, log: Path) -> None:
        self.port, self._log = port, log

    def requests(self) -> list[Request]:
        lines = (line.split(" ") for line in self._log.read_text().splitlines())
        return [Request(float(moment), name, path) for moment, name, path in lines]


@contextmanager
def serving(site: Site, folder: Path) -> Iterator[Running]:
    folder.mkdir(parents=True, exist_ok=True)
    port, log = free_port(), folder / "requests.log"
    sizes = [str(each) for each in (site.hosts, site.good, site.bad, site.pit)]
    process = subprocess.Popen([sys.executable, "-m", "bench.hostile", str(port), str(log), *sizes])
    try:
        wait_for_port(port, process)
        yield Running(port, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


async def serve(site: Site, port: int, log: TextIO) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = writer.get_extra_info("sockname")[0]
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode("latin-1")
                log.write(f"{time.time():.3f} {name} {path}\n")
                await _answer(site, name, path, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    # One socket for all the hosts; only loopback addresses reach the scenarios' crawler.
    await asyncio.start_server(answer, "0.0.0.0", port, backlog=4096)
    await stopped.wait()


async def _answer(site: Site, name: str, path: str, writer: asyncio.StreamWriter) -> None:
    if name == PIT and path.startswith("/good/"):
        for byte in b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + b"X-Pit: x\r\n" * 1000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(DRIP)
    status, body = "200 OK", b"<h1>" + path.encode() + b"</h1>" + TEXT
    if path == "/":
        body = "".join(f'<a href="{link}">{link}</a> ' for link in site.links(name)).encode()
    elif path.startswith("/bad/"):
        body = f'<meta name="poison" content="{path.split("/")[2]}">'.encode() + body
    elif not path.startswith("/good/"):
        status, body = "404 Not Found", b""
    writer.write(f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("log", type=Path)
    parser.add_argument("sizes", type=int, nargs=4, metavar=("HOSTS", "GOOD", "BAD", "PIT"))
    options = parser.parse_args()
    hosts, good, bad, pit = options.sizes
    with options.log.open("w", buffering=1) as log:
        asyncio.run(serve(Site(hosts, good, bad, pit), options.port, log))


if __name__ == "__main__":
    main()
