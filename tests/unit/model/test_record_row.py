"""A record becomes a row without losing anything that has a written form."""

import errno
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.record import Record
from trotline.model.record_row import Unstorable, json_text, row_of
from trotline.rules.file_errors import explain
from trotline.rules.storable_rows import newest_rows

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def record(data, key="T1", seen_at=1.0):
    return Record(kind="product", key=key, data=data, url="https://shop.example/", site="shop", seen_at=seen_at)


def nested(levels, value=1):
    for _ in range(levels):
        value = [value]
    return value


@given(st.dictionaries(st.text(), plain, max_size=4), st.text())
def test_what_goes_in_comes_out(data, key):
    row = row_of(record(data, key))
    assert (row.fields(), row.key) == (data, key)


@given(
    st.text(st.characters(categories=["Cs", "Ll", "Lo"])), st.text(st.characters(categories=["Cs", "Lu"]), min_size=1)
)
def test_half_a_pair_never_costs_the_row(text, name):
    row = row_of(record({name: [text]}, key=text))
    "".join(map(str, row)).encode()
    assert len(row.key) == len(text)


def test_numbers_without_a_json_form_are_nothing():
    assert json_text({"a": float("nan"), "b": float("inf")}) == '{"a":null,"b":null}'


def test_endless_nesting_and_foreign_objects_are_refused():
    for data in ({"a": nested(500)}, {"a": nested(500, "\ud800")}, {"a": object()}, {("a",): 1}):
        with pytest.raises(Unstorable):
            json_text(data)


def test_much_but_shallow_data_is_welcome():
    assert json_text([[]] * 1000 + ["{" * 1000, nested(100)])


def test_of_one_thing_in_a_batch_the_newest_stays_and_of_equals_the_last():
    batch = [record({"v": v}, seen_at=seen_at) for v, seen_at in enumerate([1.0, 3.0, 3.0, 2.0])]
    assert [row.fields() for row in newest_rows(batch)] == [{"v": 2}]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EISDIR, errno.EIO, errno.EBADF])
def test_every_error_of_the_system_is_explained(number):
    what, hint = explain(OSError(number, "reason"))
    assert what
    assert hint


def test_every_error_of_sqlite_is_explained():
    with pytest.raises(sqlite3.Error) as caught:
        sqlite3.connect("file:/nowhere/at/all?mode=ro", uri=True)
    assert explain(caught.value)[0] == "it cannot be opened"
    assert all(explain(sqlite3.ProgrammingError("closed")))


def test_a_table_that_does_not_fit_is_not_blamed_on_the_disk():
    db = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.Error) as caught:
        db.execute("SELECT colour FROM visits")
    db.close()
    what, hint = explain(caught.value)
    assert what == "no such table: visits"
    assert hint.startswith("Its tables are not those that this version creates.")
