"""All lanes of a job in one small answer: how many, in which state, which stand out, and what they admit.

A job may have a hundred thousand lanes. No page and no metric walks them: one process does now and then, page by page,
and publishes the survey.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import msgspec

from trotline.model.job import LaneView, State
from trotline.model.proxy_pool import pool_of
from trotline.model.time import Seconds
from trotline.rules.pace import RETRY_DRIP

TOP = 50
"""Lanes in each list."""
WORK_OVER: Seconds = 10.0
"""A lane with fewer tasks than it may start in this time has too little work. Longer would be wrong for sites whose
pages lead to the next ones: there are never many that wait."""
SOON: Seconds = 60.0
"""A lane with few tasks admits no more than these, over this time."""
LONG_REST: Seconds = 10.0
MOSTLY = 0.5
"""The share of failures in the recent visits of a lane."""
FAILS = 0.8
"""Hardly any of its visits is good."""
RESTING = "resting"
_RUNNING = State.RUNNING.value
PACE, CONCURRENCY, WORK, REST, RETRIES = "pace", "concurrency", "work", "rest", "retries"
"""What bounds the starts of a lane: its interval, its visits at the same time, what waits, its rest, its retries."""
MOST_POOLS = 200


class LaneRate(msgspec.Struct, frozen=True):
    """What a lane allows."""

    lane: str
    per_second: float
    bound: str
    """PACE, CONCURRENCY, WORK, REST or RETRIES."""


class PoolLanes(msgspec.Struct, frozen=True):
    """The lanes of a job that use one pool of proxies or accounts."""

    lanes: int = 0
    waiting: int = 0
    leased: int = 0
    admissible: float = 0.0


class LaneSurvey(msgspec.Struct, frozen=True, kw_only=True):
    lanes: int = 0
    """With a task that waits or is leased, or with a state of their own."""
    waiting: int = 0
    leased: int = 0
    states: dict[str, int] = {}
    """Lanes by state: "running", "resting", "paused", "draining"."""
    sizes: dict[str, int] = {}
    """Lanes by the number of waiting tasks: "0", "1-9", "10-99", ..."""
    causes: dict[str, int] = {}
    """Resting lanes by cause."""
    admissible: float = 0.0
    """Starts per second that the lanes allow now, over all of them."""
    bounds: dict[str, float] = {}
    """The same, by what bounds a lane: PACE, CONCURRENCY, WORK, RETRIES."""
    at_rest: int = 0
    """Tasks that wait in lanes that rest or are paused for longer than SOON."""
    with_work: int = 0
    """Lanes with waiting tasks that are not paused, ..."""
    down: int = 0
    """... those of them that rest after failures, or for long, ..."""
    probed: int = 0
    """... those that rest no more, and whose visits still fail, ..."""
    next_probe: LaneView | None = None
    """... and the one whose rest ends first."""
    fastest: LaneRate | None = None
    """The lane that allows the most."""
    full: int = 0
    """Tasks that wait in lanes with as many visits under way as they allow."""
    fullest: LaneView | None = None
    """Of these lanes, the one with the most waiting tasks."""
    capped: int = 0
    """Retries that wait for the retry budget of their lanes (F16)."""
    most_capped: LaneView | None = None
    """Of these lanes, the one with the most of them."""
    by_pool: dict[str, PoolLanes] = {}
    """Of lanes with a pool in their names."""
    top_share: float = 0.0
    """The share of waiting tasks in the five largest lanes."""
    most_waiting: tuple[LaneView, ...] = ()
    longest_rest: tuple[LaneView, ...] = ()
    most_trouble: tuple[LaneView, ...] = ()
    """By the share of failures in their recent visits; lanes without any are left out."""


class Surveyor:
    """Adds up pages of lanes. A lane that moved between two pages may be counted twice: it is listed once."""

    def __init__(self, held: Seconds = 0.0) -> None:
        """`held`: how long a visit keeps its place in the lane after its response, on average."""
        self._held = held
        self._bounds: defaultdict[str, float] = defaultdict(float)
        self._at_rest = 0
        self._with_work = self._down = self._probed = 0
        self._next_probe: LaneView | None = None
        self._fastest: LaneRate | None = None
        self._full = 0
        self._fullest: LaneView | None = None
        self._capped = 0
        self._most_capped: LaneView | None = None
        self._pools: dict[str, PoolLanes] = {}
        self._lanes = self._waiting = self._leased = 0
        self._states: Counter[str] = Counter()
        self._sizes: Counter[int] = Counter()
        self._causes: Counter[str] = Counter()
        self._admissible = 0.0
        self._top: dict[str, list[LaneView]] = {"waiting": [], "rest": [], "trouble": []}

    def add(self, lanes: Iterable[LaneView]) -> None:
        page = list(lanes)
        for lane in page:
            self._lanes += 1
            self._waiting += lane.waiting
            self._leased += lane.leased
            self._states[state_of(lane)] += 1
            self._sizes[len(str(lane.waiting)) if lane.waiting else 0] += 1
            if lane.rests_for > 0 and lane.why:
                self._causes[cause(lane.why)] += 1
            self._add_rate(lane)
            self._add_down(lane)
        top = self._top
        top["waiting"] = _largest(top["waiting"] + [lane for lane in page if lane.waiting], _waiting)
        top["rest"] = _largest(top["rest"] + [lane for lane in page if lane.rests_for > 0], _rest)
        top["trouble"] = _largest(top["trouble"] + [lane for lane in page if lane.trouble > 0], _trouble)

    def _add_rate(self, lane: LaneView) -> None:
        rate, bound = _rate(lane, self._held)
        self._admissible += rate
        if bound == REST:
            self._at_rest += lane.waiting
        else:
            self._bounds[bound] += rate
        if self._fastest is None or rate > self._fastest.per_second:
            self._fastest = LaneRate(lane.lane, rate, bound)
        if 0 < lane.concurrency <= lane.leased and bound != REST:
            self._full += lane.waiting
            if self._fullest is None or lane.waiting > self._fullest.waiting:
                self._fullest = lane
        if bound == RETRIES:
            self._capped += lane.waiting
            if self._most_capped is None or lane.waiting > self._most_capped.waiting:
                self._most_capped = lane
        pool = pool_of(lane.lane)
        if pool and (pool in self._pools or len(self._pools) < MOST_POOLS):
            known = self._pools.get(pool, PoolLanes())
            self._pools[pool] = PoolLanes(
                known.lanes + 1,
                known.waiting + lane.waiting,
                known.leased + lane.leased,
                known.admissible + rate,
            )

    def _add_down(self, lane: LaneView) -> None:
        if not lane.waiting or lane.state is State.PAUSED:
            return
        self._with_work += 1
        self._probed += not lane.rests_for and lane.trouble > FAILS
        if is_down(lane):
            self._down += 1
            if self._next_probe is None or lane.rests_for < self._next_probe.rests_for:
                self._next_probe = lane

    def survey(self) -> LaneSurvey:
        top = self._top
        five = sum(lane.waiting for lane in top["waiting"][:5])
        return LaneSurvey(
            lanes=self._lanes,
            waiting=self._waiting,
            leased=self._leased,
            states=dict(self._states),
            sizes={_size(digits): count for digits, count in sorted(self._sizes.items())},
            causes=dict(self._causes.most_common(20)),
            admissible=self._admissible,
            bounds=dict(self._bounds),
            at_rest=self._at_rest,
            with_work=self._with_work,
            down=self._down,
            probed=self._probed,
            next_probe=self._next_probe,
            fastest=self._fastest,
            full=self._full,
            fullest=self._fullest,
            capped=self._capped,
            most_capped=self._most_capped,
            by_pool=self._pools,
            top_share=five / self._waiting if self._waiting else 0.0,
            most_waiting=tuple(top["waiting"]),
            longest_rest=tuple(top["rest"]),
            most_trouble=tuple(top["trouble"]),
        )


def state_of(lane: LaneView) -> str:
    if lane.state is not State.RUNNING:
        return lane.state.value
    return RESTING if lane.rests_for > 0 else _RUNNING


def is_down(lane: LaneView) -> bool:
    """It rests after failures, or for longer than the short rests of a lane that finds its rate."""
    return rests_after_failures(lane) or lane.rests_for >= LONG_REST


def rests_after_failures(lane: LaneView) -> bool:
    return lane.rests_for > 0 and lane.trouble > MOSTLY


def all_rest(lanes: LaneSurvey, age: Seconds) -> str:
    """That all lanes with tasks rest, why, and until when; empty if one does not. `age`: of the survey."""
    first = lanes.next_probe
    if first is None or lanes.down < lanes.with_work:
        return ""
    which = "its only lane with tasks rests" if lanes.down == 1 else f"all {lanes.down:,} lanes with tasks rest"
    left = first.rests_for - age
    soon = f"next attempt in {left:.0f} s" if left >= 1 else "the next attempt is due"
    return f"{which}: {first.why or 'failures'} at {first.lane}; {soon}"


def cause(why: str) -> str:
    """Without the figures of one lane: "rate limited: Retry-After 30 s" and "... 31 s" are one cause."""
    return why.partition(":")[0].strip("0123456789 ") or why


def admissible(lane: LaneView) -> float:
    """Starts per second that the lane allows in the next minute: by its interval, by its concurrency and the time that
    its visits take, and by what waits."""
    return allowed(lane).per_second


def allowed(lane: LaneView, held: Seconds = 0.0) -> LaneRate:
    """`held`: how long a visit keeps its place in the lane after its response."""
    return LaneRate(lane.lane, *_rate(lane, held))


def _rate(lane: LaneView, held: Seconds) -> tuple[float, str]:
    """The lowest of its rates, and what bounds it. A survey asks this a hundred thousand times: no dict, no object."""
    if lane.state is State.PAUSED or lane.rests_for >= SOON:
        return 0.0, REST
    awake = (SOON - lane.rests_for) / SOON
    # What is leased is work of the next minute, too: a lane of chains has little else.
    lowest, bound = (lane.waiting + lane.leased) / WORK_OVER, WORK
    if lane.interval > 0 and (rate := awake / lane.interval) < lowest:
        lowest, bound = rate, PACE
    # New tasks go first, and need no credit: only retries are left.
    if lane.retry_credit is not None and lane.retry_credit < 1 and lane.waiting and lowest > RETRY_DRIP:
        lowest, bound = RETRY_DRIP, RETRIES
    if lane.concurrency and lane.latency > 0:
        rate = awake * lane.concurrency / (lane.latency + held)
        if rate < lowest:
            lowest, bound = rate, CONCURRENCY
    return lowest, bound


def _largest(lanes: list[LaneView], key: Callable[[LaneView], float]) -> list[LaneView]:
    once = {lane.lane: lane for lane in lanes}
    return heapq.nlargest(TOP, once.values(), key=key)


def _waiting(lane: LaneView) -> float:
    return lane.waiting


def _rest(lane: LaneView) -> float:
    return lane.rests_for


def _trouble(lane: LaneView) -> float:
    return lane.trouble


def _size(digits: int) -> str:
    if digits <= 1:
        return "1-9" if digits else "0"
    return f"{10 ** (digits - 1):,}-{10**digits - 1:,}"
