"""Where a merge reads records and keeps what it made of them."""

from collections.abc import Collection, Sequence
from typing import Protocol

from trotline.model.merge import Identity, Link, MergeChange, MergeTotals, Review, ReviewDecision, Source, ThingView


class MergeStore(Protocol):
    """M1 a change is stored whole or not at all; computed from an older state, it is refused
    M2 each stored record that is new, was seen again, has other data, or was merged under another rule, is found as
       changed; others not
    M3 a record that is not stored any more is found as gone, and nothing of it is left after the change
    M4 every source that was merged belongs to exactly one thing
    M5 keys and links are those of the last change that named the source
    M6 what people decided outlives everything else, and makes the sources that it concerns changed
    M7 reading before the first merge finds nothing and makes nothing

    Its calls may block the event loop: a merge has a loop of its own.
    """

    async def open(self) -> None:
        """Make the tables. Twice is harmless."""
        ...

    async def version(self) -> int:
        """Of the state; every change makes a new one."""
        ...

    async def rule(self) -> int:
        """That of the last change; 0: there was none."""
        ...

    async def changed(self, rule: int, kinds: Sequence[str], after: Identity, limit: int) -> list[Source]:
        """Records that are to be merged, of these kinds (none: of all), in the order of their identity, behind `after`.
        Fewer than `limit`: there are no more."""
        ...

    async def gone(self, limit: int) -> list[int]:
        """Sources whose record is not stored any more."""
        ...

    async def sources(self, ids: Collection[int]) -> list[Source]:
        """Those of them that were merged and are still stored."""
        ...

    async def keys(self, ids: Collection[int]) -> dict[int, list[int]]:
        """Source -> its keys."""
        ...

    async def count(self, keys: Collection[int]) -> dict[int, int]:
        """Key -> how many sources have it; keys that none has are left out."""
        ...

    async def members(self, keys: Collection[int]) -> dict[int, list[int]]:
        """Key -> the sources that have it."""
        ...

    async def links(self, ids: Collection[int]) -> list[Link]:
        """Links with one end in `ids` or both."""
        ...

    async def decisions(self) -> list[ReviewDecision]: ...

    async def apply(self, change: MergeChange) -> None:
        """`MergeRaced`: another merge has changed the state; nothing was stored."""
        ...

    async def decide(self, decisions: Sequence[ReviewDecision]) -> None:
        """Keep what a person decided, instead of what was decided about these pairs before."""
        ...

    async def thing(self, name: str) -> ThingView | None: ...

    async def review(self, limit: int) -> list[Review]:
        """Pairs that nothing has decided, the most similar first."""
        ...

    async def totals(self) -> MergeTotals: ...

    async def finish(self) -> None:
        """Refresh the views for people."""
        ...

    async def close(self) -> None:
        """Twice is harmless."""
        ...
