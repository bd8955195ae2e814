"""A lane as lanes.lua keeps it, read."""

import struct

import msgspec

from trotline.model.job import LaneView, State
from trotline.model.moments import Moment

_HEAD = struct.Struct("<BBIIddddIdddIdIdddddH")
_LEVEL = struct.Struct("<iI")
_STATES = (State.RUNNING, State.PAUSED, State.DRAINING)
RESTING = 2


class LaneRecord(msgspec.Struct, frozen=True):
    place: int
    state: State
    leased: int
    delayed: int
    interval: float
    rest_until: Moment
    levels: tuple[tuple[int, int], ...]
    """Level, and how many tasks wait in it."""
    why: str

    @property
    def waiting(self) -> int:
        return self.delayed + sum(count for _, count in self.levels)

    def view(self, name: str, now: Moment) -> LaneView:
        rests_for = max(0.0, self.rest_until - now)
        return LaneView(
            lane=name,
            waiting=self.waiting,
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
        place=values[0],
        state=_STATES[values[1]],
        leased=values[2],
        delayed=values[3],
        interval=values[9],
        rest_until=values[11],
        levels=tuple(_LEVEL.iter_unpack(packed[_HEAD.size : upto])),
        why=packed[upto:].decode(errors="replace"),
    )
