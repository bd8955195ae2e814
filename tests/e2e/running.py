"""The real command in real processes: start it, read what it says, look at what it left behind."""

import asyncio
import csv
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.model.job import Job, Progress
from trotline.testing.clients import sqlite_client

KILLER = Path(__file__).parent / "killer"
WITHIN = 90.0
"""Generous: what is not over by then hangs."""


_STREAMS: dict[str, Any] = {
    "stdin": asyncio.subprocess.DEVNULL,
    "stdout": asyncio.subprocess.PIPE,
    "stderr": asyncio.subprocess.PIPE,
}


_UNREAD = 64 * 1024 * 1024
"""Bytes of output that a test has not read yet. Above the limit of asyncio (64 KiB) reading pauses: a command with
`--json` would block, and waiting for one that was killed would never end, as the end of its output is not seen."""
_started: list[int] = []


class Ended(NamedTuple):
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of `--json`."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def summary(self) -> dict[str, Any]:
        return self.events[-1]


async def start(folder: Path, *words: str, env: Mapping[str, str] | None = None, **options: Any) -> "Running":
    """Start `trotline WORDS` in a session of its own, so that a signal can reach all of its processes and no other."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trotline.cli", *words, limit=_UNREAD,
        cwd=folder, env={**os.environ, **(env or {})}, start_new_session=True, **{**_STREAMS, **options},
    )  # fmt: skip
    _started.append(process.pid)
    return Running(process)


async def call(folder: Path, *words: str, env: Mapping[str, str] | None = None, **options: Any) -> Ended:
    """Run `trotline WORDS` to its end. Nobody may ever see a traceback."""
    running = await start(folder, *words, env=env, **options)
    return await running.end()


class Running:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._out: list[bytes] = []

    async def exit_code(self) -> int:
        """When the command itself is gone; its children may still be there."""
        return await asyncio.wait_for(self.process.wait(), WITHIN)

    async def event(self) -> dict[str, Any]:
        """The next line of `--json`."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), WITHIN)
        self._out.append(line)
        assert line, f"it ended: {(await self.end()).err}"
        return json.loads(line)

    async def line(self, text: str) -> None:
        """When a line of its output has this text."""
        assert self.process.stdout is not None
        while text.encode() not in (found := await asyncio.wait_for(self.process.stdout.readline(), WITHIN)):
            assert found, f"it ended without: {text}"
            self._out.append(found)
        self._out.append(found)

    async def end(self) -> Ended:
        """When every process is gone, also the children of a command that was killed."""
        try:
            out, err = await asyncio.wait_for(self.process.communicate(), WITHIN)
            for pid in self._group():
                await asyncio.wait_for(_gone(pid), WITHIN)
        except TimeoutError:
            self.signal_all(signal.SIGKILL)
            raise
        said = Ended(self.process.returncode or 0, b"".join([*self._out, out or b""]).decode(), (err or b"").decode())
        assert "Traceback" not in said.out + said.err, said.out + said.err
        return said

    def signal_all(self, number: signal.Signals) -> None:
        """To every process of the command."""
        os.killpg(self.process.pid, number)

    async def suspend(self) -> None:
        """Stop the command itself, as Ctrl-Z does, at a moment when it has no file locked: nobody can take a lock of
        SQLite away from a process that is suspended."""
        while True:
            self.process.send_signal(signal.SIGSTOP)
            while _state_of(self.process.pid) != "T":  # noqa: ASYNC110 - other processes have no event of ours
                await asyncio.sleep(0.01)
            if not _locks(self.process.pid):
                return
            self.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.01)

    def children(self) -> list[int]:
        """Its worker processes."""
        return [pid for pid in self._group() if pid != self.process.pid]

    def _group(self) -> list[int]:
        pids = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
        return [pid for pid in pids if _group_of(pid) == self.process.pid]


def end_all() -> None:
    """Every process of every command that was started since the last call: a test that failed ends none itself."""
    groups = set(_started)
    _started.clear()
    if not groups:
        return
    for folder in Path("/proc").glob("[0-9]*"):
        if _group_of(int(folder.name)) in groups:
            os.kill(int(folder.name), signal.SIGKILL)


def lives(pid: int) -> bool:
    return _group_of(pid) is not None


def _group_of(pid: int) -> int | None:
    """Whose group the process is in; None if it is gone, even if nobody has taken note of its end yet."""
    try:
        state, _, group, *_ = _stat(pid)
    except OSError:
        return None
    return None if state == "Z" else int(group)


def _state_of(pid: int) -> str:
    return _stat(pid)[0]


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _locks(pid: int) -> list[str]:
    """Its exclusive locks on files."""
    lines = Path("/proc/locks").read_text().splitlines()
    return [line for line in lines if line.split()[-5:-3] == ["WRITE", str(pid)]]


async def _gone(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(process, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


def rows_of(file: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The rows in a .db, .jsonl or .csv, read without Trotline."""
    if file.suffix == ".db":
        with closing(sqlite3.connect(file)) as db:
            stored = db.execute("SELECT data FROM records WHERE kind = ifnull(?, kind)", (kind,)).fetchall()
        return [json.loads(data) for (data,) in stored]
    if file.suffix == ".csv":
        with file.open(newline="", encoding="utf-8") as lines:
            return [dict(row) for row in csv.DictReader(lines)]
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


async def jobs_of(folder: Path, spider: str) -> list[Job]:
    jobs = SqliteJobs(str(folder / ".trotline" / f"{spider}.frontier.db"))
    try:
        return await jobs.all()
    finally:
        await jobs.close()


async def books_of(folder: Path, spider: str) -> list[Progress]:
    """The books of every job, the newest last."""
    books = []
    for job in await jobs_of(folder, spider):
        frontier = sqlite_client(str(folder / ".trotline" / f"{spider}.frontier.db"), job)
        try:
            books.append(await frontier.progress())
        finally:
            await frontier.close()
    return books


async def progress_of(folder: Path, spider: str) -> Progress:
    """The books of the newest job."""
    return (await books_of(folder, spider))[-1]
