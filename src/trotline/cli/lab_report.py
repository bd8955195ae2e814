"""The report of `trotline lab`, as Markdown and as one HTML file with plots."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from trotline.cli.formatting import safe, size
from trotline.rules.svg_charts import Point, bar_chart, line_chart

if TYPE_CHECKING:
    from trotline.commands.lab import LabResult, Trial

_NEAR = 0.95
"""A configuration that reaches this share of the best one is as good, and smaller."""
_SAME_PACE = 1.15
"""Intervals that differ by a larger factor are another pace."""
_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .3rem .8rem; text-align: left;
border-bottom: 1px solid #8886 } td.number { text-align: right; font-variant-numeric: tabular-nums }
svg { width: 100%; height: auto } .line { stroke: #0b6bcb; stroke-width: 2 } .bar { fill: #0f766e }
.grid { stroke: #8886 } .mark { stroke: #9a5b00; stroke-dasharray: 4 4 } .label { font-size: 11px; fill: currentColor }
"""

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Head and rows."""


def best(trials: Sequence["Trial"]) -> "Trial | None":
    """The smallest configuration that is about as fast as the fastest, of those that had the same pace."""
    fastest = max(trials, key=lambda trial: trial.pages_per_second, default=None)
    if fastest is None:
        return None
    like = [trial for trial in trials if not changed_pace(fastest, trial)]
    good = [trial for trial in like if trial.pages_per_second >= _NEAR * fastest.pages_per_second]
    return min(good, key=lambda each: (each.phase.processes, each.phase.slots), default=None)


def changed_pace(one: "Trial", other: "Trial") -> str:
    """The lane whose pace differs between two measurements; empty: none. A site that answers 429 or slowly is visited
    more slowly, and later faster again: that is not the merit of slots."""
    for lane, interval in one.intervals.items():
        there = other.intervals.get(lane, interval)
        if max(interval, there) > _SAME_PACE * min(interval, there):
            return lane
    return ""


def _paces(result: "LabResult", chosen: "Trial") -> list[str]:
    others = [(trial, lane) for trial in result.trials if (lane := changed_pace(chosen, trial))]
    if not others:
        return []
    trial, lane = others[0]
    then, now = (1 / each.intervals[lane] for each in (trial, chosen))
    names = ", ".join(each.phase.name for each, _ in others)
    return [
        f"The pace of {lane} was not the same in all measurements ({now:.3g}/s in the chosen one, {then:.3g}/s in "
        f"{trial.phase.name}): {names} cannot be compared with it, and what their slots give is unknown."
    ]


def sentences(result: "LabResult") -> list[str]:
    chosen = best(result.trials)
    if chosen is None:
        return [f"Nothing could be measured{': ' + result.ended if result.ended else ''}."]
    found = [
        f"The smallest configuration that is about as fast as any: {chosen.phase.name}, "
        f"with {chosen.pages_per_second:.2f} pages/s.",
        f"There, {chosen.report.advice.sentence}.",
        *_paces(result, chosen),
    ]
    if result.missed:
        found.append(f"Not measured: {', '.join(result.missed)}.")
    return [*found, f"The laboratory ended early: {result.ended}."] if result.ended else found


def measured_table(result: "LabResult") -> Table:
    head = ("processes", "slots each", "pages/s", "in visits", "without work", "CPU each", "memory", "limit")
    rows = []
    for trial in result.trials:
        m, advice = trial.report.measured, trial.report.advice
        shares = ("unknown",) * 3 if m is None else (f"{m.busy:.0%}", f"{m.idle:.0%}", f"{m.cpu:.0%}")
        size_ = (str(trial.phase.processes), str(trial.phase.slots))
        rows.append((*size_, f"{trial.pages_per_second:.2f}", *shares, size(trial.memory), advice.limit))
    return head, rows


def predicted_table(result: "LabResult") -> Table:
    """What the advice said of one more process, where one more was measured with the same slots."""
    rows = []
    by_phase = {(trial.phase.processes, trial.phase.slots): trial for trial in result.trials}
    for (processes, slots), trial in by_phase.items():
        after = by_phase.get((processes + 1, slots))
        gain = trial.report.advice.gain
        if after is not None and trial.pages_per_second and not changed_pace(trial, after):
            real = after.pages_per_second / trial.pages_per_second - 1.0
            said = "unknown" if gain is None else f"{gain:+.0%}"
            rows.append((f"{processes} to {processes + 1} x {slots} slots", said, f"{real:+.0%}"))
    return ("one more process", "predicted", "measured"), rows


def options_table(trial: "Trial") -> Table:
    rows = [
        (
            f"{each.number} x {safe(each.machine, 60)}",
            f"{each.pages_per_second:.2f}",
            each.limit,
            "unknown" if each.hours is None else f"{each.hours:.2f}",
            "unknown" if each.cost is None else f"{each.cost:.2f}",
            "yes" if each.needs_servers else "no",
        )
        for each in trial.report.options
    ]
    head = ("machines", "pages/s", "next limit", "hours", trial.report.currency or "cost", "needs servers")
    return head, rows


def tables(result: "LabResult") -> list[tuple[str, Table]]:
    found = [("Measured", measured_table(result))]
    if (said := predicted_table(result))[1]:
        found.append(("Was the advice right?", said))
    chosen = best(result.trials)
    if chosen is None:
        return found
    raised = {True: "yes", False: "no", None: "unknown"}
    signs = [(each.name, raised[each.raised], each.found, each.meaning) for each in chosen.report.signals]
    found.append(("Signs that one machine is too small", (("sign", "raised", "measured", "what helps"), signs)))
    if chosen.report.options:
        found.append(("Up or out", options_table(chosen)))
    moves = [(each.what, each.now, each.then) for each in chosen.report.moves]
    found.append(("Before other machines can take part", (("what", "now", "then"), moves)))
    return found


def rates(points: Sequence[Point]) -> list[Point]:
    """Pages per second, over about five seconds."""
    found = []
    for then, now in pairwise(points[::5]):
        if now.x > then.x and now.y >= then.y:
            found.append(Point(now.x, (now.y - then.y) / (now.x - then.x)))
    return found


def charts(result: "LabResult") -> list[str]:
    bars = [Point(0, trial.pages_per_second, f"{trial.phase.processes}x{trial.phase.slots}") for trial in result.trials]
    return [
        bar_chart("Pages per second, by processes x slots", bars, "/s"),
        line_chart("Pages per second over time", rates(result.samples), result.changes, "/s"),
    ]


def markdown(result: "LabResult") -> str:
    lines = [f"# Laboratory: {_cell(result.spider)}", "", *sentences(result), ""]
    lines.append(
        f"This machine lets it use {result.cores:g} processors. The plots are in the HTML file beside this one."
    )
    for title, (head, rows) in tables(result):
        lines += ["", f"## {title}", "", f"| {' | '.join(map(_cell, head))} |", "|---" * len(head) + "|"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def html(result: "LabResult") -> str:
    name = escape(safe(result.spider))
    body = [f"<h1>Laboratory: {name}</h1>", *(f"<p>{escape(safe(line, 1000))}</p>" for line in sentences(result))]
    body += [f"<figure>{chart}</figure>" for chart in charts(result)]
    for title, (head, rows) in tables(result):
        body.append(f"<h2>{escape(title)}</h2><table><tr>{''.join(f'<th>{escape(each)}</th>' for each in head)}</tr>")
        body += [f"<tr>{''.join(f'<td>{escape(safe(cell, 500))}</td>' for cell in row)}</tr>" for row in rows]
        body.append("</table>")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>Laboratory: {name}</title><style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _cell(text: str) -> str:
    """Names of hosts and spiders are not Markdown."""
    return "".join(f"\\{char}" if char in "|\\`*_<>[]" else char for char in safe(text, 500))
