"""Things do not depend on the order in which sources were found, and people have the last word."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.merge import Link, MergeRule, ReviewDecision, Source
from trotline.rules.merge_clusters import Evidence, clusters, usable
from trotline.rules.merge_keys import EXACT, PAGE

RULE = MergeRule()
KEY, OTHER, LIST = 16 | EXACT, 32 | EXACT, 64 | PAGE


def source(number: int, site: str = "", url: str = "") -> Source:
    site = site or f"s{number}"
    return Source(
        number, site, "product", f"k{number}", url or f"https://{site}.example/{number}", 1.0, 1.0, 0, "{}", False
    )


def divided(sources, *, groups=None, links=(), decisions=(), score=lambda a, b: 1.0, rule=RULE):
    known = {one.id: one for one in sources}
    return clusters(Evidence(sources=known, groups=groups or {}, links=links, decisions=decisions), rule, score)


def test_sources_that_share_a_key_are_one_thing():
    assert [[1, 2], [3]] == divided([source(1), source(2), source(3)], groups={KEY: [2, 1]})


def test_similar_texts_join_the_best_pair_of_two_sites_and_not_a_second_one():
    sources = [source(1, "a"), source(2, "b"), source(3, "b")]
    assert [[1, 2], [3]] == divided(sources, links=[Link(1, 3, 0.85), Link(1, 2, 0.95)])


def test_two_large_groups_are_joined_by_a_look_at_some_of_their_pairs():
    sources = [source(number) for number in range(1, 2_001)]
    looked_at = []

    def score(a, b):
        looked_at.append((a, b))
        return 1.0

    groups = {KEY: list(range(1, 1_001)), OTHER: list(range(1_001, 2_001))}
    assert len(divided(sources, groups=groups, links=[Link(1, 1_001, 0.9)], score=score)) == 1
    assert looked_at == [(1, other) for other in range(1_002, 1_052)]


def test_two_equally_similar_ones_of_one_site_are_left_to_people():
    sources = [source(1, "a"), source(2, "b"), source(3, "b")]
    assert [[1], [2], [3]] == divided(sources, links=[Link(1, 3, 0.9), Link(1, 2, 0.9)])


def test_a_chain_of_similar_texts_does_not_join_clearly_different_ends():
    sources = [source(1), source(2), source(3)]
    links = [Link(1, 2, 0.95), Link(2, 3, 0.9)]
    assert [[1, 2], [3]] == divided(sources, links=links, score=lambda a, b: 0.0)
    assert [[1, 2, 3]] == divided(sources, links=links, score=lambda a, b: 0.8)


def test_what_people_called_different_is_never_one_thing():
    sources = [source(1), source(2), source(3)]
    assert [[1, 3], [2]] == divided(sources, groups={KEY: [1, 2, 3]}, decisions=[ReviewDecision(1, 2, False)])


def test_what_people_called_the_same_is_one_thing_even_of_one_site():
    assert [[1, 2]] == divided([source(1, "a"), source(2, "a")], decisions=[ReviewDecision(1, 2, True)])


def test_the_url_of_a_page_with_several_records_identifies_none_of_them():
    listed = [source(1, "a", "https://a.example/list"), source(2, "a", "https://a.example/list")]
    twice = [source(1, "a", "https://a.example/p?utm_source=x"), source(2, "a", "https://a.example/p")]
    assert not usable(LIST, listed, RULE)
    assert usable(LIST, twice, RULE)
    assert usable(KEY, listed, RULE)


def test_a_key_that_too_many_records_share_is_not_used():
    few = MergeRule(most=2)
    assert not usable(KEY, [source(1), source(2), source(3)], few)


@st.composite
def worlds(draw):
    number = draw(st.integers(2, 9))
    ids = list(range(1, number + 1))
    sources = [source(one, f"site{draw(st.integers(0, 3))}") for one in ids]
    pair = st.tuples(st.sampled_from(ids), st.sampled_from(ids)).filter(lambda two: two[0] < two[1])
    links = [
        Link(*two, draw(st.sampled_from([0.75, 0.8, 0.9, 1.0])))
        for two in draw(st.lists(pair, unique=True, max_size=12))
    ]
    decisions = [ReviewDecision(*two, draw(st.booleans())) for two in draw(st.lists(pair, unique=True, max_size=4))]
    groups = {key: draw(st.lists(st.sampled_from(ids), unique=True, max_size=5)) for key in (KEY, OTHER)}
    return sources, groups, links, decisions


@given(worlds(), st.integers())
def test_the_result_is_the_same_in_any_order(world, seed):
    sources, groups, links, decisions = world
    expected = divided(sources, groups=groups, links=links, decisions=decisions)
    mixed = random.Random(seed)
    for some in (sources, links, decisions, *groups.values()):
        mixed.shuffle(some)
    assert expected == divided(sources, groups=dict(reversed(groups.items())), links=links, decisions=decisions)
    assert sorted(one.id for one in sources) == sorted(one for part in expected for one in part)


@given(worlds())
def test_un_merging_holds_for_every_pair_that_people_called_different(world):
    sources, groups, links, decisions = world
    thing_of = {
        one: n
        for n, part in enumerate(divided(sources, groups=groups, links=links, decisions=decisions))
        for one in part
    }
    assert all(thing_of[one.a] != thing_of[one.b] for one in decisions if not one.same)


@pytest.mark.parametrize("same", [True, False])
def test_a_decision_about_a_source_that_is_not_here_is_harmless(same):
    assert [[1]] == divided([source(1)], decisions=[ReviewDecision(1, 99, same)])
