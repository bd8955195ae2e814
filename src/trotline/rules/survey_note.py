"""What is published about a job now and then, as it is too expensive to be computed for every look."""

import msgspec

from trotline.model.note import LARGEST_NOTE
from trotline.model.server_load import ServerUse
from trotline.model.time import Moment, Seconds
from trotline.rules.failure_trend import SignatureTrend
from trotline.rules.fleet_rates import FlowStep, HostsUse
from trotline.rules.lane_survey import LaneSurvey
from trotline.rules.pool_supply import PoolSupply
from trotline.rules.untrusted_values import is_moment

SUMMARY = "summary"
"""The name of its note."""
SURVEY_EVERY: Seconds = 15.0
OLDEST: Seconds = 600.0
"""A survey is repeated after this long at the latest: on a busy machine it takes many times as long."""
SELDOM = 300.0
"""A survey is repeated after this multiple of the time that it took, if that is longer: a third of a percent of the
time, so that with all that a page reads it stays below one."""


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    at: Moment = 0.0
    """The frontier's time when the lanes were surveyed."""
    took: Seconds = 0.0
    lanes: LaneSurvey = LaneSurvey()
    failures: SignatureTrend = SignatureTrend()
    steps: tuple[FlowStep, ...] = ()
    """What the crew did in the last minute."""
    hosts: HostsUse = HostsUse()
    chains: int = 0
    """With steps that have not ended."""
    pools: tuple[PoolSupply, ...] = ()
    """The pools that its lanes use."""
    servers: tuple[ServerUse, ...] = ()
    extras_at: Moment = 0.0
    """The frontier's time of `pools` and `servers`: not everybody who observes a job can ask for them."""

    def due(self, now: Moment) -> bool:
        """Also if its time is in the future: the clock of a server may be set back."""
        return not 0 <= now - self.at < self.every

    @property
    def every(self) -> Seconds:
        """From this survey to the next, while something observes the job."""
        return min(OLDEST, max(SURVEY_EVERY, SELDOM * self.took))


def encode(summary: JobSummary) -> bytes:
    return msgspec.json.encode(summary)


def decode(data: bytes) -> JobSummary:
    """An empty one, if another program damaged it: the next survey replaces it."""
    try:
        found = msgspec.json.decode(data[:LARGEST_NOTE], type=JobSummary)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return JobSummary()
    return found if is_moment(found.at) else JobSummary()
