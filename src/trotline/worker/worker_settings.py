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
    """Leases that a process holds beyond its slots; None: by its speed."""
    grace: Seconds = 30.0
    """After a stop, visits in flight may take this long to finish."""
    storage_patience: Seconds = 600.0
    """How long writes to a local file are retried (full disk)."""
    memory: int = 1024 * MIB
    """Memory limit of one worker process, in bytes."""
    visits: bool = True
    """Write a ledger row for every visit, if the sink has a ledger."""
    one_transaction: bool = False
    """Rows and settles are one transaction: frontier and sink are the same database."""
    proxies: str = ""
    """The file with the proxy pools (config/pool_sources.py); empty: there are none."""
    pools: tuple[str, ...] = ()
    """Proxy pools whose tasks this worker takes; empty: all."""
    regions: tuple[str, ...] = ()
    """Regions whose pools this worker serves; empty: all."""
    routes: tuple[str, ...] = ()
    """Routes whose tasks this worker takes; empty: all."""


class WorkerPolicy(WorkerSettings, frozen=True, kw_only=True):
    max_pages: int | None = None
    """Stop leasing after this many."""
    batch: int = 64
    """Visits per commit, and leases per call."""
    commit_every: Seconds = 0.05
    """A finished visit waits at most this long for its batch to fill."""
    backlog: int = 512
    """Backpressure: leasing stops while more finished visits wait to be stored."""

    @classmethod
    def of(cls, settings: WorkerSettings, *, max_pages: int | None = None) -> Self:
        chosen = {name: getattr(settings, name) for name in WorkerSettings.__struct_fields__}
        return cls(max_pages=max_pages, **chosen)
