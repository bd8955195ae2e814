"""The state of a job for the metrics of the process that leads it."""

from collections.abc import Collection, Mapping

import msgspec

from trotline.coordinator.observer import Observation
from trotline.coordinator.outlook import living
from trotline.model.metrics import JobGauges
from trotline.rules.advice import advise
from trotline.rules.advice_gauges import with_advice
from trotline.rules.alerts import RULES, DownShare
from trotline.rules.metric_boards import gauges_of


def gauges(observation: Observation, firing: Collection[str], down: Mapping[str, DownShare]) -> JobGauges:
    """`firing`: rules of alerts. `down`: proxies, by pool."""
    progress, summary = observation.progress, observation.summary
    found = with_advice(gauges_of(progress), advise(progress, summary), summary, living(observation.crew))
    return msgspec.structs.replace(
        found,
        lanes=found.lanes if progress.finished_at is None else {},
        alerts={rule: rule in firing for rule in RULES},
        proxies={pool: {"up": share.members - share.down, "down": share.down} for pool, share in down.items()},
    )
