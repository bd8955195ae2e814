"""Decodes lanes for views."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.lua_layouts import LANE_FIGURES, JobBounds, LanePaceReply, LaneRow, unflatten
from trotline.model.job import LanePace, LaneView, State
from trotline.model.pace import Pace
from trotline.model.time import Moment
from trotline.rules.pace import UNCAPPED, Bounds, pace_of
from trotline.rules.untrusted_values import bounded

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


_ALL_LEVELS = LaneRecord(())


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
    """The lanes of a reply of list_waiting_lanes.lua; a record only of lanes with very many levels."""
    for lane, figures, why, own in zip(*[iter(reply)] * len(LaneRow._fields), strict=True):
        state, leased, waiting, concurrency, interval, until, latency, trouble, credit = LANE_FIGURES.unpack(figures)
        rests_for = until - now if until > now else 0.0
        view = LaneView(
            lane=lane.decode(errors="replace"),
            waiting=bounded(int(waiting)),
            leased=leased,
            interval=interval,
            rests_for=rests_for,
            why=why.decode(errors="replace") if rests_for else "",
            state=STATES[state],
            concurrency=concurrency,
            latency=latency,
            trouble=trouble,
            retry_credit=credit if credit != UNCAPPED else None,
        )
        yield view, read_lane(own) if own else _ALL_LEVELS


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
