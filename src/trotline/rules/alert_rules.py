"""Evaluates the alert rules on a sample of a job."""

from collections.abc import Callable

from trotline.model.job import State
from trotline.rules import fleet_alerts, job_alerts
from trotline.rules.alerts import RULES, AlertRules, Finding, JobSample

_RULES: dict[str, Callable[[JobSample, AlertRules], list[Finding]]] = {
    "queue": job_alerts.queue,
    "errors": job_alerts.errors,
    "blocks": job_alerts.blocks,
    "stalled": job_alerts.stalled,
    "lanes": job_alerts.lanes,
    "empty": job_alerts.empty,
    "deadline": job_alerts.deadline,
    "proxies": fleet_alerts.proxies,
    "proxies_down": fleet_alerts.proxies_down,
    "proxies_file": fleet_alerts.proxies_file,
    "accounts": fleet_alerts.accounts,
    "accounts_down": fleet_alerts.accounts_down,
    "database": fleet_alerts.database,
    "sink": fleet_alerts.sink,
    "archive": fleet_alerts.archive,
    "archive_lost": fleet_alerts.archive_lost,
    "broker": fleet_alerts.broker,
    "frontier": fleet_alerts.frontier,
    "coverage": fleet_alerts.coverage,
    "worker": fleet_alerts.worker,
}
_AT_THE_END = ("empty", "archive_lost", "coverage")
"""What is still true of a job that has ended."""


def findings(sample: JobSample, rules: AlertRules) -> list[Finding]:
    """Of all rules that are not off. A cancelled job has none: an operator has decided."""
    now = sample.progress
    cancelled = now.state is State.CANCELLED
    if cancelled and not now.spent:
        return []
    # A job that has reached its limit (`--max-pages`) is cancelled by the frontier.
    names = _AT_THE_END if cancelled or now.finished_at is not None else tuple(RULES)
    return [found for name in names if name not in rules.off for found in _RULES[name](sample, rules)]
