"""Lanes that tests of paces start from."""

import msgspec

from trotline.model.lease import LaneFeedback
from trotline.model.pace import Pace, Rate
from trotline.model.verdict import Kind
from trotline.rules import adaptive_pace, pace
from trotline.rules.pace import Lane

NOW = 1_750_000_000.0
EXACT = 1e-6
"""Moments are floats around 1.75e9: neighbours are 2.4e-7 apart."""


def lane(rate: str = "1/s", *, slowest: str = "1/m", concurrency: int = 8, **state: float) -> Lane:
    opened = pace.open_lane(pace.bounds_of(Pace(Rate.parse(rate), concurrency, Rate.parse(slowest))), NOW)
    return msgspec.structs.replace(opened, **state) if state else opened


def ok(took: float = 0.1, **more: float) -> LaneFeedback:
    return LaneFeedback(Kind.OK, took, **more)


BROKEN = LaneFeedback(Kind.BROKEN, 0.1)

FAILING = {"trouble": 1.0}
"""Every visit of late was a failure."""


def failing(fresh: Lane, times: int, *, at: float = NOW) -> Lane:
    for _ in range(times):
        fresh = adaptive_pace.learn(fresh, BROKEN, at, 0.0)
    return fresh
