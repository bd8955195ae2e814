"""The advice as metrics of a job: what is unknown stays out."""

import msgspec

from trotline.model.metrics import JobGauges
from trotline.rules.advice import Advice
from trotline.rules.job_summary import JobSummary


def with_advice(gauges: JobGauges, advice: Advice, summary: JobSummary, workers: int) -> JobGauges:
    return msgspec.structs.replace(
        gauges,
        workers=workers,
        lanes=summary.lanes.states,
        admissible=advice.admissible_per_second,
        wanted_workers=advice.wanted_workers,
        utilisation=utilisation(advice),
    )


def utilisation(advice: Advice) -> dict[str, float]:
    """By limit: the share of it that is used. Of several pools or servers, the one with the least left."""
    found: dict[str, float] = {}
    rate = advice.pages_per_second
    for limit in advice.limits:
        if rate is not None and limit.per_second:
            found[limit.name] = max(found.get(limit.name, 0.0), min(1.0, rate / limit.per_second))
    return found
