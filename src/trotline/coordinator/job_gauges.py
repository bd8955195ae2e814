"""The state of a job for the metrics of the process that leads it."""

from collections.abc import Collection, Mapping

import msgspec

from trotline.coordinator.held_back import held_back_by
from trotline.coordinator.job_eta import living, outage_text
from trotline.coordinator.job_observer import Observation
from trotline.model.metrics import JobGauges
from trotline.rules.advice import Advice, advise
from trotline.rules.alerts import RULES, DownShare
from trotline.rules.metrics_registry import gauges_of


def gauges(observation: Observation, firing: Collection[str], down: Mapping[str, DownShare]) -> JobGauges:
    """`firing`: rules of alerts. `down`: proxies, by pool."""
    progress = observation.progress
    workers = living(observation.crew)
    advice = advise(progress, observation.summary, outage_text(held_back_by(observation.crew)), workers)
    return msgspec.structs.replace(
        gauges_of(progress),
        workers=workers,
        lanes=observation.summary.lanes.states if progress.finished_at is None else {},
        admissible=advice.admissible_per_second,
        wanted_workers=advice.wanted_workers,
        utilisation=utilisation(advice),
        # A coordinator that cannot reach the frontier shows no jobs.
        alerts={rule: rule in firing for rule in RULES if rule != "frontier"},
        proxies={pool: {"up": share.members - share.down, "down": share.down} for pool, share in down.items()},
    )


def utilisation(advice: Advice) -> dict[str, float]:
    """By limit: the share of it that is used. Of several pools or servers, the one with the least left."""
    found: dict[str, float] = {}
    rate = advice.pages_per_second
    for limit in advice.limits:
        if rate is not None and limit.per_second:
            found[limit.name] = max(found.get(limit.name, 0.0), min(1.0, rate / limit.per_second))
    return found
