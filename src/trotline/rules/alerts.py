"""Alerts from the counters of a job: empty run, growing queue, error spike, stalled job; and from its proxy pools."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from trotline.model.job import Progress, State
from trotline.model.proxy_pool import is_account_pool
from trotline.model.time import Moment, Seconds
from trotline.rules.pool_names import members, titled
from trotline.rules.pool_troubles import PoolTrouble

RULES = (
    "empty run", "queue growing", "error spike", "stalled job",
    "no proxy free", "proxies down", "no account free", "accounts down",
)  # fmt: skip
"""The names of all alerts."""
_ERRORS = ("retry: ", "dead: ")
_UNCHANGED = "dropped: unchanged"


class AlertRules(msgspec.Struct, frozen=True, kw_only=True):
    window: Seconds = 600.0
    """The time over which counters are compared."""
    growth: float = 1.2
    """Queue growing: the factor by which waiting tasks grew in a window, ..."""
    growth_least: int = 1_000
    """... and the minimum number, although pages are finished."""
    errors: float = 0.3
    """Error spike: the share of failed attempts in a window, ..."""
    errors_least: int = 20
    """... their minimum number, ..."""
    errors_times: float = 2.0
    """... and the factor on the share before the window."""
    stalled: Seconds = 300.0
    """No page was finished for this long, although tasks could run."""
    barren: int = 200
    """Pages without a single record."""
    no_proxy: Seconds = 300.0
    """A lane had no free proxy or account for this long, although tasks wait."""
    down: float = 0.5
    """More than this share of a pool's members is down."""


class DownShare(NamedTuple):
    """Proxies of a pool that are down, of all."""

    down: int
    members: int


class PoolSample(msgspec.Struct, frozen=True, kw_only=True):
    """The proxy pools of a job at one time."""

    now: Moment
    troubles: Sequence[PoolTrouble] = ()
    down: Mapping[str, DownShare] = {}


def pool_alerts(history: Sequence[PoolSample], rules: AlertRules | None = None) -> dict[str, str]:
    """The current alerts: name -> text. `history`: samples of one job, the oldest first."""
    if not history:
        return {}
    rules = rules or AlertRules()
    found = {}
    for one, all_, accounts in (("proxy", "proxies", False), ("account", "accounts", True)):
        found[f"no {one} free"] = _none_free(history, rules, accounts)
        found[f"{all_} down"] = _down(history[-1], rules, accounts)
    return {name: text for name, text in found.items() if text}


def _none_free(history: Sequence[PoolSample], rules: AlertRules, accounts: bool) -> str:
    now = history[-1]
    troubles = [trouble for trouble in now.troubles if is_account_pool(trouble.pool) == accounts]
    ages = {trouble.lane: now.now - _since(history, trouble.lane) for trouble in troubles}
    lasting = [trouble for trouble in troubles if ages[trouble.lane] >= rules.no_proxy]
    if not lasting:
        return ""
    first = max(lasting, key=lambda trouble: ages[trouble.lane])
    more = f", and {len(lasting) - 1:,} more" if len(lasting) > 1 else ""
    time = _minutes(ages[first.lane])
    who = f"{titled(first.pool)} has had no free {members(first.pool, 1)}"
    return f"{who} for {first.host} for {time} ({first.trouble}){more}"


def _since(history: Sequence[PoolSample], lane: str) -> Moment:
    """The first of the last samples in a row in which the lane is in trouble."""
    since = history[-1].now
    for sample in reversed(history):
        if all(trouble.lane != lane for trouble in sample.troubles):
            break
        since = sample.now
    return since


def _down(now: PoolSample, rules: AlertRules, accounts: bool) -> str:
    shares = [(pool, share) for pool, share in now.down.items() if is_account_pool(pool) == accounts]
    bad = [(pool, share) for pool, share in shares if share.down > rules.down * share.members]
    return "; ".join(
        f"{share.down:,} of {share.members:,} {members(pool, share.members)} of {titled(pool)} are down"
        for pool, share in bad[:5]
    )


def alerts(history: Sequence[Progress], rules: AlertRules | None = None) -> dict[str, str]:
    """The current alerts: name -> text. `history`: samples of one job, the oldest first."""
    if not history:
        return {}
    rules = rules or AlertRules()
    now = history[-1]
    recent = [sample for sample in history if now.now - sample.now <= rules.window]
    found = {
        "empty run": _empty(now, rules),
        "queue growing": _growing(recent, rules),
        "error spike": _spike(recent, rules),
        "stalled job": _stalled(history, rules),
    }
    return {name: text for name, text in found.items() if text}


def _empty(now: Progress, rules: AlertRules) -> str:
    if _records(now):
        return ""
    if now.finished_at is not None:
        return f"finished without a single record ({now.done:,} done, {now.dead:,} dead)"
    return f"{now.ended:,} pages and not a single record" if now.ended >= rules.barren else ""


def _growing(recent: Sequence[Progress], rules: AlertRules) -> str:
    first, last = recent[0], recent[-1]
    # The queue always grows in the first minutes of a crawl: a whole window must have passed.
    if last.now - first.now < rules.window * 0.9 or last.finished_at is not None or last.ended == first.ended:
        return ""
    more = last.waiting - first.waiting
    if more < rules.growth_least or last.waiting < first.waiting * rules.growth:
        return ""
    return f"{last.waiting:,} tasks wait, {more:,} more than {_minutes(last.now - first.now)} ago"


def _spike(recent: Sequence[Progress], rules: AlertRules) -> str:
    first, last = recent[0], recent[-1]
    bad, all_ = _errors(last) - _errors(first), _attempts(last) - _attempts(first)
    if bad < rules.errors_least or bad < rules.errors * all_:
        return ""
    before, all_before = _errors(first), _attempts(first)
    if all_before and bad / all_ < rules.errors_times * before / all_before:
        return ""
    return f"{bad:,} of {all_:,} attempts failed in the last {_minutes(last.now - first.now)}"


def _stalled(history: Sequence[Progress], rules: AlertRules) -> str:
    now = history[-1]
    could_run = now.waiting - now.delayed + now.leased > 0
    if not could_run or now.state is not State.RUNNING or now.finished_at is not None:
        return ""
    # Since the last sample that differs: pages were finished, or there was nothing to do.
    since = now.now
    for sample in reversed(history):
        could_run = sample.waiting - sample.delayed + sample.leased > 0
        if (sample.ended, sample.state) != (now.ended, now.state) or not could_run:
            break
        since = sample.now
    if now.now - since < rules.stalled:
        return ""
    return f"nothing ended for {_minutes(now.now - since)}: {now.waiting:,} wait, {now.leased:,} leased"


def _errors(progress: Progress) -> int:
    return sum(count for name, count in progress.tallies.items() if name.startswith(_ERRORS))


def _attempts(progress: Progress) -> int:
    """Ended tasks and retries."""
    retries = sum(count for name, count in progress.tallies.items() if name.startswith("retry: "))
    return progress.ended + retries


def _records(progress: Progress) -> bool:
    """Records, or unchanged pages, whose rows exist."""
    return any(count and (name == "records" or name.startswith(_UNCHANGED)) for name, count in progress.tallies.items())


def _minutes(seconds: Seconds) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
