"""Child processes that are started before their config is known.

An interpreter with an HTTP client and a parser takes a few hundred milliseconds to be ready. A command that will
need one launches it first, and reads settings and spider meanwhile. This module imports next to nothing itself.
"""

import os
import subprocess
import sys
import tempfile
from typing import IO, Protocol

from trotline.worker.marker import SIZE


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def wait(self) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def communicate(self) -> object: ...


class WaitingChild:
    """A process that waits for its config on standard input, and what it shares with us."""

    def __init__(self) -> None:
        self.taken = False
        """It has its config, and a supervisor."""
        self.cell = shared_cell()
        """Its marker; the descriptor has the same number on both sides."""
        self.status, self.status_there = os.pipe()
        try:
            self.process: Process = subprocess.Popen(
                # -P: a spider in `copy.py` must not be imported as the module `copy`.
                [sys.executable, "-P", "-m", "trotline.processes.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(self.cell, self.status_there),
            )
        except BaseException:
            os.close(self.cell)
            os.close(self.status)
            raise
        finally:
            os.close(self.status_there)

    def abandon(self) -> None:
        """End it, unless it has its config."""
        if self.taken:
            return
        os.close(self.cell)
        os.close(self.status)
        self.process.kill()
        self.process.communicate()


def shared_cell() -> int:
    if hasattr(os, "memfd_create"):
        cell = os.memfd_create("trotline-marker")
    else:
        with tempfile.TemporaryFile() as file:
            cell = os.dup(file.fileno())
    os.ftruncate(cell, SIZE)
    return cell
