"""Pools that became smaller when their file or list was read again: by lines that cannot be read, or as they are gone.

It is said for a while, and as long as lines cannot be read: an operator may want fewer proxies.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from trotline.model.time import Moment, Seconds
from trotline.rules.pool_names import members

log = logging.getLogger("trotline.proxies")

SAID_FOR: Seconds = 3600.0
MUCH = 0.2
"""A list over HTTP changes all the time: a smaller share of a pool is not worth a word."""


class PoolSize(NamedTuple):
    members: int
    complaint: str = ""
    """About the lines of its list that are not used."""


class _Shrunk(NamedTuple):
    before: int
    at: Moment


class ShrunkPools:
    def __init__(self, clock: Callable[[], Moment]) -> None:
        self._clock = clock
        self._shrunk: dict[str, _Shrunk] = {}

    def changed(self, before: Mapping[str, int], now: Callable[[str], PoolSize]) -> None:
        """After a reload. `before`: the sizes until then. A pool that is gone has no size."""
        for name, size in before.items():
            left = now(name).members
            known = self._shrunk.get(name)
            most = max(size, known.before) if known is not None else size
            if not left or left >= most:
                self._shrunk.pop(name, None)
            elif left < size:
                self._shrunk[name] = _Shrunk(most, self._clock())
                log.warning("proxies.fewer %s", _sentence(name, most, now(name)))

    def said(self, now: Callable[[str], PoolSize]) -> list[str]:
        """The pools that are much smaller than before."""
        return [
            _sentence(name, one.before, now(name))
            for name, one in sorted(self._shrunk.items())
            if now(name).complaint
            or (self._clock() - one.at < SAID_FOR and one.before - now(name).members >= MUCH * one.before)
        ]


def _sentence(name: str, before: int, now: PoolSize) -> str:
    text = f"pool {name!r} has {now.members:,} {members(name, now.members)}, {before:,} before it was read again"
    return f"{text}: {now.complaint}" if now.complaint else text
