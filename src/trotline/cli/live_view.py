"""The live view of a run, for a terminal."""

from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from trotline.cli.eta_view import Outlook
from trotline.cli.formatting import by_number, clock, count, eta, every, rate, rest, retries_limited, safe
from trotline.cli.limit_cuts_view import cut_lines
from trotline.cli.outage_remedy import remedy
from trotline.cli.records_view import record_counts
from trotline.cli.workers_view import crew_table
from trotline.model.job import LaneView, State
from trotline.rules.eta import Range, Unknown
from trotline.rules.limit_cuts import cuts
from trotline.rules.pool_trouble_texts import trouble_lines
from trotline.rules.proxy_reasons import grouped

if TYPE_CHECKING:
    from trotline.commands.run_report import Report

_FRAME = 4
"""Lines for the hint at the end, and one that stays free: a picture as high as the screen makes it scroll."""
_WARNINGS = 2
Draw = Callable[["Report", Range | Unknown, int, int], Text]
"""Report, estimate, width, height: a picture."""
_HINT = "Ctrl-C stops and keeps everything; the same command resumes."


class LiveView:
    """Draws each report over the last one. Nothing is drawn in between: two frames a second cost next to nothing."""

    def __init__(self, max_pages: int | None = None, console: Console | None = None, *, hint: str = _HINT) -> None:
        self._hint = hint or _HINT
        self._console = console or Console(highlight=False)
        self._outlook = Outlook(max_pages)
        self._live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._live.start()

    def show(self, report: "Report", draw: "Draw | None" = None, hint: str = "") -> None:
        """`draw`: another picture than that of the job."""
        found = self._outlook.update(report)
        size = self._console.size
        if draw is None:
            picture = frame(report, found, size.width, size.height, hint or self._hint)
        else:
            picture = draw(report, found, size.width, size.height)
        self._live.update(picture, refresh=True)

    def close(self) -> None:
        self._live.stop()


def frame(report: "Report", found: Range | Unknown, width: int, height: int, hint: str = _HINT) -> Text:
    """One picture of the run, as high as it must be and never higher than the screen.

    Lines are laid out here and not by rich's tables: those take five times as long, twice a second.
    """
    rows = header(report, found, width)
    rows += [
        Text(f"cut: {text}", style="yellow")
        for text in cut_lines(cuts(report.progress, report.job.rules.own_limits)[:3])
    ]
    rows += [Text(f"warning: {safe(warning)}", style="yellow") for warning in report.warnings[:_WARNINGS]]
    if len(report.warnings) > _WARNINGS:
        rows.append(Text(f"and {count(len(report.warnings) - _WARNINGS, 'other warning')}", style="yellow"))
    if report.progress.seen:
        rows.append(Text(f"seen: {safe(report.progress.seen, 200)}", style="dim"))
    room = height - len(rows) - _FRAME
    errors = by_number(grouped(report.errors), max(0, min(5, room // 3 - 2)))
    room -= len(errors) + 2 if errors else 0
    # Title, blank line and "and 3 more" belong to the lanes too.
    lanes = report.lanes if len(report.lanes) <= room - 2 else report.lanes[: max(0, room - 3)]
    room -= len(lanes) + 3 if lanes else 0
    crew = report.crew if len(report.crew) <= room - 2 else report.crew[: max(0, room - 3)]
    if lanes:
        rows += [Text(), *lane_rows(lanes, len(report.lanes) - len(lanes), width)]
    if crew:
        rows += [Text(), *crew_table(crew, len(report.crew) - len(crew), report.job)]
    if errors:
        rows += [Text(), *_errors(errors)]
    rows += [Text(), Text(hint, style="dim")]
    for row in rows:
        row.truncate(width, overflow="ellipsis")
    return Text("\n", no_wrap=True, end="").join(rows)


def header(report: "Report", found: Range | Unknown, width: int) -> list[Text]:
    """What stands on top of every picture."""
    return [
        _title(report, width),
        *_held_back(report),
        *_troubles(report, width),
        _bar(report, found, width),
        _counts(report),
        _flow(report),
    ]


def _title(report: "Report", width: int) -> Text:
    name = Text(safe(report.job.id, 50), style="bold")
    if report.resumed:
        name.append("  resumed", style="not bold cyan")
    if report.progress.state is not State.RUNNING:
        name.append(f"  {report.progress.state}", style="not bold yellow")
    time = clock(report.elapsed)
    name.append(" " * max(1, width - name.cell_len - len(time)) + time)
    return name


def _held_back(report: "Report") -> list[Text]:
    lines = [report.held_back, remedy(report.held_back, report.job)]
    return [Text(safe(text), style="yellow") for text in lines if text]


def _troubles(report: "Report", width: int) -> list[Text]:
    """Over two lines where one is too short: the time at the end is what is looked for."""
    lines = [part for text in trouble_lines(report.troubles) for part in wrap(text, width, subsequent_indent="  ")]
    return [Text(part, style="yellow") for part in lines]


def _bar(report: "Report", found: Range | Unknown, width: int) -> Text:
    progress = report.progress
    ended, admitted = progress.done + progress.dead, progress.admitted
    share = f"{int(100 * ended / admitted)} % of {count(admitted)} admitted" if admitted else "seeding"
    left = "ends in " + eta(found) if isinstance(found, Range) else eta(found)
    room = max(5, width - len(share) - len(left) - 4)
    full = room * ended // admitted if admitted else 0
    return Text.assemble(("━" * full, "green"), ("─" * (room - full), "dim"), f"  {share}", ("  " + left, "cyan"))


def _counts(report: "Report") -> Text:
    progress = report.progress
    text = Text()
    for word, number, style in (
        ("waiting", progress.waiting, "bold"),
        ("leased", progress.leased, "bold"),
        ("done", progress.done, "bold green"),
        ("dead", progress.dead, "bold red" if progress.dead else "bold"),
    ):
        text.append(f"{word} ")
        text.append(f"{count(number):<9}", style=style)
    if progress.delayed:
        text.append(f"({count(progress.delayed)} not due yet)", style="dim")
    return text


def _flow(report: "Report") -> Text:
    if report.whole:
        workers = count(report.workers, "worker")
    else:
        workers = f"{report.workers} process" + ("" if report.workers == 1 else "es")
    return Text.assemble(
        (rate(report.pages_per_second), "bold"),
        "   ",
        "records ",
        (record_counts(report.found, report.stored), "bold"),
        "   ",
        workers,
    )


def lane_rows(lanes: list[LaneView], hidden: int, width: int) -> list[Text]:
    widest = max(cell_len(safe(lane.lane, 100)) for lane in lanes)
    longest = min(28, max(cell_len(rest(lane) or retries_limited(lane)) for lane in lanes))
    wide = max(12, min(widest, width - 32 - longest if width < 100 else width // 2))
    rows = [Text(f"{'lane':<{wide}}  waiting  leased    every  rests", style="dim")]
    for lane in lanes:
        numbers = f"{count(lane.waiting):>9}{count(lane.leased):>8}{every(lane):>9}  "
        rows.append(
            Text.assemble(_fitted(safe(lane.lane, 100), wide), numbers, (rest(lane) or retries_limited(lane), "yellow"))
        )
    if hidden > 0:
        rows.append(Text(f"and {count(hidden)} more", style="dim"))
    return rows


def _fitted(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _errors(errors: list[tuple[str, int]]) -> list[Text]:
    rows = [Text("errors", style="dim")]
    for why, number in errors:
        rows.append(Text.assemble((f"{count(number):>6}", "red"), f"  {safe(why, 200)}"))
    return rows
