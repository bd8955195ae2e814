"""The rate limit of a lane, set by an operator for every job of the frontier."""

import shlex
from typing import NamedTuple

import msgspec

from trotline.errors import SettingsError
from trotline.model.job import Job, LanePace
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import pool_of


class Wanted(NamedTuple):
    """The pace that the operator asks for."""

    rate: Rate
    per_proxy: bool


def wanted(text: str, host: str) -> Wanted:
    """`2/s`, `30/m`, `1/s per proxy`."""
    try:
        rate, per_proxy = Rate.parse_per_proxy(text)
    except ValueError as error:
        raise SettingsError(str(error), hint="For example: trotline pace --host books.example 2/s") from error
    if per_proxy and not pool_of(host):
        raise SettingsError(
            f"{host} has no proxy pool, and the pace is per proxy",
            hint=f"Name the pool: trotline pace --host {shlex.quote(host)} via POOL {text}",
        )
    return Wanted(rate, per_proxy)


def chosen(job: Job, host: str, wanted: Wanted, concurrency: int | None, lane: LanePace | None) -> Pace:
    """What is not asked for stays as it is: that of the lane now, or of the job's spider."""
    base = job.rules.pace(host)
    if lane is not None:
        in_force = [lane.ordered] if lane.ordered is not None else list(lane.jobs.values())
        places = min((each.concurrency for each in in_force), default=base.concurrency)
        base = msgspec.structs.replace(base, concurrency=places)
    slowest = min(base.slowest, wanted.rate, key=lambda one: one.per_second)
    return msgspec.structs.replace(
        base,
        rate=wanted.rate,
        slowest=slowest,
        concurrency=concurrency or base.concurrency,
        per_proxy=wanted.per_proxy,
    )
