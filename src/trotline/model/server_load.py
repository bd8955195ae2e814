"""How busy a server behind a frontier or a sink is: counters, so that two looks give a share of the time."""

import msgspec

from trotline.model.time import Seconds


class ServerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What is unknown is None: no server is idle because it does not say."""

    kind: str
    """"redis", "postgresql", "sqlite"."""
    at: Seconds = 0.0
    """The server's own time, or uptime: only differences count."""
    busy: Seconds | None = None
    """Since its start, the time in which it could do nothing else."""
    blocked: float | None = None
    """Of its sessions that work for us, how many wait for a lock, now."""
    active: float | None = None
    """Its sessions that work for us, now, with those that wait for a lock."""
    memory: float | None = None
    """The share of its memory limit that is in use."""
    serial: bool = False
    """One writer at a time, by nature: the time that its users spend in it is the time in which it is busy."""


class ServerUse(msgspec.Struct, frozen=True, kw_only=True):
    """How busy it was between two looks."""

    role: str
    """"frontier" or "database"."""
    kind: str
    share: float | None = None
    """Of the time; 1.0: it can do no more. None: unknown."""
    memory: float | None = None
    serial: bool = False


def use(role: str, before: ServerLoad | None, now: ServerLoad) -> ServerUse:
    return ServerUse(role=role, kind=now.kind, share=_share(before, now), memory=now.memory, serial=now.serial)


def _share(before: ServerLoad | None, now: ServerLoad) -> float | None:
    if now.active is not None and now.blocked is not None:
        # Sessions that wait for each other's locks work one after another, as one session would.
        return min(1.0, now.active) if now.blocked >= _WAITS else None
    if before is None or before.busy is None or now.busy is None or now.at <= before.at or now.busy < before.busy:
        # Not seen before, or started anew.
        return None
    return min(1.0, (now.busy - before.busy) / (now.at - before.at))


_WAITS = 0.5
"""Sessions that wait for a lock, on average, where locks are the limit."""
