"""Fields that are always empty and selectors that never match, over a whole fleet."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from trotline.commands.resolve_job import JobFound
from trotline.commands.seed import Seeded
from trotline.commands.startup_warnings import about_code, about_seeds
from trotline.model.harvest import Follow
from trotline.model.job import Job, LaneRules
from trotline.model.record import Record
from trotline.rules.author_warnings import FIELD_FILLED, warnings
from trotline.worker.field_stats import MOST_FIELDS, FieldStats


def thing(**data: Any) -> Record:
    return Record(kind="product", key="1", data=data, url="", site="shop", seen_at=0.0)


def follow(query: str, *urls: str) -> Follow:
    return Follow(route="listing", urls=list(urls), query=query)


class Fleet:
    """Workers whose settlements are all accepted, and what was counted."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = [FieldStats() for _ in range(workers)]
        self.tallies: Counter[str] = Counter()

    def page(self, *records: Record, follows: tuple[Follow, ...] = (), worker: int = 0) -> None:
        facts = self.workers[worker].facts("listing", records, follows)
        self.tallies.update(facts)
        self.workers[worker].confirm(facts)


@pytest.mark.parametrize("empty", [None, "", "  ", [], {}])
def test_a_field_that_is_empty_in_all_records_is_named(empty: Any) -> None:
    fleet = Fleet()
    for number in range(5):
        fleet.page(thing(sku=f"T{number}", price=empty, stock=0, sold=False))

    [warning] = warnings(fleet.tallies)
    assert warning == "product: field 'price' is empty in all records"


def test_one_record_in_the_fleet_with_a_value_is_enough() -> None:
    fleet = Fleet(workers=2)
    for _ in range(5):
        fleet.page(thing(price=None), worker=0)
    fleet.page(thing(price=4.5), worker=1)

    assert warnings(fleet.tallies) == []


def test_a_selector_that_matches_on_no_page_is_named() -> None:
    fleet = Fleet()
    for number in range(3):
        fleet.page(follows=(follow("li.next a"), follow(".card a", f"https://shop.example/{number}")))
        fleet.page(follows=(follow(".card a"),))

    [warning] = warnings(fleet.tallies)
    assert warning == "listing: page.follow('li.next a') matched nothing on any page"


def test_each_fact_is_told_once_and_again_if_its_settlement_was_lost() -> None:
    field_stats = FieldStats()
    first = field_stats.facts("listing", [thing(sku="T1")], [])
    assert first == field_stats.facts("listing", [thing(sku="T1")], []) == (f"{FIELD_FILLED}product / sku",)

    field_stats.confirm(first)
    assert field_stats.facts("listing", [thing(sku="T2")], []) == ()


def test_pages_that_name_their_fields_do_not_become_as_many_counters() -> None:
    fleet = Fleet()
    for number in range(1_000):
        fleet.page(thing(**{f"field {number}": "x"}))
    assert len(fleet.tallies) <= MOST_FIELDS


def test_half_a_surrogate_pair_in_a_name_is_no_defect() -> None:
    fleet = Fleet()
    fleet.page(thing(**{"half \ud83d": None}))
    "".join(fleet.tallies).encode()


def test_where_counters_were_folded_nothing_is_claimed() -> None:
    assert warnings({"field empty: product / price": 1, "field filled: others": 3}) == []


def test_another_file_and_another_version_are_told_apart() -> None:
    job = Job(id="shop-1", spider="shop", started_at=0.0, version="a" * 12, rules=LaneRules(source="shop.py"))
    resumed = JobFound(job, True, job)
    assert about_code(resumed, "shop.py", "a" * 12) == []
    assert "shop.py has changed since shop-1 began" in about_code(resumed, "shop.py", "b" * 12)[0]
    [other] = about_code(resumed, "store.py", "b" * 12)
    assert "started from shop.py, and this is store.py" in other


def test_a_new_job_is_told_of_another_file_of_its_name_but_not_of_changes() -> None:
    job = Job(id="shop-1", spider="shop", started_at=0.0, version="a" * 12, rules=LaneRules(source="shop.py"))
    new = JobFound(msgspec.structs.replace(job, id="shop-2"), False, job)
    assert about_code(new, "shop.py", "b" * 12) == []
    [other] = about_code(new, "store.py", "b" * 12)
    assert "shop-1 was started from shop.py, and this is store.py: two files have a spider named 'shop'" in other
    assert about_code(JobFound(job, False, None), "store.py", "b" * 12) == []


def test_seeds_out_of_scope_are_named_as_such() -> None:
    seeded = Seeded(new=3, refused=Counter({"host": 2}), examples={"host": "https://other.example/"})
    assert about_seeds(seeded) == [
        "2 seeds are not visited: out of scope: not one of the spider's hosts, such as https://other.example/"
    ]
