"""A cache for small things that one worker fetches for the whole fleet."""

from typing import Protocol

import msgspec

from trotline.model.time import Seconds


class Kept(msgspec.Struct, frozen=True):
    """Something from the cache."""

    value: bytes
    age: Seconds
    left: Seconds
    """How long it is still good."""


class SharedCache(Protocol):
    """H1 what was put is found by all until it expires or is evicted
    H2 of many that miss the same entry, one fetches it and the others wait, at most `within`: the fetching one may
       die
    H3 an unreachable cache is an empty one: nothing here ever fails
    """

    async def find(self, name: str, within: Seconds) -> Kept | None:
        """What is kept under the name. None: fetch it yourself, then `put` it, or `leave` it to others."""
        ...

    async def put(self, name: str, value: bytes, life: Seconds) -> None: ...

    async def leave(self, name: str) -> None:
        """It could not be fetched, or is of no use to others: the next one that waits may try."""
        ...

    async def close(self) -> None: ...
