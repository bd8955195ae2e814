"""Shared memory in which a child process marks the page that it parses: the supervisor reads it after a crash."""

import mmap
import struct
from math import isfinite

from trotline.model.time import Seconds

SIZE = 64
_PARSING = struct.Struct("dq")
"""Start time of the page being parsed, and its lease token (0: none). In this order: the supervisor may read between
the two writes, and a token without its time would look like a page that has been parsed for ever."""
_ALIVE = struct.Struct("d")
_ALIVE_AT = 16
_ROBOTS = struct.Struct("q")
"""Token of the lease for which a robots.txt is being parsed."""
_ROBOTS_AT = 24
_KEPT = struct.Struct("q16s")
"""Token of a lease whose page was saved as evidence, and the page's hash."""
_KEPT_AT = 32

_NONSENSE: Seconds = -1.0
"""Replaces NaN and infinities by a constant, which the supervisor sees as an event loop that does not run."""


class Marker:
    """Written by the child, read by the supervisor. A write is one `pack_into`: no measurable cost per page."""

    def __init__(self, memory: mmap.mmap | bytearray | None = None) -> None:
        self._memory = memory if memory is not None else bytearray(SIZE)

    def reading(self, token: int, now: Seconds) -> None:
        """If the child dies or hangs from now on, this page is the suspect."""
        _PARSING.pack_into(self._memory, 0, now, token)

    def reading_robots(self, token: int, now: Seconds) -> None:
        """The same for the robots.txt of this lease's host."""
        _ROBOTS.pack_into(self._memory, _ROBOTS_AT, token)
        self.reading(token, now)

    def read_robots(self) -> None:
        self.read()
        _ROBOTS.pack_into(self._memory, _ROBOTS_AT, 0)

    def read(self) -> None:
        """The page was parsed."""
        _PARSING.pack_into(self._memory, 0, 0.0, 0)

    def alive(self, now: Seconds) -> None:
        """The event loop runs."""
        _ALIVE.pack_into(self._memory, _ALIVE_AT, now)

    def kept(self, token: int, name: str) -> None:
        """This page's body was saved under that name (32 hexadecimal digits)."""
        _KEPT.pack_into(self._memory, _KEPT_AT, token, bytes.fromhex(name))

    @property
    def suspect(self) -> int | None:
        _, token = _PARSING.unpack_from(self._memory, 0)
        return token or None

    @property
    def suspects_robots(self) -> bool:
        """Is the suspect a robots.txt?"""
        [token] = _ROBOTS.unpack_from(self._memory, _ROBOTS_AT)
        return bool(token) and token == self.suspect

    @property
    def reading_since(self) -> Seconds | None:
        since, token = _PARSING.unpack_from(self._memory, 0)
        return since if token and since and isfinite(since) else None

    @property
    def evidence(self) -> str:
        """The name under which the suspect's body was saved; empty if it was not."""
        token, name = _KEPT.unpack_from(self._memory, _KEPT_AT)
        return name.hex() if token and token == self.suspect else ""

    @property
    def alive_at(self) -> Seconds:
        [at] = _ALIVE.unpack_from(self._memory, _ALIVE_AT)
        return float(at) if isfinite(at) else _NONSENSE
