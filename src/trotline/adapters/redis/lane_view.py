"""A lane as lanes.lua keeps it, read."""

import struct

import msgspec

from trotline.model.job import LaneView, State
from trotline.model.moments import Moment

_HEAD = struct.Struct("<BBB")
_WHOLE, _CALM, _FRESH = struct.Struct("<BIdddIdddIdIddddd"), struct.Struct("<IdddIdddddd"), struct.Struct("<ddI")
_IS_CALM, _IS_FRESH = 1, 2
_LEVEL = struct.Struct("<iI")
_STATES = (State.RUNNING, State.PAUSED, State.DRAINING)


class LaneRecord(msgspec.Struct, frozen=True):
    state: State
    leased: int
    interval: float
    rest_until: Moment
    levels: tuple[int, ...]
    """Those in which tasks wait, as far as there is room for them here."""
    why: str
    more: tuple[int, ...] = ()
    """There are more that are even (0), and odd (1)."""

    def view(self, name: str, waiting: int, now: Moment) -> LaneView:
        rests_for = max(0.0, self.rest_until - now)
        return LaneView(
            lane=name,
            waiting=waiting,
            leased=self.leased,
            interval=self.interval,
            rests_for=rests_for,
            why=self.why if rests_for else "",
            state=self.state,
        )


def read_lane(packed: bytes) -> LaneRecord:
    kind, count, more = _HEAD.unpack_from(packed)
    at = _HEAD.size + count * _LEVEL.size
    levels = tuple(level for level, _ in _LEVEL.iter_unpack(packed[_HEAD.size : at]))
    sets = tuple(parity for parity in (0, 1) if more & (parity + 1))
    if kind == _IS_FRESH:
        floor, _, _ = _FRESH.unpack_from(packed, at)
        return LaneRecord(State.RUNNING, 0, floor, 0.0, levels, "", sets)
    if kind == _IS_CALM:
        leased, _, _, _, _, interval, _, rest_until, *_ = _CALM.unpack_from(packed, at)
        return LaneRecord(State.RUNNING, leased, interval, rest_until, levels, "", sets)
    state, leased, _, _, _, _, interval, _, rest_until, *_ = _WHOLE.unpack_from(packed, at)
    why = packed[at + _WHOLE.size :].decode(errors="replace")
    return LaneRecord(_STATES[state], leased, interval, rest_until, levels, why, sets)
