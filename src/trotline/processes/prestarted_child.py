"""Child processes that are started before their config is known.

The imports of a child take a few hundred milliseconds: a command starts it first, and reads settings and spider
meanwhile. This module itself imports little.
"""

import os
import subprocess
import sys
import tempfile
from typing import IO, Protocol

from trotline.worker.parsing_marker import SIZE


class Process(Protocol):
    """The part of `subprocess.Popen` that is used."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def wait(self) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def communicate(self) -> object: ...


class WaitingChild:
    """A process that waits for its config on standard input, with its marker and status pipe."""

    def __init__(self) -> None:
        self.taken = False
        """A supervisor has sent it its config."""
        self.cell = shared_cell()
        """Descriptor of its marker; the same number in both processes."""
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
        """Kill it, unless it has its config."""
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
