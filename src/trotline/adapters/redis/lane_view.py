"""Decodes lanes for views."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.layouts import JobBounds, LanePaceReply, LaneRow, unflatten
from trotline.model.job import LanePace, LaneView, State
from trotline.model.pace import Pace
from trotline.model.time import Moment
from trotline.rules.pace import Bounds, pace_of

HEAD = struct.Struct("<BBB")
LEVEL = struct.Struct("<iI")
STATES = (State.RUNNING, State.PAUSED, State.DRAINING)
MOST_LEVELS = 16
MOST_QUEUED_LEVELS = 240
"""The same of a job with a queue per route."""
WAKE = struct.Struct("<d")
"""When the lane becomes ready, if that is later."""


class LaneRecord(msgspec.Struct, frozen=True):
    """A job's part of a lane (job_lanes.lua)."""

    levels: tuple[int, ...]
    """Levels with waiting tasks, up to MOST_LEVELS."""
    more: tuple[int, ...] = ()
    """Parities of further levels: even (0), odd (1)."""


def read_lane(packed: bytes) -> LaneRecord:
    """Invalid bytes are read as no levels: job_lanes.lua repairs the lane when it is used."""
    if len(packed) < HEAD.size:
        return LaneRecord(())
    _, count, more = HEAD.unpack_from(packed)
    at = HEAD.size + count * LEVEL.size
    if count > MOST_QUEUED_LEVELS or len(packed) - at not in (0, WAKE.size):
        return LaneRecord(())
    levels = tuple(level for level, _ in LEVEL.iter_unpack(packed[HEAD.size : at]))
    return LaneRecord(levels, tuple(parity for parity in (0, 1) if more & (parity + 1)))


def views(reply: Sequence[Any], now: Moment) -> Iterator[tuple[LaneView, LaneRecord]]:
    """The lanes of a reply of list_waiting_lanes.lua."""
    for row in unflatten(LaneRow, reply):
        rests_for = max(0.0, float(row.rest_until) - now)
        view = LaneView(
            lane=row.lane.decode(errors="replace"),
            waiting=row.waiting,
            leased=row.leased,
            interval=float(row.interval),
            rests_for=rests_for,
            why=row.why.decode(errors="replace") if rests_for else "",
            state=STATES[row.state],
            concurrency=row.concurrency,
            latency=float(row.latency),
            trouble=float(row.trouble),
            retry_credit=float(row.credit) if row.credit else None,
        )
        yield view, read_lane(row.own) if row.own else LaneRecord(())


def lane_pace(lane: str, reply: Sequence[bytes], now: Moment) -> LanePace:
    """A reply of lane_pace.lua."""
    size = len(LanePaceReply._fields)
    head, more = LanePaceReply(*reply[:size]), reply[size:]
    ordered, jobs = more[: int(head.ordered)], more[int(head.ordered) :]
    rests_for = max(0.0, float(head.rest_until) - now)
    return LanePace(
        lane=lane,
        interval=float(head.interval),
        concurrency=int(head.concurrency),
        running=int(head.running),
        ordered=_pace(ordered) if ordered else None,
        jobs={keys.job_in(row.job.decode()): _pace(row[1:]) for row in unflatten(JobBounds, jobs)},
        crawl_delay=float(head.asked),
        limit=float(head.limit),
        rests_for=rests_for,
        why=head.why.decode(errors="replace") if rests_for else "",
        retry_credit=float(head.credit) if head.credit else None,
    )


def _pace(bounds: Sequence[bytes]) -> Pace:
    least, most, places = bounds
    return pace_of(Bounds(float(least), float(most), int(places)))
