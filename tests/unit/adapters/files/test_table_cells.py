"""Cells that a spreadsheet would run are made harmless; everything else stays as it is."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.adapters.files.export import to_csv
from trotline.adapters.files.table_cells import MOST_COLUMNS, OVERFLOW, Columns, cell, formula_safe
from trotline.model.record_row import Row, json_text

DANGEROUS = [
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "'=1", '"=1', "\u00a0=1", "\ufeff=1", "\u200b=1",
    "＝1", "＋1", "－1+1", "＠x", "=cmd|' /C calc'!A0", "-", "+49 30 123", "\ttext", "\x00=1", " ' \"=1",
]  # fmt: skip
HARMLESS = [
    "",
    "tea",
    "a=b",
    "1-2",
    "-5",
    "+5",
    "-12.50",
    "1e-5",
    "-1e+5",
    "https://shop.example/?a=b",
    "'quoted'",
    "[1]",
]


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_formula_gets_a_leading_quote(text):
    assert formula_safe(text) == "'" + text


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays_as_it_is(text):
    assert formula_safe(text) == text


@given(st.text())
def test_no_cell_ever_begins_like_a_formula_unless_it_is_a_number(text):
    safe = str(cell(text))
    if safe[:1] and safe[0] in "=+-@\t\r\n":
        float(safe)


def test_numbers_stay_numbers_and_nothing_is_empty():
    assert [cell(value) for value in (-5, -0.5, None, True, False)] == [-5, -0.5, "", "true", "false"]


def test_raw_leaves_everything_as_it_is():
    assert cell("=1+1", raw=True) == "=1+1"


def table(*data, **options):
    rows = [Row("shop", "product", str(n), "https://shop.example/", 1.0, json_text(one)) for n, one in enumerate(data)]
    out = io.BytesIO()
    assert to_csv(rows, out, **options) == len(data)
    return list(csv.reader(io.StringIO(out.getvalue().decode("utf-8"), newline="")))


def test_the_header_is_every_field_in_the_order_first_met_and_is_safe_too():
    assert table({"b": 1}, {"a": 2, "=c": 3}) == [["b", "a", "'=c"], ["1", "", ""], ["", "2", "3"]]


def test_nested_values_are_json_text():
    [_, [tags, size]] = table({"tags": ["a", "é"], "size": {"w": 1}})
    assert json.loads(tags) == ["a", "é"]
    assert json.loads(size) == {"w": 1}


def test_odd_text_survives_the_way_through_a_csv_reader():
    [_, [text, nul]] = table({"text": 'a "quoted",\r\nline\n', "nul": "a\0b"})
    assert text == 'a "quoted",\r\nline\n'
    assert nul == "a\ufffdb"


@given(
    st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.lists(st.integers())), max_size=5)
)
def test_every_row_has_as_many_cells_as_the_header(data):
    header, *rows = table(*data) or [[]]
    if header:
        assert len(data) == len(rows)
        assert {len(header)} >= {len(row) for row in rows}


def test_endless_field_names_share_the_last_column_and_lose_nothing():
    columns = Columns()
    fields = {f"field{n}": n for n in range(MOST_COLUMNS + 50)}
    columns.learn(fields)
    values = dict(zip(columns.kinds, columns.values(fields), strict=True))
    assert len(values) == MOST_COLUMNS
    assert fields == {name: value for name, value in values.items() if name != OVERFLOW} | values[OVERFLOW]


def test_the_envelope_says_where_a_row_came_from():
    [header, row] = table({"title": "Tea"}, envelope=True)
    assert header == ["title", "_site", "_kind", "_key", "_url", "_seen_at"]
    assert row == ["Tea", "shop", "product", "0", "https://shop.example/", "1970-01-01T00:00:01.000Z"]
