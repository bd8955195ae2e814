"""What is said when a run ends: how it ended, where the rows are, what to do about the dead."""

from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli import dead_reasons_view, records_view
from trotline.cli.counter_names import plain
from trotline.cli.formatting import LONGEST, by_number, count, length, rate, rest, safe, safe_url, task_counts
from trotline.cli.limit_cuts_view import cut_lines
from trotline.cli.pool_view import ProxyName, down_line, down_names, str_of_member, use_line
from trotline.cli.suggested_commands import file_in, same
from trotline.commands.dead_reasons import REJECTED, Burial
from trotline.config.backend_urls import repeatable
from trotline.config.backends import look_command
from trotline.coordinator.job_eta import outage
from trotline.model.job import LaneView, State
from trotline.model.proxy_pool import is_account_pool
from trotline.model.row_counts import Stored
from trotline.model.time import Seconds
from trotline.rules.job_figures import visited
from trotline.rules.limit_cuts import Cut, cuts, is_cut
from trotline.rules.near_duplicate_pages import ALIKE_PAGES
from trotline.rules.pool_tallies import PoolUse, uses
from trotline.rules.pool_trouble_texts import trouble_line

if TYPE_CHECKING:
    from trotline.commands.run_report import Report

_MOST = 6
_RETRY = "retry: "


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run, in plain values: the same for text, JSON and tests."""

    ending: str
    spider: str
    job: str
    pages: int
    records: int
    """Rows in the sink now; what was found, where the sink cannot count them."""
    found: int
    """Records that handlers gave; one that was met twice counts twice."""
    seconds: Seconds
    waiting: int
    dead: int
    admitted: int = 0
    leased: int = 0
    """Tasks that workers still hold."""
    done: int = 0
    sink: str
    command: str
    """What was typed: the same command goes on."""
    delayed: int = 0
    """Of those waiting: not due yet, mostly because of a retry."""
    held_back: str = ""
    """Why they wait, as far as it is not a limit."""
    stored: Stored | None = None
    """What became of the records, by the sink's own count; None if it has none."""
    rejected: int = 0
    """Records that failed validation, and are not in the sink."""
    reasons: dict[str, int] = {}
    """How often each reason of the next line was met."""
    burials: tuple[Burial, ...] = ()
    """Why tasks are dead and records were rejected, with an example each."""
    dropped: dict[str, int] = {}
    """Why pages were not read, or links not followed, when no limit did it."""
    cuts: list[Cut] = []
    """What limits and traps left out."""
    warnings: tuple[str, ...] = ()
    """What the author or the operator should know."""
    examples: dict[str, str] = {}
    """Of cuts, and of pages that are alike: a URL each."""
    limit: str = ""
    """The limit that stopped it, as "max_pages=10"."""
    numbers: dict[str, int] = {}
    """How many there were of each of those."""
    pools: list[PoolUse] = []
    """What was done through pools of proxies or of accounts."""
    down: dict[str, list[str]] = {}
    """Proxies that failed in the end, by pool: host:port where the file of the pools is here, else their number."""


HEADLINES = {
    "finished": ("finished", "green"),
    "finished with dead": ("finished, but some tasks are dead", "yellow"),
    "stopped at limit": ("stopped at the limit that was set", "green"),
    "interrupted": ("interrupted; nothing is lost", "yellow"),
    "cancelled": ("cancelled; what waits is kept", "yellow"),
    "empty": ("finished, but no record was stored", "red"),
    "finished, but cut by limits": ("finished, but cut by limits", "yellow"),
}


def dropped(tallies: dict[str, int]) -> dict[str, int]:
    """Of all that was counted: what was skipped, and why. What limits left out stands elsewhere: `cuts`."""
    starts = ("gone", "refused", "links", "duplicate", "out of scope", "dropped", "moved", "too ")
    chosen = {name: n for name, n in tallies.items() if n and name.startswith(starts) and not is_cut(name)}
    return dict(sorted(chosen.items(), key=lambda item: -item[1]))


def lines(summary: Summary) -> list[str]:
    text, colour = HEADLINES.get(summary.ending, (summary.ending, "white"))
    if summary.ending == "stopped at limit" and summary.limit:
        text = f"stopped: {summary.limit} reached"
    if summary.ending == "finished with dead":
        text = dead_reasons_view.headline(summary.dead, summary.rejected)
    speed = rate(summary.pages / summary.seconds) if summary.seconds > 0 else ""
    parts = [
        click.style(f"{safe(summary.spider)}: {text}", fg=colour, bold=True),
        *(_row("cut" if place == 0 else "", text) for place, text in enumerate(cut_lines(summary.cuts))),
        *_titled("warning", [safe(warning, LONGEST) for warning in summary.warnings]),
        _row("pages", f"{count(summary.pages)} in {length(summary.seconds)}" + (f", {speed}" if speed else "")),
        *_records(summary),
        *_titled("proxies", _pools(summary, accounts=False)),
        *_titled("accounts", _pools(summary, accounts=True)),
        *_reasons("skipped", summary.dropped),
        *_alike(summary),
        *_titled("rejected", dead_reasons_view.lines([one for one in summary.burials if one.of_record])),
        *_titled("dead", dead_reasons_view.lines([one for one in summary.burials if not one.of_record])),
    ]
    steps = next_steps(summary)
    return [*parts, "", *(_row(what, command) for what, command in steps)] if steps else parts


