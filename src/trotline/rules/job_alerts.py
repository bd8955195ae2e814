"""Alerts from the counters of a job: growing queue, errors, blocks, stalled, empty, deadline."""

from collections.abc import Callable, Sequence

from trotline.model.alert import Severity
from trotline.model.job import HANDED_OVER, Progress, State
from trotline.model.queue_job import is_queue, own_program
from trotline.rules.alerts import AlertRules, Finding, JobSample, Level, minutes
from trotline.rules.eta import Range
from trotline.rules.job_figures import LISTING, signatures, visited
from trotline.rules.pool_trouble_texts import trouble_line
from trotline.rules.time_series import Point

_UNCHANGED = "dropped: unchanged"
_RECORD_PAGES = 50
"""Visits of routes that give records before a job is called empty: a spider may read all its listings first."""


def queue(sample: JobSample, rules: AlertRules) -> list[Finding]:
    # In its first window every crawl grows: by its seeds, and by what their pages link to.
    grown = [point for point in sample.points if point.at >= sample.progress.started_at + rules.window]
    last = sample.points[-1]
    first = _begin(grown or [last], rules.window)
    if last.at - first.at < rules.window * 0.9 or not last.waiting:
        return []
    more = last.waiting - first.waiting
    grows = more >= rules.queue_least and last.waiting >= first.waiting * rules.queue_growth
    if last.waiting < first.waiting * rules.queue_clear:
        return []
    text = f"{last.waiting:,} tasks wait, {more:,} more than {minutes(last.at - first.at)} ago"
    level = Level.FIRES if grows and last.ended > first.ended else Level.HOLDS
    return [Finding(rule="queue", level=level, text=text, next=sample.command("status"))]


def errors(sample: JobSample, rules: AlertRules) -> list[Finding]:
    found = _spike(
        sample.points, lambda point: point.failed, rules, (rules.errors, rules.errors_least, rules.errors_times)
    )
    level = found or _still(sample.points, lambda point: point.failed, rules, rules.errors_clear)
    if level is None:
        return []
    text = _text(sample.points, lambda point: point.failed, rules, "failed") + _mostly(sample.progress)
    return [Finding(rule="errors", level=level, text=text, next=sample.command("status"))]


def blocks(sample: JobSample, rules: AlertRules) -> list[Finding]:
    found = _spike(
        sample.points, lambda point: point.blocked, rules, (rules.blocks, rules.blocks_least, rules.blocks_times)
    )
    level = found or _still(sample.points, lambda point: point.blocked, rules, rules.blocks_clear)
    if level is None:
        return []
    text = _text(sample.points, lambda point: point.blocked, rules, "were blocked by the site")
    return [Finding(rule="blocks", level=level, text=text, next=sample.command("dead", "--why", "blocked"))]


def stalled(sample: JobSample, rules: AlertRules) -> list[Finding]:
    """Its mark is the number of ended pages: when one ends, the time begins anew."""
    now = sample.progress
    left = now.waiting + now.leased
    if not left or now.state is not State.RUNNING:
        return []
    if now.ended - _begin(sample.points, rules.stalled).ended >= rules.stalled_clear:
        return []
    why, command = _cause(sample)
    quiet = now.now - max((point.at for point in sample.points if point.ended != now.ended), default=now.started_at)
    text = f"no page ended for {minutes(quiet)}: {now.waiting:,} wait, {now.leased:,} leased"
    return [
        Finding(
            rule="stalled",
            # What is delayed waits on purpose, but ends no alert: the retries of a site that is down are delayed too.
            level=Level.FIRES if left > now.delayed else Level.HOLDS,
            severity=Severity.CRITICAL,
            text=f"{text}; {why}" if why else text,
            next=command,
            lasting=rules.stalled,
            mark=str(now.ended),
        )
    ]


def lanes(sample: JobSample, rules: AlertRules) -> list[Finding]:
    """While lanes are probed, between two rests, it is unknown: what is pending or fires stays so."""
    if sample.progress.state is not State.RUNNING:
        return []
    if sample.resting is None:
        return [Finding(rule="lanes", level=Level.UNKNOWN)]
    if not sample.resting:
        return []
    text = f"{sample.resting}. To probe a lane now: {sample.command('resume', '--lane', 'HOST')}"
    severity = Severity.CRITICAL
    return [Finding(rule="lanes", severity=severity, text=text, next=sample.command("status"), lasting=rules.lanes_for)]


