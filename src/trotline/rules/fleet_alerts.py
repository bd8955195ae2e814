"""Alerts from what a job runs on: proxy pools, the database, workers; and from the records it stores."""

import shlex

from trotline.model.alert import Severity
from trotline.model.proxy_pool import is_account_pool
from trotline.model.time import Moment, Seconds, iso
from trotline.rules.alerts import AlertRules, Finding, JobSample, Level
from trotline.rules.pool_names import members, titled
from trotline.rules.pool_trouble_texts import trouble_line

_SINK = "sink is unreachable"
_ARCHIVE = ("archive is unreachable", "archive denies access")
_WAITED_FOR = "nothing is lost, workers wait for it"


def proxies(sample: JobSample, rules: AlertRules) -> list[Finding]:
    return _none_free(sample, rules, "proxies", accounts=False)


def accounts(sample: JobSample, rules: AlertRules) -> list[Finding]:
    return _none_free(sample, rules, "accounts", accounts=True)


def proxies_down(sample: JobSample, rules: AlertRules) -> list[Finding]:
    return _down(sample, rules, "proxies_down", accounts=False)


def proxies_file(sample: JobSample, rules: AlertRules) -> list[Finding]:
    return [
        Finding(rule="proxies_file", object=host, text=why, next="trotline proxies list")
        for host, why in sample.broken_files.items()
    ]


def accounts_down(sample: JobSample, rules: AlertRules) -> list[Finding]:
    return _down(sample, rules, "accounts_down", accounts=True)


def database(sample: JobSample, rules: AlertRules) -> list[Finding]:
    p95 = sample.commit_p95
    if p95 is None:
        return [Finding(rule="database", level=Level.UNKNOWN, text="no commits lately", next="trotline doctor")]
    if p95 < rules.database_clear:
        return []
    return [
        Finding(
            rule="database",
            level=Level.FIRES if p95 > rules.database else Level.HOLDS,
            text=f"1 of 20 commits takes {p95:.1f} s or more (sink and frontier together)",
            next="trotline doctor",
            lasting=rules.database_for,
        )
    ]


def sink(sample: JobSample, rules: AlertRules) -> list[Finding]:
    waits = sample.held_back.startswith(_SINK)
    return [_outage("sink", f"{_why(sample.held_back)}; {_WAITED_FOR}", rules.sink_for)] if waits else []


def archive(sample: JobSample, rules: AlertRules) -> list[Finding]:
    waits = sample.held_back.startswith(_ARCHIVE)
    return [_outage("archive", f"{_why(sample.held_back)}; {_WAITED_FOR}", rules.archive_for)] if waits else []


def archive_lost(sample: JobSample, rules: AlertRules) -> list[Finding]:
    if sample.archive is None:
        return []
    return [Finding(rule="archive_lost", text=sample.archive.sentence, next=sample.command("status"))]


def broker(sample: JobSample, rules: AlertRules) -> list[Finding]:
    """Also while workers visit what they have at hand, and report nothing."""
    said = _why(sample.progress.broker)
    return [_outage("broker", f"{said}; nothing is lost, tasks in its queues wait", rules.broker_for)] if said else []


def frontier(sample: JobSample, rules: AlertRules) -> list[Finding]:
    """Never from a sample, which was read from it: a coordinator finds it (coordinator/frontier_outage_alert.py)."""
    return []


def coverage(sample: JobSample, rules: AlertRules) -> list[Finding]:
    return [
        Finding(
            rule="coverage",
            object=f"{drop.kind}.{drop.field}",
            level=Level.FIRES if drop.points >= rules.coverage else Level.HOLDS,
            text=drop.text(),
            next=sample.command("export", "--kind", shlex.quote(drop.kind), "--envelope"),
        )
        for drop in sample.drops or ()
    ]


def worker(sample: JobSample, rules: AlertRules) -> list[Finding]:
    """One that was silent for a while, as behind a broken network, is found again by its name."""
    found = [Finding(rule="worker", object=name, level=Level.OVER) for name in sample.living]
    for lost in sample.lost:
        if lost.silent_for > rules.worker_for:
            continue
        tasks = f"{lost.leased:,} task{'' if lost.leased == 1 else 's'}" if lost.leased else "no task"
        now = f"it held {tasks}, which others take over" if lost.rescued and lost.leased else f"it holds {tasks}"
        since = _clock_time(sample.progress.now - lost.silent_for)
        found.append(
            Finding(
                rule="worker",
                object=lost.name,
                # A time, not a length: the text stays as it is until the alert ends.
                text=f"no heartbeat since {since}, and it did not leave; {now}",
                next=sample.command("watch"),
                clear_after=rules.worker_clear,
            )
        )
    return found


def _clock_time(moment: Moment) -> str:
    return iso(int(moment))[11:19] + " UTC"


def _why(said: str) -> str:
    """Without "sink is unreachable: ", which the title of the alert says."""
    return said.partition(": ")[2] or said


def _outage(rule: str, text: str, lasting: Seconds) -> Finding:
    return Finding(rule=rule, severity=Severity.CRITICAL, text=text, next="trotline doctor", lasting=lasting)


def _none_free(sample: JobSample, rules: AlertRules, rule: str, *, accounts: bool) -> list[Finding]:
    if sample.pools is None:
        return [Finding(rule=rule, level=Level.UNKNOWN)]
    return [
        Finding(
            rule=rule,
            object=f"{trouble.pool} for {trouble.host}",
            severity=Severity.CRITICAL,
            text=trouble_line(trouble),
            next="trotline proxies list",
            lasting=rules.proxies_for,
        )
        for trouble in sample.pools.troubles
        if is_account_pool(trouble.pool) == accounts
    ]


def _down(sample: JobSample, rules: AlertRules, rule: str, *, accounts: bool) -> list[Finding]:
    if sample.pools is None:
        return [Finding(rule=rule, level=Level.UNKNOWN)]
    found = []
    for pool, share in sample.pools.down.items():
        if is_account_pool(pool) == accounts and share.down >= rules.down_clear * share.members:
            text = f"{share.down:,} of {share.members:,} {members(pool, share.members)} of {titled(pool)} are down"
            level = Level.FIRES if share.down > rules.down * share.members else Level.HOLDS
            found.append(Finding(rule=rule, object=pool, level=level, text=text, next="trotline proxies list"))
    return found
