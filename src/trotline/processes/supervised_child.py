"""A running child process, for the supervisor."""

import asyncio
import contextlib
import logging
import mmap
import os
import secrets
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TextIO

import msgspec

from trotline.config.pool_sources import MOST_POOLS
from trotline.model.work_stats import WorkStats
from trotline.processes.child_config import ChildConfig, ChildStatus
from trotline.processes.prestarted_child import WaitingChild
from trotline.rules import redaction
from trotline.rules.child_output import ChildOutput, Renderer
from trotline.rules.pool_names import POOL
from trotline.rules.worker_info import checked
from trotline.worker.parsing_marker import SIZE, Marker

LONGEST_STATUS = 600
"""Characters of a child's status line."""

log = logging.getLogger("trotline.processes")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class SupervisedChild:
    """A child with its marker, and its status lines."""

    def __init__(self, name: str, launched: WaitingChild, renderer: Renderer | None = None) -> None:
        self.name = name
        self._renderer = renderer
        self.marker = Marker(mmap.mmap(launched.cell, SIZE))
        self.status = ""
        self.pools: tuple[str, ...] = ()
        self.proxies_trouble = ""
        self.stats: WorkStats | None = None
        os.close(launched.cell)
        launched.taken = True
        self._process = launched.process
        # A thread of its own: there may be more processes than threads in the loop's default executor.
        waiter = ThreadPoolExecutor(1, thread_name_prefix="trotline-child")
        self._ending = asyncio.get_running_loop().run_in_executor(waiter, self._process.wait)
        waiter.shutdown(wait=False)
        self._listening = asyncio.gather(self._listen(launched.status), self._pass_on())

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        code = await asyncio.shield(self._ending)
        # Read what is left in the pipes; with a timeout, as a grandchild may keep them open.
        await asyncio.wait([self._listening], timeout=1.0)
        self._listening.cancel()
        return code

    def resident(self) -> int:
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_bytes().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * _PAGE

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _listen(self, descriptor: int) -> None:
        pipe = await _reader(os.fdopen(descriptor, "rb"))
        begun = b""
        while some := await pipe.read(65536):
            *lines, begun = (begun + some).split(b"\n")
            # Only the last line is used; a line without end is truncated.
            begun = begun[:65536]
            if lines:
                self._set_status(lines[-1])

    def _set_status(self, line: bytes) -> None:
        """Untrusted: the author's code in the child may write anything to the pipe."""
        try:
            status = msgspec.json.decode(line, type=ChildStatus)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            log.warning("child.status_unreadable name=%s %r", self.name, line[:100])
            return
        self.pools = tuple(pool for pool in status.pools[:MOST_POOLS] if not pool or POOL.fullmatch(pool))
        self.stats = checked(status.stats) or self.stats
        self.status = _shown(status.held_back)
        self.proxies_trouble = _shown(status.proxies_trouble)

    async def _pass_on(self) -> None:
        """Write the child's output to our standard error, never into `--json`."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        clock = asyncio.get_running_loop().time
        pipe = await _reader(self._process.stdout)
        printed = ChildOutput(clock(), self._renderer)
        while some := await pipe.read(65536):
            self._print(printed.feed(some, clock()))
        self._print(printed.end(clock()))

    def _print(self, shown: str) -> None:
        # A closed terminal must not block the child.
        with contextlib.suppress(OSError):
            if shown:
                target = sys.stderr if self._renderer is None else _raw_stderr()
                target.write(shown)
                target.flush()


def _shown(text: str) -> str:
    shown = redaction.text(text[: 2 * LONGEST_STATUS])[:LONGEST_STATUS]
    return "".join(char if char.isprintable() else " " for char in shown)


def worker_name(place: int) -> str:
    """Host, process, place and a random number: unique for every incarnation."""
    return f"{socket.gethostname()}-{os.getpid()}-{place}-{secrets.token_hex(3)}"


def start_child(config: ChildConfig, launched: WaitingChild | None = None) -> SupervisedChild:
    """Send the config, with its descriptors filled in, to a waiting process or to a new one."""
    launched = launched or WaitingChild()
    config = msgspec.structs.replace(config, marker=launched.cell, status=launched.status_there)
    renderer = None
    if config.settings.log_format == "json":
        from trotline.rules.child_log import JsonLines

        # Not guessable: pages that handlers print must not look like log lines.
        config = msgspec.structs.replace(config, log_mark=f"\x1e{secrets.token_hex(16)} ")
        names = {"job": config.job.id, "worker": config.name, "spider": config.job.spider}
        renderer = JsonLines(config.log_mark, names, time.time)
    stdin = launched.process.stdin
    assert stdin is not None  # noqa: S101 - a pipe was asked for
    # The child may have died meanwhile (Ctrl-C).
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(msgspec.json.encode(config) + b"\n")
        stdin.flush()
    return SupervisedChild(config.name, launched, renderer)


def _raw_stderr() -> TextIO:
    from trotline.config import logs

    return logs.raw_stderr()


async def _reader(pipe: IO[bytes]) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader
