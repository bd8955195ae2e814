"""In how many records a field is filled, and what is worth a warning."""

from typing import Any

import pytest

from trotline.rules.field_coverage import (
    MOST_MARKS,
    FieldCoverage,
    RecentCoverage,
    coverage,
    drops,
    is_empty,
    recent_drops,
)


@pytest.mark.parametrize("value", [None, "", "  \n\t", [], {}, ()])
def test_these_values_are_empty(value: Any) -> None:
    assert is_empty(value)


@pytest.mark.parametrize("value", [0, 0.0, False, True, "0", " x", [None], {"a": None}])
def test_these_values_are_filled(value: Any) -> None:
    assert not is_empty(value)


def test_coverage_is_the_share_of_all_records_of_the_kind() -> None:
    found = coverage(
        {
            "records": 30,
            "kind records: product": 20,
            "field set: product / price": 15,
            "field set: product / title": 20,
            "kind records: review": 10,
            "field set: review / text": 1,
            "field empty: product / brand": 1,
        }
    )
    assert {(each.kind, each.field): each.share for each in found} == {
        ("product", "brand"): 0.0,
        ("product", "price"): 0.75,
        ("product", "title"): 1.0,
        ("review", "text"): 0.1,
    }


def test_fields_that_were_merged_are_unknown_and_not_zero() -> None:
    tallies = {"kind records: product": 20, "field set: others": 40, "field empty: product / brand": 1}
    assert coverage(tallies) == []
    assert coverage({"field set: product / price": 15}) == [], "the number of records is not known"


def field(share: float, records: int = 1000, name: str = "price") -> FieldCoverage:
    return FieldCoverage(kind="product", field=name, records=records, filled=round(records * share))


def test_a_drop_of_ten_points_is_found_the_largest_first() -> None:
    before = [field(0.95), field(0.9, name="title"), field(0.5, name="brand")]
    now = [field(0.85), field(0.81, name="title"), field(0.0, name="brand")]
    assert [(drop.field, round(drop.points, 2)) for drop in drops(now, before)] == [("brand", 0.5), ("price", 0.1)]


def test_few_records_are_not_compared() -> None:
    assert drops([field(0.1, 199)], [field(0.9)]) == []
    assert drops([field(0.1)], [field(0.9, 199)]) == []
    assert len(drops([field(0.1, 200)], [field(0.9, 200)])) == 1


def test_new_fields_and_better_ones_are_no_drop() -> None:
    assert drops([field(0.1, name="new"), field(0.95)], [field(0.9)]) == []


def test_a_drop_names_both_shares() -> None:
    [drop] = drops([field(0.4)], [field(0.9)])
    assert drop.text() == "product: field 'price' is filled in 40% of 1,000 records, 90% in the last job"


def price(records: int, filled: int) -> list[FieldCoverage]:
    return [FieldCoverage(kind="product", field="price", records=records, filled=filled)]


def test_the_last_records_of_an_old_job_are_looked_at_too() -> None:
    """Of 100,000 records the last 600 have no price: of all of them that is less than a percent."""
    window, before = RecentCoverage(), price(90_000, 85_500)

    def found(records: int, filled: int) -> list[str]:
        now = price(records, filled)
        return [drop.text() for drop in recent_drops(window.add(now), now, before, fell=0.1, least=200)]

    assert found(99_000, 94_050) == []
    assert found(100_000, 95_000) == []
    assert found(100_050, 95_000) == [], "most of the last 1,050 are fine"
    assert found(100_600, 95_000) == [
        "product: field 'price' is filled in 0% of the last 550 records (94% of all 100,600), 95% in the last job"
    ]
    assert found(101_300, 95_665) == [], "the last ones are fine again"


def test_without_an_earlier_look_it_is_the_whole_job() -> None:
    now = price(5_000, 1_000)
    [drop] = recent_drops(RecentCoverage().add(now), now, price(5_000, 4_500), fell=0.1, least=200)
    assert drop.text() == "product: field 'price' is filled in 20% of 5,000 records, 90% in the last job"


def test_a_slow_job_is_remembered_for_a_bounded_number_of_looks() -> None:
    window = RecentCoverage()
    for number in range(2 * MOST_MARKS):
        window.add(price(number, number))
        window.add(price(number, number))
    [recent] = window.add(price(2 * MOST_MARKS, 2 * MOST_MARKS))
    assert recent.records == 2 * MOST_MARKS, "the window is longer than what is remembered"
