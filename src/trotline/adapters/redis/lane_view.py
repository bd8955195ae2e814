"""A job's lanes, read."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import keys
from trotline.model.job import LanePace, LaneView, State
from trotline.model.pace import Pace
from trotline.model.time import Moment
from trotline.rules.pace import Bounds, pace_of

_HEAD = struct.Struct("<BBB")
_LEVEL = struct.Struct("<iI")
_STATES = (State.RUNNING, State.PAUSED, State.DRAINING)
_VALUES = 8
_MOST_LEVELS = 16
_WAKE = 8
"""Bytes of the moment from which on it stands in line, if that is later."""


class LaneRecord(msgspec.Struct, frozen=True):
    """A job's part of a lane, as lanes.lua keeps it."""

    levels: tuple[int, ...]
    """Those in which tasks wait, as far as there is room for them here."""
    more: tuple[int, ...] = ()
    """There are more that are even (0), and odd (1)."""


def read_lane(packed: bytes) -> LaneRecord:
    """What somebody else wrote there instead says nothing of the lane: lanes.lua repairs it when it is used."""
    if len(packed) < _HEAD.size:
        return LaneRecord(())
    _, count, more = _HEAD.unpack_from(packed)
    at = _HEAD.size + count * _LEVEL.size
    if count > _MOST_LEVELS or len(packed) - at not in (0, _WAKE):
        return LaneRecord(())
    levels = tuple(level for level, _ in _LEVEL.iter_unpack(packed[_HEAD.size : at]))
    return LaneRecord(levels, tuple(parity for parity in (0, 1) if more & (parity + 1)))


def views(told: Sequence[Any], now: Moment) -> Iterator[tuple[LaneView, LaneRecord]]:
    """What lanes_view.lua tells of some lanes."""
    for name, packed, state, leased, interval, rest_until, why, waiting in zip(*[iter(told)] * _VALUES, strict=True):
        rests_for = max(0.0, float(rest_until) - now)
        view = LaneView(
            lane=name.decode(errors="replace"),
            waiting=waiting,
            leased=leased,
            interval=float(interval),
            rests_for=rests_for,
            why=why.decode(errors="replace") if rests_for else "",
            state=_STATES[state],
        )
        yield view, read_lane(packed) if packed else LaneRecord(())


def lane_pace(lane: str, told: Sequence[bytes], now: Moment) -> LanePace:
    """What lane_pace.lua tells of one lane."""
    interval, places, running, asked, limit, rest_until, why, ordered, *more = told
    jobs = more[int(ordered) :]
    rests_for = max(0.0, float(rest_until) - now)
    return LanePace(
        lane=lane,
        interval=float(interval),
        concurrency=int(places),
        running=int(running),
        ordered=_pace(more[:3]) if int(ordered) else None,
        jobs={keys.job_in(job.decode()): _pace(bounds) for job, *bounds in zip(*[iter(jobs)] * 4, strict=True)},
        crawl_delay=float(asked),
        limit=float(limit),
        rests_for=rests_for,
        why=why.decode(errors="replace") if rests_for else "",
    )


def _pace(bounds: Sequence[bytes]) -> Pace:
    least, most, places = bounds
    return pace_of(Bounds(float(least), float(most), int(places)))
