"""How much a worker process does at once, and for how long it waits."""

from typing import Self

import msgspec

from trotline.model.limits import MIB
from trotline.model.time import Seconds


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What users can set (docs/reference/settings.md)."""

    slots: int = 16
    """Concurrent visits of one process."""
    prefetch: int | None = None
    """Tasks that a process holds ready beyond its slots; None: as many as its speed asks for."""
    grace: Seconds = 30.0
    """After a stop, visits in flight may take this long to finish."""
    storage_patience: Seconds = 600.0
    """How long a local file that cannot be written (a full disk) is waited for."""
    memory: int = 1024 * MIB
    """Bytes that one worker process may use."""
    visits: bool = True
    """A line in the ledger for every visit, where the sink keeps one."""


class Policy(WorkerSettings, frozen=True, kw_only=True):
    max_pages: int | None = None
    """Stop leasing after so many."""
    batch: int = 64
    """Visits per commit, and leases per call."""
    commit_every: Seconds = 0.05
    """A finished visit waits at most this long for company."""
    backlog: int = 512
    """Finished visits that may wait to be stored before leasing stops: the backpressure."""

    @classmethod
    def of(cls, settings: WorkerSettings, *, max_pages: int | None = None) -> Self:
        chosen = {name: getattr(settings, name) for name in WorkerSettings.__struct_fields__}
        return cls(max_pages=max_pages, **chosen)
