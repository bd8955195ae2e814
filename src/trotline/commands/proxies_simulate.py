"""Compares proxy policies against a described site, and draws the result."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from math import log10
from typing import NamedTuple

from trotline.rules.proxy_simulation import OURS, POLICIES, Course, Minute, Scenario, simulate

WIDTH, HEIGHT, LEFT, TOP = 400, 170, 56, 30
"""Of one diagram."""
PLOT_WIDTH, PLOT_HEIGHT = 320, 108
LEGEND = 26
COLOURS = ("#0f766e", "#b45309", "#7c3aed", "#64748b")


class _Diagram(NamedTuple):
    title: str
    values: Callable[[Course], list[float]]


def compare(scenario: Scenario, done: Callable[[str], None] = lambda _: None) -> list[Course]:
    """Every policy in the same scenario, ours first."""
    courses = []
    for policy in POLICIES:
        courses.append(simulate(scenario, policy))
        done(policy)
    return courses


def svg(courses: Sequence[Course]) -> str:
    """Four diagrams over time. Nothing in it is loaded from elsewhere."""
    width, height = 2 * WIDTH, LEGEND + 2 * HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="12" role="img" aria-label="Policies for proxies over time">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for place, course in enumerate(courses):
        x = 16 + place * 190
        lines.append(f'<rect x="{x}" y="9" width="14" height="4" fill="{COLOURS[place % len(COLOURS)]}"/>')
        lines.append(f'<text x="{x + 20}" y="15">{escape(course.policy)}</text>')
    for place, diagram in enumerate((*_DIAGRAMS, _COST if _priced(courses) else _REQUESTS)):
        lines += _diagram(diagram, courses, WIDTH * (place % 2), LEGEND + HEIGHT * (place // 2))
    return "\n".join([*lines, "</svg>", ""])


def html(courses: Sequence[Course], title: str, table: Sequence[Sequence[str]]) -> str:
    head, *rows = table
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Proxy policies</title>
<style>body{{font:14px sans-serif;margin:2em;max-width:60em}}td,th{{padding:.2em .8em;text-align:right}}
td:first-child,th:first-child{{text-align:left}}</style>
<h1>Proxy policies</h1><p>{escape(title)}</p>
<table><tr>{"".join(f"<th>{escape(cell)}</th>" for cell in head)}</tr>{body}</table>
{svg(courses)}</html>
"""


def _per_minute(value: Callable[[Course, Minute], float]) -> Callable[[Course], list[float]]:
    return lambda course: [value(course, minute) for minute in course.minutes]


def _summed(value: Callable[[Course, Minute], float]) -> Callable[[Course], list[float]]:
    def values(course: Course) -> list[float]:
        total, found = 0.0, []
        for minute in course.minutes:
            total += value(course, minute)
            found.append(total)
        return found

    return values


def _per_good(value: Callable[[Course, Minute], float]) -> Callable[[Course], list[float]]:
    """Cumulative sum per good page, from the start to each minute."""

    def values(course: Course) -> list[float]:
        sums, good = _summed(value)(course), _summed(lambda _, minute: minute.good)(course)
        return [total / pages if pages else 0.0 for total, pages in zip(sums, good, strict=True)]

    return values


_DIAGRAMS = (
    _Diagram("good pages per minute", _per_minute(lambda _, minute: minute.good)),
    _Diagram("bans so far", _summed(lambda _, minute: minute.bans)),
    _Diagram("refused requests per minute", _per_minute(lambda _, minute: minute.refused)),
)
_COST = _Diagram("cost of 1,000 good pages so far", _per_good(lambda course, minute: 1000 * course.cost(minute)))
_REQUESTS = _Diagram("requests for a good page so far", _per_good(lambda _, minute: minute.requests))
"""Instead of the cost, where the scenario has no price."""


def _priced(courses: Sequence[Course]) -> bool:
    return any(course.scenario.cost_per_gb or course.scenario.cost_per_request for course in courses)


def _diagram(diagram: _Diagram, courses: Sequence[Course], x: int, y: int) -> Iterator[str]:
    series = [diagram.values(course) for course in courses]
    most = _round_up(max((max(values) for values in series), default=0.0))
    left, top = x + LEFT, y + TOP
    yield f'<text x="{left}" y="{y + 20}" font-weight="bold">{escape(diagram.title)}</text>'
    for part in (0.0, 0.5, 1.0):
        at = top + PLOT_HEIGHT * (1 - part)
        yield f'<line x1="{left}" x2="{left + PLOT_WIDTH}" y1="{at:.0f}" y2="{at:.0f}" stroke="#e2e8f0"/>'
        yield f'<text x="{left - 6}" y="{at + 4:.0f}" text-anchor="end" fill="#475569">{_label(most * part)}</text>'
    minutes = max((len(values) for values in series), default=1)
    yield (
        f'<text x="{left + PLOT_WIDTH}" y="{top + PLOT_HEIGHT + 16}" text-anchor="end" fill="#475569">'
        f"{minutes} min</text>"
    )
    # Ours last, so that it is on top.
    for place in sorted(range(len(courses)), key=lambda place: courses[place].policy == OURS):
        points = " ".join(
            f"{left + PLOT_WIDTH * (number + 0.5) / minutes:.0f},{top + PLOT_HEIGHT * (1 - value / most):.0f}"
            for number, value in enumerate(series[place])
        )
        colour = COLOURS[place % len(COLOURS)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _label(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _round_up(value: float) -> float:
    """To a round number, for the end of a scale."""
    if value <= 0:
        return 1.0
    power = 10.0 ** int(log10(value) // 1)
    return next(step * power for step in (1, 1.5, 2, 3, 4, 6, 8, 10) if value <= step * power * (1 + 1e-9))
