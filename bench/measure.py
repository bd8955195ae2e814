"""Measure one command: CPU time of its whole process tree, wall time, and the memory of each of its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REAPER = Path(__file__).with_name("reaper.py")


@dataclass(frozen=True)
class Sample:
    """The resident memory of one process at one moment."""

    moment: float
    pid: int
    bytes: int


@dataclass(frozen=True)
class Usage:
    """What one command cost. Moments are seconds since the epoch, so that they compare with a server's log."""

    exit_code: int
    user: float
    system: float
    started: float
    ended: float
    peaks: Mapping[int, int] = field(repr=False)
    samples: Sequence[Sample] = field(repr=False)

    @property
    def cpu(self) -> float:
        return self.user + self.system

    @property
    def wall(self) -> float:
        return self.ended - self.started

    @property
    def peak(self) -> int:
        """The peak resident bytes of the largest process of the tree."""
        return max(self.peaks.values(), default=0)


def measure(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    patience: float = 1200.0,
    interval: float = 0.1,
) -> Usage:
    """Run `command` in a process group of its own; its output goes to files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "usage.json"
    report.unlink(missing_ok=True)
    wrapped = [sys.executable, "-S", "-E", str(REAPER), str(report), *command]
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            wrapped, stdout=out, stderr=err, env={**os.environ, **(environment or {})}, start_new_session=True
        )
        watch = Watch(process.pid, interval)
        watch.start()
        try:
            process.wait(patience)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            watch.stop()
    figures = json.loads(report.read_text())
    return Usage(
        exit_code=figures["exit"],
        user=figures["user"],
        system=figures["system"],
        started=figures["started"],
        ended=figures["ended"],
        peaks=watch.peaks,
        samples=watch.samples,
    )


class Watch(threading.Thread):
    """Looks at the memory of the reaper's descendants now and then; the kernel itself remembers each peak."""

    def __init__(self, reaper: int, interval: float) -> None:
        super().__init__(daemon=True)
        self.reaper, self.interval = reaper, interval
        self.peaks: dict[int, int] = {}
        self.samples: list[Sample] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(self.interval):
            moment = time.time()
            for pid in descendants(self.reaper):
                if (memory := resident(pid)) is not None:
                    now, peak = memory
                    self.samples.append(Sample(moment, pid, now))
                    self.peaks[pid] = max(peak, self.peaks.get(pid, 0))

    def stop(self) -> None:
        self.stopping.set()
        self.join()


def descendants(root: int) -> list[int]:
    """Every process below `root`, not `root` itself."""
    found: list[int] = []
    queue = [root]
    while queue:
        for child in children(queue.pop()):
            found.append(child)
            queue.append(child)
    return found


def children(pid: int) -> list[int]:
    """The children of every thread of a process: the kernel keeps them per thread."""
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return found
    return found


def resident(pid: int) -> tuple[int, int] | None:
    """Resident bytes of a process now and at its peak, or nothing if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    figures = {
        name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines) if name.startswith("Vm")
    }
    if "VmRSS" not in figures:
        return None
    return int(figures["VmRSS"]) * 1024, int(figures["VmHWM"]) * 1024
