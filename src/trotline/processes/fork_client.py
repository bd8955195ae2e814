"""The supervisor's client of the fork server."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from typing import IO

from trotline.processes.prestarted_child import WaitingChild, shared_cell

_REQUEST = 8
_REPORT = 8


class ForkServer:
    """Started after a child has died, as others may follow: a new interpreter takes half a second of CPU each time."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "trotline.processes.fork_server"], stdin=theirs.fileno()
            )

    def launch(self) -> WaitingChild | None:
        """A process that waits for its config; None if the fork server ended."""
        with contextlib.suppress(OSError):
            return ForkedChild(self._control)
        return None

    def close(self) -> None:
        self._control.close()
        self._process.wait()


class ForkedChild(WaitingChild):
    """A process of the fork server, used like one that was started directly."""

    def __init__(self, control: socket.socket) -> None:
        self.taken = False
        self.cell = shared_cell()
        self.status, self.status_there = os.pipe()
        stdin, mine_in = os.pipe()
        mine_out, stdout = os.pipe()
        mine_report, report = os.pipe()
        request = self.cell.to_bytes(_REQUEST // 2, sys.byteorder) + self.status_there.to_bytes(
            _REQUEST // 2, sys.byteorder
        )
        theirs = [self.status_there, stdin, stdout, report]
        try:
            socket.send_fds(control, [request], [self.cell, *theirs])
        except OSError:
            for descriptor in (self.cell, self.status, mine_in, mine_out, mine_report):
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.process = ForkedProcess(mine_in, mine_out, mine_report)


class ForkedProcess:
    """A child of the fork server, with the interface of `subprocess.Popen`; the server reports pid and exit code."""

    def __init__(self, stdin: int, stdout: int, report: int) -> None:
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb")
        self.pid = 0
        """0 until it has started, and after its end."""
        self._report = report
        self._signals: list[int] = []

    def wait(self) -> int:
        self.pid = self._read_report() or 0
        for number in self._signals:
            self.send_signal(number)
        code = self._read_report()
        self.pid = 0
        os.close(self._report)
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
        """Close its pipes, and wait."""
        for pipe in (self.stdin, self.stdout):
            if pipe is not None:
                pipe.close()
        self.wait()

    def _read_report(self) -> int | None:
        report = os.read(self._report, _REPORT)
        return int.from_bytes(report, sys.byteorder, signed=True) if len(report) == _REPORT else None
