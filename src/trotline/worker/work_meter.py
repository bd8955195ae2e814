"""Measures the work of a process: what is counted per visit is cheap, and idle slots are sampled."""

import asyncio
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trotline.model.outcome import Bury, Done, Retry
from trotline.model.time import Seconds
from trotline.model.verdict import Kind
from trotline.model.work_stats import BOUNDS, NO_REQUEST, SlotSeconds, Timing, WorkStats
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.proxy_faults import ProxyFaults

LAGS = 20
"""Samples of the event loop's lag that are kept: about ten seconds."""
SHORTEST_SAMPLE: Seconds = 0.3
LONGEST_SAMPLE: Seconds = 0.7
_GOLDEN = 0.6180339887
"""Steps of this size spread evenly: samples at equal intervals could always meet a lane at the same point of its pace,
and random numbers would change simulated crawls."""


class TimingMeter:
    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._total = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)

    def add(self, took: Seconds) -> None:
        self._total += took
        self._counts[bisect_left(BOUNDS, took)] += 1

    def timing(self) -> Timing:
        return Timing(self._total, tuple(self._counts))


class WorkMeter:
    """The counters of one worker process."""

    def __init__(self) -> None:
        self.now: Callable[[], Seconds] = time.monotonic
        self._began: Seconds | None = None
        self._received = 0
        self._records = 0
        self._done = self._failed = self._handler_errors = 0
        self._visits: Counter[str] = Counter()
        self._fetch, self._parse, self._commit = TimingMeter(), TimingMeter(), TimingMeter()
        self._steps = dict.fromkeys(("archive", "store", "settle"), 0.0)
        self._step: tuple[str, Seconds] | None = None
        """The one under way, and since when."""
        self._idle = dict.fromkeys(("start", "no_lease", "frontier", "sink"), 0.0)
        self._faults = ProxyFaults()
        self._unexplained = 0.0
        """Idle time since the last sample that found an idle slot."""
        self._busy_seconds = 0.0
        self._busy_at_sample = 0.0
        self._busy = 0
        self._changed_at = 0.0
        self._sampled_at = 0.0
        self._lags: deque[Seconds] = deque(maxlen=LAGS)
        self._phase = 0.0

    def begin(self) -> None:
        """The worker starts, on the running loop."""
        loop = asyncio.get_running_loop()
        # The time of uvloop's own clock stands still while a page is parsed; that of other loops may be virtual.
        self.now = time.monotonic if type(loop).__module__.startswith("uvloop") else loop.time
        self._began = self._changed_at = self._sampled_at = self.now()

    def visit_begins(self) -> None:
        now = self.now()
        self._busy_seconds += self._busy * (now - self._changed_at)
        self._changed_at = now
        self._busy += 1

    def visit_ends(self) -> None:
        now = self.now()
        self._busy_seconds += self._busy * (now - self._changed_at)
        self._changed_at = now
        self._busy -= 1

    def settled(self, visits: Sequence[FinishedVisit]) -> None:
        """Visits that the frontier has accepted."""
        for visit in visits:
            request = visit.request
            self._visits[visit.verdict or NO_REQUEST] += 1
            self._done += isinstance(visit.outcome, Done)
            self._failed += isinstance(visit.outcome, Retry | Bury)
            self._handler_errors += bool(visit.handler_error)
            self._records += len(visit.records)
            self._received += request.wire
            if request.verdict and request.verdict != Kind.REFUSED:
                self._fetch.add(request.took)
            if request.parse:
                self._parse.add(request.parse)
            if visit.lease.member:
                self._faults.settled(visit)

    def committed(self, took: Seconds) -> None:
        self._commit.add(took)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Of a commit: "archive", "store", "settle". Its time counts while it lasts: it may wait for hours for a server
        that is down."""
        began = self.now()
        self._step = name, began
        try:
            yield
        finally:
            self._step = None
            self._steps[name] += self.now() - began

    def next_sample(self) -> Seconds:
        """How long to wait for it."""
        self._phase = (self._phase + _GOLDEN) % 1.0
        return SHORTEST_SAMPLE + (LONGEST_SAMPLE - SHORTEST_SAMPLE) * self._phase

    def sample(self, pause: Seconds, *, slots: int, ready: int, cause: str) -> None:
        """What the idle slots wait for, now: `ready` of them for the start time of a lease, the others for `cause`. It
        stands for the time since the last sample that found an idle slot. `pause`: how long the sample should have
        waited; what it waited longer is the lag of the event loop."""
        now = self.now()
        elapsed, self._sampled_at = now - self._sampled_at, now
        self._lags.append(max(0.0, elapsed - pause))
        busy = self._busy_so_far(now)
        self._unexplained += max(0.0, slots * elapsed - (busy - self._busy_at_sample))
        self._busy_at_sample = busy
        free = slots - self._busy
        if free > 0:
            idle, self._unexplained = self._unexplained, 0.0
            waiting = min(ready, free) / free
            self._idle["start"] += idle * waiting
            self._idle[cause] += idle * (1.0 - waiting)

    def stats(self) -> WorkStats:
        now = self.now()
        return WorkStats(
            uptime=0.0 if self._began is None else now - self._began,
            cpu=time.process_time(),
            waited=_waited(),
            lag=max(self._lags, default=0.0),
            received=self._received,
            records=self._records,
            visits=dict(self._visits),
            done=self._done,
            failed=self._failed,
            handler_errors=self._handler_errors,
            fetch=self._fetch.timing(),
            parse=self._parse.timing(),
            commit=self._commit.timing(),
            proxy_faults=self._faults.newest(),
            archive=self._step_so_far("archive", now),
            store=self._step_so_far("store", now),
            settle=self._step_so_far("settle", now),
            slots=SlotSeconds(busy=self._busy_so_far(now), **self._idle),
        )

    def _step_so_far(self, name: str, now: Seconds) -> Seconds:
        under_way, began = self._step or ("", now)
        return self._steps[name] + (now - began if name == under_way else 0.0)

    def _busy_so_far(self, now: Seconds) -> Seconds:
        return self._busy_seconds + self._busy * (now - self._changed_at)


def _waited() -> Seconds:
    """How long the main thread stood in the scheduler's queue; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
