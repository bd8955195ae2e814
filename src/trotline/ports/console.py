"""The operator's view of one job's frontier."""

from collections.abc import Sequence
from typing import Protocol

from trotline.model.job import Grave, LaneView, Progress


class Console(Protocol):
    """Look at a job and steer it. Looking never blocks the crawl."""

    async def progress(self) -> Progress: ...

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        """The lanes an operator should look at: resting and paused first, then by waiting tasks."""
        ...

    async def pause(self, lane: str | None = None) -> None:
        """No new leases for this lane, or for the whole job; puts go on (F12)."""
        ...

    async def resume(self, lane: str | None = None) -> None: ...

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        """The graveyard, oldest first; `why` matches the start of the reason; `after` is the last id seen."""
        ...

    async def reasons(self) -> dict[str, int]:
        """How many are buried for which reason."""
        ...

    async def revive(self, ids: Sequence[str] = (), why: str = "") -> int:
        """Give buried tasks a fresh start: by id, or all whose reason starts with `why`. How many rose (F9)."""
        ...
