"""The state of a job for the metrics of the process that leads it."""

from collections.abc import Collection, Mapping

import msgspec

from trotline.coordinator.observer import Observation
from trotline.coordinator.outlook import living
from trotline.model.metrics import JobGauges
from trotline.rules.advice import Advice, advise
from trotline.rules.alerts import RULES, DownShare
from trotline.rules.metric_boards import gauges_of


def gauges(observation: Observation, firing: Collection[str], down: Mapping[str, DownShare]) -> JobGauges:
    """`firing`: rules of alerts. `down`: proxies, by pool."""
    progress = observation.progress
    advice = advise(progress, observation.summary)
    return msgspec.structs.replace(
        gauges_of(progress),
        workers=living(observation.crew),
        lanes=observation.summary.lanes.states if progress.finished_at is None else {},
        admissible=advice.admissible_per_second,
        wanted_workers=advice.wanted_workers,
        utilisation=_utilisation(advice),
        alerts={rule: rule in firing for rule in RULES},
        proxies={pool: {"up": share.members - share.down, "down": share.down} for pool, share in down.items()},
    )


def _utilisation(advice: Advice) -> dict[str, float]:
    """Of several limits of one kind (pools) the one that is used most."""
    found: dict[str, float] = {}
    for limit in advice.limits:
        if limit.per_second and advice.pages_per_second is not None:
            found[limit.name] = max(found.get(limit.name, 0.0), advice.pages_per_second / limit.per_second)
    return found
