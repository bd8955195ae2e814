"""The cell in which a child says what it is doing, for a supervisor that must know after the child is gone."""

import mmap
import struct
from math import isfinite

from trotline.model.time import Seconds

SIZE = 64
_PARSING = struct.Struct("dq")
"""Since when a page is being read, and the token of its lease (0: none). In this order: the supervisor may look
between the two writes, and a token without its time would look like a page that is read since the beginning."""
_ALIVE = struct.Struct("d")
_ALIVE_AT = 16
_ROBOTS = struct.Struct("q")
"""The token of the lease for which a robots.txt is being read."""
_ROBOTS_AT = 24
_KEPT = struct.Struct("q16s")
"""The token of a lease whose page was kept as evidence, and the page's hash."""
_KEPT_AT = 32

_NONSENSE: Seconds = -1.0
"""Stands for NaN and infinities: a constant, so that the supervisor sees a loop that does not turn."""


class Marker:
    """Written by the child, read by the supervisor. A write is one pack into shared memory: it costs a page nothing."""

    def __init__(self, memory: mmap.mmap | bytearray | None = None) -> None:
        self._memory = memory if memory is not None else bytearray(SIZE)

    def reading(self, token: int, now: Seconds) -> None:
        """From now on this page is to blame if the child dies or hangs."""
        _PARSING.pack_into(self._memory, 0, now, token)

    def reading_robots(self, token: int, now: Seconds) -> None:
        """From now on the robots.txt of this lease's host is to blame."""
        _ROBOTS.pack_into(self._memory, _ROBOTS_AT, token)
        self.reading(token, now)

    def read_robots(self) -> None:
        self.read()
        _ROBOTS.pack_into(self._memory, _ROBOTS_AT, 0)

    def read(self) -> None:
        """The page did no harm."""
        _PARSING.pack_into(self._memory, 0, 0.0, 0)

    def alive(self, now: Seconds) -> None:
        """The event loop turned."""
        _ALIVE.pack_into(self._memory, _ALIVE_AT, now)

    def kept(self, token: int, name: str) -> None:
        """This page's body is kept under that name (32 hexadecimal digits)."""
        _KEPT.pack_into(self._memory, _KEPT_AT, token, bytes.fromhex(name))

    @property
    def suspect(self) -> int | None:
        _, token = _PARSING.unpack_from(self._memory, 0)
        return token or None

    @property
    def suspects_robots(self) -> bool:
        """Is it the robots.txt, and not the page?"""
        [token] = _ROBOTS.unpack_from(self._memory, _ROBOTS_AT)
        return bool(token) and token == self.suspect

    @property
    def reading_since(self) -> Seconds | None:
        since, token = _PARSING.unpack_from(self._memory, 0)
        return since if token and since and isfinite(since) else None

    @property
    def evidence(self) -> str:
        """The name under which the suspect's body is kept; empty if it is not."""
        token, name = _KEPT.unpack_from(self._memory, _KEPT_AT)
        return name.hex() if token and token == self.suspect else ""

    @property
    def alive_at(self) -> Seconds:
        [at] = _ALIVE.unpack_from(self._memory, _ALIVE_AT)
        return float(at) if isfinite(at) else _NONSENSE
