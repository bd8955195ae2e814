"""What an operator should be woken for, told from how a job's books change."""

from collections.abc import Sequence

import msgspec

from trotline.model.job import Progress, State
from trotline.model.time import Seconds

_ERRORS = ("retry: ", "dead: ")
_UNCHANGED = "dropped: unchanged"


class AlertRules(msgspec.Struct, frozen=True, kw_only=True):
    window: Seconds = 600.0
    """Over how long books are compared."""
    growth: float = 1.2
    """The queue grows: more than this times as many wait as a window ago, ..."""
    growth_least: int = 1_000
    """... and at least so many more, although pages end."""
    errors: float = 0.3
    """Errors spike: more than this share of the window's attempts, ..."""
    errors_least: int = 20
    """... at least so many, ..."""
    errors_times: float = 2.0
    """... and this many times the share of the time before."""
    stalled: Seconds = 300.0
    """Nothing ended for so long, although something could run."""
    barren: int = 200
    """So many pages without a single record."""


def alerts(books: Sequence[Progress], rules: AlertRules | None = None) -> dict[str, str]:
    """What is wrong now: its name, and a sentence. `books` are looks at one job, the oldest first."""
    if not books:
        return {}
    rules = rules or AlertRules()
    now = books[-1]
    recent = [look for look in books if now.now - look.now <= rules.window]
    found = {
        "empty run": _empty(now, rules),
        "queue growing": _growing(recent, rules),
        "error spike": _spike(recent, rules),
        "stalled job": _stalled(books, rules),
    }
    return {name: text for name, text in found.items() if text}


def _empty(now: Progress, rules: AlertRules) -> str:
    if _records(now):
        return ""
    ended = now.done + now.dead
    if now.finished_at is not None:
        return f"finished without a single record ({now.done:,} done, {now.dead:,} dead)"
    return f"{ended:,} pages and not a single record" if ended >= rules.barren else ""


def _growing(recent: Sequence[Progress], rules: AlertRules) -> str:
    first, last = recent[0], recent[-1]
    # The first minutes of every crawl grow; a whole window must have passed.
    if last.now - first.now < rules.window * 0.9 or last.finished_at is not None or _ended(last) == _ended(first):
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


def _stalled(books: Sequence[Progress], rules: AlertRules) -> str:
    now = books[-1]
    could_run = now.waiting - now.delayed + now.leased > 0
    if not could_run or now.state is not State.RUNNING or now.finished_at is not None:
        return ""
    # Since the last look at which it was any different: another end, or nothing to do.
    since = now.now
    for look in reversed(books):
        if (_ended(look), look.state) != (_ended(now), now.state) or look.waiting - look.delayed + look.leased <= 0:
            break
        since = look.now
    if now.now - since < rules.stalled:
        return ""
    return f"nothing ended for {_minutes(now.now - since)}: {now.waiting:,} wait, {now.leased:,} leased"


def _ended(books: Progress) -> int:
    return books.done + books.dead


def _errors(books: Progress) -> int:
    return sum(count for name, count in books.tallies.items() if name.startswith(_ERRORS))


def _attempts(books: Progress) -> int:
    """Every retry was an attempt that did not end its task."""
    retries = sum(count for name, count in books.tallies.items() if name.startswith("retry: "))
    return _ended(books) + retries


def _records(books: Progress) -> bool:
    """Also pages that are as they were: their rows are there."""
    return any(count and (name == "records" or name.startswith(_UNCHANGED)) for name, count in books.tallies.items())


def _minutes(seconds: Seconds) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