def empty(sample: JobSample, rules: AlertRules) -> list[Finding]:
    now = sample.progress
    if _records(now):
        return []
    pages = visited(now)
    enough = pages - now.tallies.get(LISTING, 0) >= min(_RECORD_PAGES, rules.empty_pages)
    if now.finished_at is not None:
        text = f"finished without a single record ({now.done:,} done, {now.dead:,} dead)"
    elif pages >= rules.empty_pages and enough:
        text = f"{pages:,} pages and not a single record"
    else:
        return []
    severity = Severity.CRITICAL
    return [Finding(rule="empty", severity=severity, text=text, next=sample.command("status"))]


def deadline(sample: JobSample, rules: AlertRules) -> list[Finding]:
    length, now = sample.job.rules.deadline, sample.progress
    if not length:
        return []
    left = now.started_at + length - now.now
    command = sample.command("watch")
    if left <= 0:
        text = (
            f"the deadline of {minutes(length)} was {minutes(-left)} ago: {now.waiting + now.leased:,} tasks are left"
        )
        return [Finding(rule="deadline", severity=Severity.CRITICAL, text=text, next=command)]
    found = sample.estimate
    if not isinstance(found, Range):
        why = f" ({found})" if found is not None else ""
        text = f"{minutes(left)} left until the deadline{why}"
        return [Finding(rule="deadline", level=Level.UNKNOWN, text=text, next=command)]
    if found.high < left * (1.0 - rules.deadline_margin):
        return []
    text = f"ends in {minutes(found.low)} to {minutes(found.high)}; the deadline is in {minutes(left)}"
    return [
        Finding(
            rule="deadline",
            level=Level.FIRES if found.high > left else Level.HOLDS,
            severity=Severity.CRITICAL if found.low > left else Severity.WARNING,
            text=text,
            next=command,
            lasting=rules.deadline_for,
        )
    ]


_Count = Callable[[Point], int]


def _spike(points: Sequence[Point], count: _Count, rules: AlertRules, limits: tuple[float, int, float]) -> Level | None:
    share, least, times = limits
    first, last = _begin(points, rules.window), points[-1]
    bad, attempts = count(last) - count(first), _attempts(last) - _attempts(first)
    if bad < least or bad < share * attempts:
        return None
    before, all_before = count(first), _attempts(first)
    if all_before and bad / attempts < times * before / all_before:
        return None
    return Level.FIRES


def _still(points: Sequence[Point], count: _Count, rules: AlertRules, clear: float) -> Level | None:
    """Is the share of the last half window above the lower threshold?"""
    first, last = _begin(points, rules.window / 2), points[-1]
    bad, attempts = count(last) - count(first), _attempts(last) - _attempts(first)
    if attempts <= 0:
        return Level.UNKNOWN
    return Level.HOLDS if bad >= clear * attempts else None


def _text(points: Sequence[Point], count: _Count, rules: AlertRules, what: str) -> str:
    first, last = _begin(points, rules.window), points[-1]
    bad, attempts = count(last) - count(first), _attempts(last) - _attempts(first)
    if attempts <= 0:
        return f"no attempt ended in the last {minutes(last.at - first.at)}: whether it goes on is not known"
    return f"{bad:,} of {attempts:,} attempts {what} in the last {minutes(last.at - first.at)}"


def _mostly(progress: Progress) -> str:
    found = signatures(progress)
    return f"; in the whole job mostly: {found[0][0]} ({found[0][1]:,})" if found else ""


def _attempts(point: Point) -> int:
    """As `job_figures`: visits that ended a task, retries, and visits that the site put off."""
    return point.ended - point.unvisited + point.retries + point.throttled


def _begin(points: Sequence[Point], window: float) -> Point:
    """The first point of the window."""
    now = points[-1].at
    return next(point for point in points if now - point.at <= window)


def _cause(sample: JobSample) -> tuple[str, str]:
    """Why nothing ends, if it is known, and what to do."""
    if not sample.workers and is_queue(sample.job):
        return f"no worker is running: start {own_program(sample.job)}", sample.command("watch")
    if not sample.workers:
        return "no worker is running", f"trotline work {sample.job.rules.source or sample.job.spider + '.py'}"
    if held_back := sample.held_back or sample.progress.missing or sample.progress.broker:
        return f"held back: {held_back}", "trotline doctor"
    if sample.pools is not None and sample.pools.troubles:
        return trouble_line(sample.pools.troubles[0]), "trotline proxies list"
    return "", sample.command("status")


def _records(progress: Progress) -> bool:
    """Records, unchanged pages, whose rows exist, or tasks for other spiders."""
    return any(
        count and (name == "records" or name.startswith((_UNCHANGED, HANDED_OVER)))
        for name, count in progress.tallies.items()
    )
