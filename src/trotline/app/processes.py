"""Child processes, as the supervisor sees them."""

import asyncio
import contextlib
import mmap
import os
import secrets
import socket
import sys
import tempfile

import msgspec

from trotline.app.orders import Orders
from trotline.worker.marker import SIZE, Marker


class ChildProcess:
    """A child, its marker, and what it says about itself."""

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, marker: Marker, said: asyncio.StreamReader
    ) -> None:
        self.name = name
        self.marker = marker
        self.status = ""
        self._process = process
        self._listening = asyncio.gather(self._listen(said), self._pass_on())

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        code = await self._process.wait()
        # Its last words are in the pipes; a grandchild that holds them open must not hold us.
        await asyncio.wait([self._listening], timeout=1.0)
        self._listening.cancel()
        return code

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _listen(self, said: asyncio.StreamReader) -> None:
        while line := await said.readline():
            self.status = msgspec.json.decode(line, type=str)

    async def _pass_on(self) -> None:
        """What the child prints goes to our standard error: beside a live view, and never into `--json`."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        while line := await self._process.stdout.read(65536):
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()


def worker_name(place: int) -> str:
    """Host, process and place, and a number of its own: an incarnation is never mistaken for an earlier one."""
    return f"{socket.gethostname()}-{os.getpid()}-{place}-{secrets.token_hex(3)}"


async def start_child(orders: Orders) -> ChildProcess:
    """Start a child with these orders (its name and descriptors are filled in here)."""
    cell = _shared_cell()
    read_end, write_end = os.pipe()
    try:
        orders = msgspec.structs.replace(orders, marker=cell, status=write_end)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "trotline.app.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(cell, write_end),
        )
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        process.stdin.write(msgspec.json.encode(orders) + b"\n")
        # Ctrl-C reaches a child that has hardly begun: that it is gone is told by `wait`, not here.
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()
        marker = Marker(mmap.mmap(cell, SIZE))
    finally:
        os.close(cell)
        os.close(write_end)
    return ChildProcess(orders.name, process, marker, await _reader(read_end))


def _shared_cell() -> int:
    if hasattr(os, "memfd_create"):
        cell = os.memfd_create("trotline-marker")
    else:
        with tempfile.TemporaryFile() as file:
            cell = os.dup(file.fileno())
    os.ftruncate(cell, SIZE)
    return cell


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return reader
