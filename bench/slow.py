"""A server with latency: answers every request from memory after a fixed delay. Nginx cannot wait by itself."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import TextIO

import uvloop

from bench.nginx import Server

MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
TYPES = {"html": b"text/html; charset=utf-8", "txt": b"text/plain"}


class SlowServer(Server):
    """The same site as nginx would serve, every answer `delay` seconds late."""

    delay = 0.1

    def command(self) -> list[str]:
        places = ["--root", str(self.root), "--port", str(self.port), "--log", str(self.log)]
        return [sys.executable, "-m", "bench.slow", *places, "--delay", str(self.delay)]


class Answers(asyncio.Protocol):
    """One connection: GET requests without bodies, one after another."""

    def __init__(self, pages: dict[bytes, bytes], delay: float, log: TextIO) -> None:
        self.pages, self.delay, self.log = pages, delay, log
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            path = self.buffer[:end].split(b" ", 2)[1]
            self.buffer = self.buffer[end + 4 :]
            asyncio.get_running_loop().call_later(self.delay, self.answer, path, time.time())

    def answer(self, path: bytes, arrived: float) -> None:
        body = self.pages.get(path, MISSING)
        self.log.write(f"{arrived:.3f} 0 {404 if body is MISSING else 200} {path.decode('latin-1')}\n")
        if not self.transport.is_closing():
            self.transport.write(body)  # type: ignore[attr-defined]


def load(root: Path) -> dict[bytes, bytes]:
    """Every file of the site as a finished answer."""
    return {
        f"/{file.relative_to(root)}".encode(): answer(file) for file in root.rglob("*.*") if file.suffix[1:] in TYPES
    }


def answer(file: Path) -> bytes:
    body = file.read_bytes()
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        TYPES[file.suffix[1:]],
        len(body),
        body,
    )


async def serve(root: Path, port: int, delay: float, log_path: Path) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    pages = load(root)
    with log_path.open("w", buffering=1 << 16) as log:
        server = await loop.create_server(lambda: Answers(pages, delay, log), "127.0.0.1", port, backlog=4096)
        await stopped.wait()
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a built site with latency.")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--delay", type=float, default=0.1)
    options = parser.parse_args()
    uvloop.run(serve(options.root, options.port, options.delay, options.log))


if __name__ == "__main__":
    main()
