"""A process that imports everything once, and forks a worker process on request.

It opens nothing and starts no thread, so only code is carried across the fork. A request comes through standard input,
a socket: the numbers of the descriptors in the supervisor, and the descriptors themselves.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
from pathlib import Path

from trotline.processes import child, process_memory

REQUEST = struct.Struct("ii")
"""Descriptor numbers of the marker and of the status pipe, as in the child's config."""
REPORT = struct.Struct("q")
"""Written to the report pipe: first the pid, then the exit code."""
DESCRIPTORS = 5
"""Marker, status, standard input, output, and the report pipe."""
_PR_SET_PDEATHSIG = 1


def main() -> int:
    control = socket.socket(fileno=os.dup(0))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child.warm_up()
    process_memory.tune()
    awakened, waker = socket.socketpair()
    for end in (awakened, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control, awakened], [], [])
        if awakened in ready:
            with contextlib.suppress(BlockingIOError):
                awakened.recv(4096)
            _reap(children)
        if control in ready:
            request, descriptors, _, _ = socket.recv_fds(control, REQUEST.size, DESCRIPTORS)
            if len(request) < REQUEST.size or len(descriptors) < DESCRIPTORS:
                # The supervisor ended: the children see the end of their standard input, and shut down gracefully. They
                # would be killed with this process, so it ends last.
                _reap(children, wait=True)
                return 0
            _fork(descriptors, REQUEST.unpack(request), children)


def _fork(descriptors: list[int], numbers: tuple[int, ...], children: dict[int, int]) -> None:
    *given, report = descriptors
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _prepare_child(given, numbers, parent)
            code = child.serve()
        finally:
            # Never return to the server's loop.
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(code)
    children[pid] = report
    for descriptor in given:
        os.close(descriptor)
    _report(report, pid)


def _prepare_child(given: list[int], numbers: tuple[int, ...], parent: int) -> None:
    """In the new process: move the descriptors to their numbers, and close all others."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if sys.platform.startswith("linux"):
        # A killed server reports no exit codes, so its children end with it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # First to unused numbers: a target number may be in use.
    above = max(*numbers, 2) + 1
    cell, status, stdin, stdout = (fcntl.fcntl(each, fcntl.F_DUPFD, above) for each in given)
    wanted = {cell: numbers[0], status: numbers[1], stdin: 0, stdout: 1}
    for descriptor, number in wanted.items():
        os.dup2(descriptor, number)
    os.dup2(stdout, 2)
    kept = {*wanted.values(), 2}
    for found in list(Path("/dev/fd").iterdir()):
        if int(found.name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(found.name))


def _reap(children: dict[int, int], *, wait: bool = False) -> None:
    while children:
        pid, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
        if pid == 0:
            return
        report = children.pop(pid)
        _report(report, os.waitstatus_to_exitcode(status))
        os.close(report)


def _report(report: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(report, REPORT.pack(number))


if __name__ == "__main__":
    sys.exit(main())
