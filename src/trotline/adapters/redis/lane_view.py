"""A lane as lanes.lua keeps it, read."""

import struct

import msgspec

from trotline.model.job import LaneView, State
from trotline.model.moments import Moment

_HEAD = struct.Struct("<BIdddIdddIdIdddddH")
_LEVEL = struct.Struct("<iI")
_STATES = (State.RUNNING, State.PAUSED, State.DRAINING)


class LaneRecord(msgspec.Struct, frozen=True):
    state: State
    leased: int
    interval: float
    rest_until: Moment
    levels: tuple[int, ...]
    """Those in which tasks wait."""
    why: str

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
    values = _HEAD.unpack_from(packed)
    upto = _HEAD.size + values[-1] * _LEVEL.size
    return LaneRecord(
        state=_STATES[values[0]],
        leased=values[1],
        interval=values[6],
        rest_until=values[8],
        levels=tuple(level for level, _ in _LEVEL.iter_unpack(packed[_HEAD.size : upto])),
        why=packed[upto:].decode(errors="replace"),
    )
