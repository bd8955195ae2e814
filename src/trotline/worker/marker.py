"""The cell in which a child says what it is doing, for a supervisor that must know after the child is gone."""

import mmap
import struct

from trotline.model.moments import Seconds

SIZE = 32
_PARSING = struct.Struct("qd")
"""Token of the lease whose page is being read (0: none), and since when."""
_ALIVE = struct.Struct("d")
_ALIVE_AT = 16


class Marker:
    """Written by the child, read by the supervisor. A write is one pack into shared memory: it costs a page nothing."""

    def __init__(self, memory: mmap.mmap | bytearray | None = None) -> None:
        self._memory = memory if memory is not None else bytearray(SIZE)

    def reading(self, token: int, now: Seconds) -> None:
        """From now on this page is to blame if the child dies or hangs."""
        _PARSING.pack_into(self._memory, 0, token, now)

    def read(self) -> None:
        """The page did no harm."""
        _PARSING.pack_into(self._memory, 0, 0, 0.0)

    def alive(self, now: Seconds) -> None:
        """The event loop turned."""
        _ALIVE.pack_into(self._memory, _ALIVE_AT, now)

    @property
    def suspect(self) -> int | None:
        token, _ = _PARSING.unpack_from(self._memory, 0)
        return token or None

    @property
    def reading_since(self) -> Seconds | None:
        token, since = _PARSING.unpack_from(self._memory, 0)
        return since if token else None

    @property
    def alive_at(self) -> Seconds:
        [at] = _ALIVE.unpack_from(self._memory, _ALIVE_AT)
        return float(at)