def next_steps(summary: Summary) -> list[tuple[str, str]]:
    """(what for, command) of what the author will want now."""
    steps: list[tuple[str, str]] = []
    if summary.records:
        steps.append(("look", look_command(summary.sink, _kinds(summary.stored))))
    if summary.ending == "empty":
        steps.append(("look", same("try", file_in(summary.command), command=summary.command)))
    steps += dead_reasons_view.steps(summary.spider, summary.command, summary.dead, summary.rejected)
    # Also when nothing waits yet: the seeds were still being read.
    if summary.ending == "interrupted" or (summary.waiting + summary.leased and summary.ending == "stopped at limit"):
        steps.append(("resume", summary.command))
    return steps


def _records(summary: Summary) -> list[str]:
    found = records_view.record_lines(summary.found, summary.stored, summary.sink)
    rows = [_row("records" if place == 0 else "", text) for place, text in enumerate(found)]
    if summary.waiting:
        rows.append(_row("waiting", count(summary.waiting) + _for_a_retry(summary)))
    if summary.leased:
        rows.append(_row("leased", count(summary.leased)))
    if summary.held_back:
        rows.append(_row("held back", safe(summary.held_back)))
    return rows


def _for_a_retry(summary: Summary) -> str:
    if not summary.delayed:
        return ""
    return ", for a retry" if summary.delayed == summary.waiting else f", {count(summary.delayed)} of them for a retry"


def _pools(summary: Summary, *, accounts: bool) -> list[str]:
    pools = [use for use in summary.pools if is_account_pool(use.pool) == accounts]
    used = [use_line(use) for use in pools[:_MOST]]
    if len(pools) > _MOST:
        used.append(f"and {count(len(pools) - _MOST, 'other pool')}")
    down = sorted(item for item in summary.down.items() if is_account_pool(item[0]) == accounts)
    return [*used, *(down_line(pool, names) for pool, names in down[:_MOST])]


def _kinds(stored: Stored | None) -> dict[str, int]:
    return dict(sorted(((stored and stored.rows) or {}).items(), key=lambda item: -item[1]))


def _reasons(title: str, reasons: dict[str, int]) -> list[str]:
    ordered = by_number(reasons, _MOST)
    width = max((len(count(number)) for _, number in ordered), default=0)
    shown = [f"{count(number):>{width}}  {safe(plain(why), 90)}" for why, number in ordered]
    if len(reasons) > _MOST:
        shown.append(f"and {count(len(reasons) - _MOST, 'other reason')}")
    return _titled(title, shown)


def _titled(title: str, texts: list[str]) -> list[str]:
    return [_row(title if place == 0 else "", text) for place, text in enumerate(texts)]


def _alike(summary: Summary) -> list[str]:
    shown = alike(summary.numbers, summary.examples)
    return [_row("alike" if place == 0 else "", text) for place, text in enumerate(shown)]


def alike(numbers: dict[str, int], examples: dict[str, str]) -> list[str]:
    """Pages that have the same text: they are stored, but are probably unwanted."""
    named = {name: url for name, url in examples.items() if name.startswith(ALIKE_PAGES)}
    ordered = sorted(named.items(), key=lambda item: -numbers.get(item[0], 0))
    return [f"{count(numbers.get(name, 0))}  {safe(name, 90)}, such as {safe_url(url, 200)}" for name, url in ordered]


def _row(title: str, text: str) -> str:
    return f"  {title:<9} {text}"


def _held_back(report: "Report") -> str:
    """The last reason why tasks wait; if no worker gave one, that of most retries. Without the time of the next try:
    this command does not make it."""
    if report.progress.spent or not report.progress.waiting:
        return ""
    if report.troubles and outage(report.held_back) is None:
        return trouble_line(report.troubles[0])
    if report.held_back:
        return report.held_back.partition(", again in ")[0]
    if resting := [lane for lane in report.lanes if rest(lane)]:
        return _resting(resting[0])
    retried = {why.removeprefix(_RETRY): number for why, number in report.errors.items() if why.startswith(_RETRY)}
    return next((why for why, _ in by_number(retried, 1) if report.progress.delayed), "")


def _resting(lane: LaneView) -> str:
    verb = "rests for" if lane.state is State.RUNNING else "is"
    return f"lane {safe(lane.lane, 100)} {verb} {rest(lane)}"


def summarise(
    report: "Report",
    *,
    ending: str,
    sink: str,
    command: str,
    visited_before: int = 0,
    proxy_name: ProxyName = str_of_member,
) -> Summary:
    """`visited_before`: by earlier runs of the job. `proxy_name`: host:port of a member of a pool."""
    progress = report.progress
    return Summary(
        ending=ending,
        spider=report.job.spider,
        job=report.job.id,
        pages=max(0, visited(progress) - visited_before),
        records=records_view.total(report.found, report.stored),
        found=report.found,
        stored=report.stored,
        seconds=report.elapsed,
        **task_counts(progress),
        held_back=_held_back(report),
        sink=repeatable(sink),
        command=command,
        rejected=progress.tallies.get(REJECTED, 0),
        reasons={burial.why: burial.count for burial in report.burials},
        burials=report.burials,
        warnings=report.warnings,
        dropped=dropped(progress.tallies),
        cuts=cuts(progress, report.job.rules.own_limits),
        pools=uses(progress.tallies),
        down=down_names(report.down, proxy_name),
        examples=progress.examples,
        limit=progress.spent or ("max_time" if ending == "stopped at limit" else ""),
        numbers={name: progress.tallies.get(name, 0) for name in progress.examples},
    )
