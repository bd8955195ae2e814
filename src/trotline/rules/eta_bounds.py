"""What bounds the estimated time of completion: the work of each lane at its pace and within its retry budget, and
tasks that are not due yet."""

from math import ceil, log

import msgspec

from trotline.model.job import LaneRules, LaneView, Progress
from trotline.model.time import Seconds
from trotline.rules.adaptive_pace import FORGET
from trotline.rules.pace import BREAKER, FAILING, RETRY_DRIP

ONLY_FAILURES = 1.0 - (1.0 - FORGET) ** BREAKER
"""The share of failures of a lane whose last visits all failed, so that its circuit breaker is open."""
GIVEN_UP = LaneRules().give_up
"""A lane that only fails is given up after about this time, if the spider says nothing else."""


class Load(msgspec.Struct, frozen=True):
    """The remaining work of one lane, which bounds the estimate by its rate limit and its retry budget."""

    waiting: int
    interval: Seconds
    rests_for: Seconds = 0.0
    retry_credit: float | None = None
    """As in LaneView."""
    trouble: float = 0.0

    @property
    def capped(self) -> bool:
        """Does it wait for credit? Then only retries are left: new tasks go first, and need none. Or it only fails:
        then it rests, and its tasks become retries."""
        if self.retry_credit is None or not self.waiting:
            return False
        return self.retry_credit < 1.0 or self.trouble > ONLY_FAILURES

    @property
    def floor(self) -> Seconds:
        """At its pace, without the retry budget."""
        return self.rests_for + self.waiting * self.interval if self.waiting else 0.0

    @property
    def soonest(self) -> Seconds:
        """Its next retries succeed, until it does not count as failing."""
        if not self.capped:
            return self.floor
        good = ceil(log(FAILING / max(FAILING, self.trouble)) / log(1.0 - FORGET))
        return max(self.floor, self.rests_for + self._dripping(min(self.waiting, good)))

    @property
    def usual(self) -> Seconds:
        """Each of its retries ends its page."""
        if not self.capped:
            return self.floor
        left = self._dripping(self.waiting)
        return max(self.floor, self.rests_for + (min(left, GIVEN_UP) if self.trouble > ONLY_FAILURES else left))

    @property
    def latest(self) -> Seconds:
        """Retries fail, too, and come again."""
        return self.usual * (1.0 + self.trouble + self.trouble**2) if self.capped else self.floor

    def _dripping(self, retries: int) -> Seconds:
        return max(0.0, retries - (self.retry_credit or 0.0)) / RETRY_DRIP


def load_of(lane: LaneView) -> Load:
    return Load(lane.waiting, lane.interval, lane.rests_for, lane.retry_credit, lane.trouble)


class Delays(msgspec.Struct, frozen=True):
    """Tasks that are not due yet, most of them retries."""

    tasks: int = 0
    due_in: Seconds = 0.0
    """The last of them."""


NO_DELAYS = Delays()


def delays_of(progress: Progress) -> Delays:
    return Delays(progress.delayed, progress.due_in)
