"""How workers count filled fields: cheaply, bounded, and handed over now and then."""

from typing import Any

from trotline.model.record import Record
from trotline.worker.field_coverage_counts import FLUSH_EVERY, FLUSH_RECORDS, MOST_KINDS, CoverageCount
from trotline.worker.field_stats import MOST_FIELDS


def record(kind: str = "product", **data: Any) -> Record:
    return Record(kind=kind, key="k", data=data, url="https://shop.example/", site="shop.example", seen_at=1.0)


def test_counts_are_handed_over_at_once_at_first_and_then_after_fifty_records_or_five_seconds() -> None:
    count = CoverageCount()
    count.add([record(price="1", title=None)])
    assert count.take(100.0, idle=False) == {"kind records: product": 1, "field set: product / price": 1}
    assert count.take(200.0, idle=False) == {}, "nothing new"
    count.add([record(price="1")] * (FLUSH_RECORDS - 1))
    assert count.take(201.0 - 100.0, idle=False) == {}
    count.add([record(price=" ")])
    assert count.take(101.0, idle=False) == {"kind records: product": 50, "field set: product / price": 49}
    count.add([record(price="1")])
    assert count.take(101.0 + FLUSH_EVERY, idle=False) == {"kind records: product": 1, "field set: product / price": 1}


def test_a_worker_that_has_nothing_else_to_do_hands_over_at_once() -> None:
    count = CoverageCount()
    count.add([record(price="1")])
    count.take(100.0, idle=False)
    count.add([record(price="1")])
    assert count.take(100.1, idle=True) == {"kind records: product": 1, "field set: product / price": 1}


def test_a_field_that_is_missing_or_empty_counts_as_not_filled() -> None:
    count = CoverageCount()
    count.add([record(price="1"), record(price=""), record(), record(price=0)])
    assert count.take(100.0, idle=True) == {"kind records: product": 4, "field set: product / price": 2}


def test_fields_and_kinds_are_bounded() -> None:
    count = CoverageCount()
    count.add([record(**{f"f{number}": "x" for number in range(500)})])
    count.add([record(f"kind-{number}", a="x") for number in range(100)])
    found = count.take(100.0, idle=True)
    assert sum(name.startswith("field set: ") for name in found) == MOST_FIELDS
    assert sum(name.startswith("kind records: ") for name in found) == MOST_KINDS


def test_long_names_that_are_cut_alike_are_added_up() -> None:
    count = CoverageCount()
    count.add([record(**{"x" * 200 + "1": "a", "x" * 200 + "2": "b"})])
    found = count.take(100.0, idle=True)
    assert sorted(found.values()) == [1, 2]
