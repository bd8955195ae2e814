"""Where the lines of charts go."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.web.pages.charts import HEIGHT, WIDTH, Given, bar, chart, eta_bar, spark


def _chart(times: list[int], values: list[float | None], step: float = 5.0) -> tuple[str, str]:
    made = chart("c", "t", "/s", times, [Given("a", "done", values)], step=step, sentence="")
    assert made is not None
    return made.lines[0].path, made.data


@given(st.lists(st.integers(0, 10**9), max_size=6))
def test_a_bar_is_filled_exactly_and_every_part_is_visible(values: list[int]) -> None:
    parts = bar((f"p{place}", value) for place, value in enumerate(values))
    assert [part.value for part in parts] == [value for value in values if value]
    if parts:
        assert abs(parts[-1].x + parts[-1].width - WIDTH) < 1
        assert all(part.width > 1 for part in parts)


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=50))
def test_lines_stay_inside_the_picture(values: list[float]) -> None:
    path, _ = _chart([100 + 5 * place for place in range(len(values))], list(values))
    for x, y in re.findall(r"([\d.e+-]+) ([\d.e+-]+)", path):
        assert 0 <= float(x) <= WIDTH
        assert -0.1 <= float(y) <= HEIGHT


def test_a_line_is_interrupted_where_nobody_looked() -> None:
    path, _ = _chart([0, 5, 10, 300, 305], [1.0, 2.0, 1.0, 2.0, 1.0])
    assert path.count("M") == 2


def test_an_unknown_value_is_a_gap_and_not_zero() -> None:
    path, data = _chart([0, 5, 10, 15], [1.0, None, 1.0, 1.0])
    assert path.count("M") == 2
    assert json.loads(data)["lines"] == [[1.0, None, 1.0, 1.0]]


def test_a_single_point_is_no_chart() -> None:
    assert chart("c", "t", "/s", [1], [Given("a", "done", [1.0])], step=5, sentence="") is None
    assert spark([1.0]) == ""


def test_the_table_has_the_newest_first() -> None:
    made = chart("c", "t", "/s", [0, 5, 10], [Given("a", "done", [1.0, 2.0, 3.0])], step=5, sentence="")
    assert made is not None
    assert [row[1] for row in made.rows] == ["3.0", "2.0", "1.0"]


def test_the_tick_of_a_deadline_is_where_the_deadline_is() -> None:
    found = eta_bar(50.0, 75.0, 100.0, 200.0)
    assert found is not None
    assert found.deadline == pytest.approx(2 * (found.x + found.width), abs=1)
    assert found.x < found.likely < found.x + found.width
    assert not found.late


def test_an_end_past_the_deadline_is_late_and_a_past_deadline_has_no_tick() -> None:
    late, past, free = (eta_bar(50.0, 75.0, 100.0, deadline) for deadline in (60.0, -5.0, None))
    assert late is not None and past is not None and free is not None
    assert late.late and late.deadline is not None
    assert past.late and past.deadline is None
    assert not free.late
    assert eta_bar(0.0, 0.0, 0.0, None) is None
