"""Small charts as SVG: no script, no style attribute, nothing from elsewhere. Each has a title for screen readers."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 10, 14, 34


class Point(NamedTuple):
    x: float
    y: float
    label: str = ""


def line_chart(title: str, points: Sequence[Point], marks: Sequence[Point] = (), unit: str = "") -> str:
    """`marks`: vertical lines with labels."""
    if not points:
        return _empty(title)
    across = max(point.x for point in points) or 1.0
    up = _nice(max(point.y for point in points))
    path = " ".join(f"{_x(point.x, across):.1f},{_y(point.y, up):.1f}" for point in points)
    parts = [_axis(up, unit), f'<polyline class="line" fill="none" points="{path}"/>']
    for place, mark in enumerate(marks):
        x = _x(mark.x, across)
        parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        # Labels of neighbours would stand on each other.
        parts.append(
            f'<text class="label" x="{x + 3:.1f}" y="{_TOP + 10 + 12 * (place % 3)}">{escape(mark.label)}</text>'
        )
    parts.append(f'<text class="label" x="{WIDTH - _RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{across:.0f} s</text>')
    return _svg(title, parts)


def bar_chart(title: str, bars: Sequence[Point], unit: str = "") -> str:
    """One bar for each point; `x` is not used."""
    if not bars:
        return _empty(title)
    up = _nice(max(bar.y for bar in bars))
    wide = (WIDTH - _LEFT - _RIGHT) / len(bars)
    parts = [_axis(up, unit)]
    for place, bar in enumerate(bars):
        x, y = _LEFT + place * wide + 0.15 * wide, _y(bar.y, up)
        high = HEIGHT - _BOTTOM - y
        middle = x + 0.35 * wide
        parts.append(f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{0.7 * wide:.1f}" height="{high:.1f}"/>')
        parts.append(f'<text class="label" x="{middle:.1f}" y="{y - 3:.1f}" text-anchor="middle">{bar.y:.3g}</text>')
        parts.append(
            f'<text class="label" x="{middle:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{escape(bar.label)}</text>'
        )
    return _svg(title, parts)


def _x(value: float, across: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * value / across


def _y(value: float, up: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / up


def _axis(up: float, unit: str) -> str:
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _y(share * up, up)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        text = f"{share * up:.3g} {unit}".strip()
        parts.append(f'<text class="label" x="{_LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    return "".join(parts)


def _nice(value: float) -> float:
    """The next round number, so that the axis can be read."""
    if value <= 0:
        return 1.0
    size = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 0.1
    while size > value:
        size /= 10
    return next((size * step for step in (1, 1.5, 2, 3, 5, 7.5, 10) if size * step >= value), value)


def _svg(title: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def _empty(title: str) -> str:
    text = f'<text class="label" x="{WIDTH / 2}" y="{HEIGHT / 2}" text-anchor="middle">nothing was measured</text>'
    return _svg(title, [text])
