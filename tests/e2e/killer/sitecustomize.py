"""Python imports this file when it starts, if its folder is on PYTHONPATH. Without our variables it does nothing.

E2E_DOOM=STEP:TARGET:NTH:FILE   the NTH time that a process passes STEP, TARGET gets a SIGKILL, once; FILE then exists.
                                TARGET "forked" is a child of the fork server: two others die before there is one.
E2E_DEAD_AFTER=SECONDS          how long a silent worker is waited for, instead of 15 s.
E2E_BEAT=SECONDS                how often a supervisor says that its children live, instead of every 5 s.
E2E_TERM=SECONDS                the term of a coordinator that does not renew it, instead of 15 s.
E2E_BATCH=N                     seeds per batch, instead of 500.
E2E_PATIENCE=SECONDS            how long a locked database is waited for, instead of 30 s.
E2E_PLANT=yes                   a bug: pages are settled before their rows are stored. The accounting must show it.

Nothing in Trotline knows about this: steps are wrapped from outside, at the seams between its parts.
"""

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class Seam(NamedTuple):
    """Where a step is: a function, and on which side of it. `async def` unless `plain`."""

    owner: Any
    name: str
    after: bool
    plain: bool = False


def _child_seams() -> dict[str, list[Seam]]:
    from trotline.adapters.files.jsonl import JsonlSink
    from trotline.adapters.http.fetcher import HttpFetcher
    from trotline.adapters.sqlite import settle_leases
    from trotline.adapters.sqlite.frontier import SqliteFrontier
    from trotline.adapters.sqlite.sink import SqliteSink
    from trotline.worker.visit import Visitor

    return {
        "leased": [Seam(SqliteFrontier, "lease", True)],
        "fetched": [Seam(HttpFetcher, "fetch", True)],
        "parsed": [Seam(Visitor, "visit", True)],
        "before store": [Seam(SqliteSink, "write", False), Seam(JsonlSink, "write", False)],
        "after store": [Seam(SqliteSink, "write", True), Seam(JsonlSink, "write", True)],
        "before settle": [Seam(SqliteFrontier, "settle", False)],
        "inside settle": [Seam(settle_leases, "settle", True, plain=True)],
        "after settle": [Seam(SqliteFrontier, "settle", True)],
    }


def _supervisor_seams() -> dict[str, list[Seam]]:
    from trotline.adapters.files.jsonl import JsonlSink
    from trotline.adapters.sqlite.console import SqliteConsole
    from trotline.adapters.sqlite.frontier import SqliteFrontier
    from trotline.adapters.sqlite.sink import SqliteSink

    return {
        "seeding": [Seam(SqliteFrontier, "put", True)],
        "sealed": [Seam(SqliteFrontier, "seal", True)],
        "watching": [Seam(SqliteConsole, "progress", True)],
        "finishing": [Seam(SqliteSink, "finish", False), Seam(JsonlSink, "finish", False)],
    }


class Doom:
    def __init__(self, target: str, nth: int, file: str) -> None:
        self._target = target
        self._left = nth
        self._file = file

    def wrap(self, seam: Seam) -> None:
        setattr(
            seam.owner, seam.name, (self._plain if seam.plain else self._async)(seam, getattr(seam.owner, seam.name))
        )

    def _async(self, seam: Seam, real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        async def deed(*args: Any, **options: Any) -> Any:
            if not seam.after:
                self._pass()
            result = await real(*args, **options)
            # An answer with nothing in it (no lease, no admission) is no step.
            if seam.after and (result is None or result):
                self._pass()
            return result

        return deed

    def _plain(self, seam: Seam, real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def deed(*args: Any, **options: Any) -> Any:
            result = real(*args, **options)
            self._pass()
            return result

        return deed

    def _pass(self) -> None:
        self._left -= 1
        if self._left == 0 and self._is_first():
            self._strike()

    def _is_first(self) -> bool:
        """A child that is started again must not die again; but two must, before the fork server has one of its own."""
        if self._target == "forked" and not _is_forked():
            return True
        try:
            os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        return True

    def _strike(self) -> None:
        if self._target == "everything":
            os.killpg(0, signal.SIGKILL)
        elif self._target == "supervisor" and _is_child():
            os.kill(_PARENT, signal.SIGKILL)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


_PARENT = os.getppid()
"""The supervisor, of a child and of a fork server; what that forks remembers it."""


def _is_child() -> bool:
    return bool({"trotline.processes.child", "trotline.processes.fork_server"} & {*sys.orig_argv})


def _is_forked() -> bool:
    return os.getppid() != _PARENT


def _prepare() -> None:
    if words := os.environ.get("E2E_DOOM"):
        step, target, nth, file = words.split(":", 3)
        for seam in (_child_seams() if _is_child() else _supervisor_seams()).get(step, []):
            Doom(target, int(nth), file).wrap(seam)
    if os.environ.get("E2E_PLANT"):
        _settle_first()
    if seconds := os.environ.get("E2E_DEAD_AFTER"):
        from trotline.adapters.sqlite import workers

        workers.DEAD_AFTER = float(seconds)
    if seconds := os.environ.get("E2E_BEAT"):
        from trotline.worker import supervisor

        supervisor.BEAT = float(seconds)
    if seconds := os.environ.get("E2E_TERM"):
        from trotline.ports import leadership

        leadership.TERM, leadership.RENEW = float(seconds), float(seconds) / 3
    if batch := os.environ.get("E2E_BATCH"):
        from trotline.commands import seed

        seed.BATCH = int(batch)
    if seconds := os.environ.get("E2E_PATIENCE"):
        from trotline.adapters.sqlite import database, sink

        database.BUSY = float(seconds)
        sink.SqliteSink.__init__.__kwdefaults__["patience"] = float(seconds)


def _settle_first() -> None:
    from trotline.adapters.sqlite.frontier import SqliteFrontier
    from trotline.adapters.sqlite.sink import SqliteSink

    kept: list[tuple[Any, ...]] = []
    really_write, really_settle = SqliteSink.write, SqliteFrontier.settle

    async def write(self: Any, *batch: Any) -> None:
        kept.append((self, *batch))

    async def settle(self: Any, worker: str, settlements: Any) -> Any:
        answers = await really_settle(self, worker, settlements)
        while kept:
            await really_write(*kept.pop())
        return answers

    SqliteSink.write, SqliteFrontier.settle = write, settle


if any(name.startswith("E2E_") for name in os.environ):
    _prepare()
