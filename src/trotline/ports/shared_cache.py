"""Small things that one worker fetched and that all of a fleet may use."""

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
    """H1 what was put is found by everybody until its life is over, or until there is no room for it
    H2 of many who look for what is not there, one is told to fetch it, and the others wait for it: but never for
       longer than `within`, because who fetches may die
    H3 a cache that is away is an empty one: nothing here ever fails
    """

    async def find(self, name: str, within: Seconds) -> Kept | None:
        """What is kept under the name. None: fetch it yourself, then `put` it, or `leave` it to others."""
        ...

    async def put(self, name: str, value: bytes, life: Seconds) -> None: ...

    async def leave(self, name: str) -> None:
        """It could not be fetched, or it is of no use to others: whoever waits may try."""
        ...

    async def close(self) -> None: ...
