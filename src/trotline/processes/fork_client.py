"""The nursery as the supervisor sees it: a place to get a warm worker process from, for the price of a fork."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from typing import IO

from trotline.processes.child_process import Launched, shared_cell

_ASKED = 8
_TOLD = 8


class Nursery:
    """Started when a child has died, because others may follow: an interpreter takes half a second of CPU each time."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "trotline.processes.fork_server"], stdin=theirs.fileno()
            )

    def launch(self) -> Launched | None:
        """A process that waits for its orders; None if the nursery is gone."""
        with contextlib.suppress(OSError):
            return Forked(self._control)
        return None

    def close(self) -> None:
        self._control.close()
        self._process.wait()


class Forked(Launched):
    """A process from the nursery. The same to whoever gives it orders."""

    def __init__(self, control: socket.socket) -> None:
        self.taken = False
        self.cell = shared_cell()
        self.status, self.status_there = os.pipe()
        stdin, mine_in = os.pipe()
        mine_out, stdout = os.pipe()
        mine_told, told = os.pipe()
        asked = self.cell.to_bytes(_ASKED // 2, sys.byteorder) + self.status_there.to_bytes(_ASKED // 2, sys.byteorder)
        theirs = [self.status_there, stdin, stdout, told]
        try:
            socket.send_fds(control, [asked], [self.cell, *theirs])
        except OSError:
            for descriptor in (self.cell, self.status, mine_in, mine_out, mine_told):
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.process = ForkedProcess(mine_in, mine_out, mine_told)


class ForkedProcess:
    """As much of `subprocess.Popen` as is used here. It is another process's child, which tells how it ended."""

    def __init__(self, stdin: int, stdout: int, told: int) -> None:
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb")
        self.pid = 0
        """0 until it is born, and after its end."""
        self._told = told
        self._signals: list[int] = []

    def wait(self) -> int:
        self.pid = self._hear() or 0
        for number in self._signals:
            self.send_signal(number)
        code = self._hear()
        self.pid = 0
        os.close(self._told)
        return -signal.SIGKILL if code is None else code

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        if self.pid:
            os.kill(self.pid, number)
        else:
            self._signals.append(number)

    def communicate(self) -> None:
        """Let go of its pipes, and wait."""
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                pipe.close()
        self.wait()

    def _hear(self) -> int | None:
        told = os.read(self._told, _TOLD)
        return int.from_bytes(told, sys.byteorder, signed=True) if len(told) == _TOLD else None
