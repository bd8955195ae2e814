"""Charts as numbers: where the lines and bars of an SVG picture go. Templates draw them with attributes only.

A picture is 1,000 units wide and as high as HEIGHT, and stretched to its place; labels are text beside it, so they
are never distorted.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import ceil, floor, log10

import msgspec

from trotline.model.time import Moment, Seconds
from trotline.web.pages import formatting

WIDTH = 1000
HEIGHT = 160
MOST_POINTS = 180
_SHORTEST: Seconds = 60.0
_ROWS = 24
"""In the table behind a chart."""


class Segment(msgspec.Struct, frozen=True):
    """A part of a bar."""

    name: str
    value: int
    x: float
    width: float


class Line(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    style: str
    """Its class: colour and dashes."""
    path: str
    area: str
    values: tuple[float | None, ...]
    newest: float | None


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    unit: str
    sentence: str
    lines: tuple[Line, ...]
    times: tuple[int, ...]
    places: tuple[float, ...]
    """Of the points, from left to right: 0 to WIDTH."""
    highest: str
    middle: str
    labels: tuple[str, ...]
    """Under it, from the left to the right edge at equal distances."""
    rows: tuple[tuple[str, ...], ...]
    """The same as a table, the newest first."""

    @property
    def data(self) -> str:
        """For the module that shows values under the pointer."""
        lines = [[None if value is None else round(value, 3) for value in line.values] for line in self.lines]
        clocks = [formatting.clock(at) for at in self.times]
        return msgspec.json.encode({"x": self.places, "at": clocks, "lines": lines}).decode()


def bar(parts: Iterable[tuple[str, int]]) -> list[Segment]:
    """Parts of a whole; one that is there is at least visible."""
    given = [(name, value) for name, value in parts if value > 0]
    whole = sum(value for _, value in given)
    if not whole:
        return []
    widths = [max(4.0, WIDTH * value / whole) for _, value in given]
    scale = WIDTH / sum(widths)
    found, x = [], 0.0
    for (name, value), width in zip(given, widths, strict=True):
        found.append(Segment(name, value, round(x, 1), round(width * scale, 1)))
        x += width * scale
    return found


class EtaBar(msgspec.Struct, frozen=True, kw_only=True):
    """From now (0) to the right edge (WIDTH): when a job may end, and its deadline."""

    x: float
    width: float
    likely: float
    deadline: float | None
    """None: there is none, or it is past."""
    late: bool
    """The late end is past the deadline."""


def eta_bar(low: Seconds, likely: Seconds, high: Seconds, deadline: Seconds | None) -> EtaBar | None:
    """None: it ends at once."""
    right = max(high, deadline or 0.0) * 1.05
    if right <= 0:
        return None

    def place(at: Seconds) -> float:
        return round(WIDTH * at / right, 1)

    return EtaBar(
        x=place(low),
        width=max(8.0, round(place(high) - place(low), 1)),
        likely=place(min(max(low, likely), high)),
        deadline=None if deadline is None or deadline <= 0 else place(deadline),
        late=deadline is not None and high > deadline,
    )


def spark(values: Sequence[float], width: int = 120, height: int = 24) -> str:
    """The path of a line without axes; empty if there is nothing to see."""
    if len(values) < 2:
        return ""
    top = max(values) or 1.0
    step = width / (len(values) - 1)
    points = [f"{place * step:.1f} {height - 1 - (height - 2) * value / top:.1f}" for place, value in enumerate(values)]
    return "M" + "L".join(points)


class Given(msgspec.Struct, frozen=True):
    """One line to draw: a value for each time; None: unknown."""

    name: str
    style: str
    values: Sequence[float | None]


def chart(
    name: str, title: str, unit: str, times: Sequence[int], given: Sequence[Given], *, step: Seconds, sentence: str
) -> Chart | None:
    """None: fewer than two points."""
    if len(times) < 2:
        return None
    start, end = times[0], max(times[-1], times[0] + _SHORTEST)
    known = [value for line in given for value in line.values if value is not None]
    top = _nice(max(known, default=0.0))
    places = tuple(round(WIDTH * (at - start) / (end - start), 1) for at in times)
    return Chart(
        id=name,
        title=title,
        unit=unit,
        sentence=sentence,
        lines=tuple(_line(line, times, places, top, 3 * step) for line in given),
        times=tuple(times),
        places=places,
        highest=_label(top),
        middle=_label(top / 2),
        labels=_times(start, end),
        rows=tuple(_rows(times, given)),
    )


def _line(line: Given, times: Sequence[int], places: Sequence[float], top: float, gap: Seconds) -> Line:
    """Where points are missing (nobody looked, or the server was away) the line is interrupted."""
    runs: list[list[tuple[float, float]]] = []
    last: int | None = None
    for at, x, value in zip(times, places, line.values, strict=True):
        if value is None:
            last = None
            continue
        if last is None or at - last > gap:
            runs.append([])
        runs[-1].append((x, round(HEIGHT - HEIGHT * value / top, 1)))
        last = at
    return Line(
        name=line.name,
        style=line.style,
        path=" ".join(_path(run) for run in runs),
        area=" ".join(f"{_path(run)}L{run[-1][0]} {HEIGHT}L{run[0][0]} {HEIGHT}Z" for run in runs),
        values=tuple(line.values),
        newest=line.values[-1],
    )


def _path(run: Sequence[tuple[float, float]]) -> str:
    # A single point would be invisible.
    points = run if len(run) > 1 else [run[0], (run[0][0] + 1, run[0][1])]
    return "M" + "L".join(f"{x} {y}" for x, y in points)


def _nice(value: float) -> float:
    """The next of 1, 2, 4, 5, 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next((factor * power for factor in (1, 2, 4, 5, 10) if value <= factor * power * 1.0001), value)


def _label(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:,.0f}k" if value < 1_000_000 else f"{value / 1_000_000:,.1f}M"
    return f"{value:,.0f}" if value == ceil(value) else f"{value:.2g}"


def _times(start: Moment, end: Moment, number: int = 5) -> tuple[str, ...]:
    form = "%H:%M:%S" if end - start < 600 else "%H:%M" if end - start <= 2 * 86400 else "%b %d"
    steps = [start + (end - start) * place / (number - 1) for place in range(number)]
    return tuple(datetime.fromtimestamp(at, UTC).strftime(form) for at in steps)


def _rows(times: Sequence[int], given: Sequence[Given]) -> Iterable[tuple[str, ...]]:
    step = max(1, len(times) // _ROWS)
    for place in range(len(times) - 1, -1, -step):
        yield (formatting.moment(times[place]), *(formatting.rate(line.values[place]) for line in given))
