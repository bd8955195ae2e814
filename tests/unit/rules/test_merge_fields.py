"""Which value a thing gets, and whose it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.merge import MergeRule, Source, source_id
from trotline.rules.merge_fields import check_precedence, thing_of


def source(site, seen_at=1.0, first=1.0, **data):
    return Source(
        source_id(site, "p", "k"),
        site,
        "p",
        "k",
        f"https://{site}.example/",
        seen_at,
        first,
        0,
        json.dumps(data),
        False,
    )


def fused(*sources, **prefer):
    thing = thing_of(sources, MergeRule(prefer={name.replace("every", "*"): how for name, how in prefer.items()}))
    return json.loads(thing.data), json.loads(thing.provenance)


def test_the_newest_value_that_is_not_empty_counts():
    data, whose = fused(source("a", 1, price=5, title="Tea"), source("b", 2, price=6, title="", colour=None))
    assert {"price": 6, "title": "Tea", "colour": None} == data
    assert {"price": "b/k", "title": "a/k", "colour": "b/k"} == whose


def test_the_longest_the_most_frequent_and_the_preferred_site_can_be_chosen_per_field():
    sources = [
        source("a", 1, title="Green tea, 100 g", price=5, stock=1),
        source("b", 2, title="Tea", price=5, stock=2),
        source("c", 3, title="Tea", price=7, stock=3),
    ]
    data, whose = fused(*sources, title="longest", price="most frequent", every="site:x,b")
    assert {"title": "Green tea, 100 g", "price": 5, "stock": 2} == data
    assert {"title": "a/k", "price": "b/k", "stock": "b/k"} == whose


def test_the_id_is_that_of_the_source_that_was_seen_first():
    old, new = source("z", 9, first=1), source("a", 10, first=2)
    assert thing_of([old], MergeRule()).id == thing_of([new, old], MergeRule()).id


@pytest.mark.parametrize("text", ["oldest", "site:", "site:a,", ""])
def test_an_unknown_precedence_is_refused(text):
    with pytest.raises(ValueError, match="is not known"):
        check_precedence(text)


_DATA = st.dictionaries(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 3), st.text(max_size=3)))


@given(
    st.lists(st.tuples(st.sampled_from([1.0, 2.0]), _DATA), min_size=1, max_size=5),
    st.randoms(),
    st.sampled_from(["newest", "longest", "most frequent", "site:s1,s0"]),
)
def test_the_order_of_the_sources_does_not_matter(found, chance, how):
    sources = [source(f"s{n}", seen_at, seen_at, **data) for n, (seen_at, data) in enumerate(found)]
    rule = MergeRule(prefer={"*": how})
    expected = thing_of(sources, rule)
    chance.shuffle(sources)
    assert expected == thing_of(sources, rule)
