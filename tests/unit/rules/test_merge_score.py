"""Which spellings are one thing, and which look-alikes are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.merge import MergeRule, Source
from trotline.rules.merge_clusters import Evidence, clusters
from trotline.rules.merge_compare import Comparison
from trotline.rules.merge_score import MOST_OTHER_WORDS, _likeness, are_unlike, similarity
from trotline.rules.merge_text import (
    BESIDE_THE_NAME,
    LONGEST_FIELD,
    LONGEST_TEXT,
    Profile,
    profile,
    shingles,
    text_of,
)

FROM = MergeRule().merge_from
REVIEW = MergeRule().review_from

SAME = [
    ("Sony WH-1000XM4 Wireless Headphones, Black", "SONY wh 1000 xm4 wireless headphones (black)"),
    ("Café Crème 0,5 L (6-pack)", "CAFE CREME 6 x 500ml"),
    ("Tea, green 100 g", "Green Tea 0.1kg"),
    ('Monitor 15.6" Full HD Acme', "Acme Full HD monitor 15.6 inch"),
    ("Acme Over-Ear Headphones X7", "Acme overear headphones X7"),
    ("Dark Chocolate 85% Lindor 100g", "Lindor Dark Choclate 85% 100g"),
    ("Vale T-Shirt Women's blue L", "Womens tshirt blue L, Vale"),
    ("Desk lamp grey 40 W", "DESK LAMP gray 40W"),
    ("Trail Shoes Men's 42", "Mens trail shoes 42"),
    ("Paper A4 1,000 sheets Office", "Office paper A4 1000 sheets"),
]
EQUAL = [
    ("ALTER TABLE", "Alter table"),
    ("1984", "1984"),
    ("500 ml", "0.5 l"),
    ("The Item", "the item"),
    ("C#", "c♯"),
    ("日本語", "日本語"),
]
DIFFERENT = [
    ("ALTER TABLE", "ALTER TABLESPACE"),
    ("pg_dump", "pg_dumpall"),
    ("sin", "sinh"),
    ("Mark", "Market"),
    ("C", "C#"),
    ("Prelude in F minor", "Prelude in F# minor"),
    ("1984", "1985"),
    ("new", "sale"),
    ("Shampoo Acme 250 ml", "Shampoo Acme 500 ml"),
    ("Galaxy S21 128GB black", "Galaxy S21 128GB white"),
    ("Galaxy S21 128GB black", "Galaxy S22 128GB black"),
    ("Acme drill X200", "Acme drill X200 Pro"),
    ("T-shirt Vale blue M", "T-shirt Vale blue L"),
    ("Water Vita 6 x 0.5 l", "Water Vita 12 x 0.5 l"),
    ("Lavender soap bar Acme 100g", "Honey soap bar Acme 100g"),
    ("Lamp Vale sage 40 W", "Lamp Vale black 40 W"),
    ("Tea", "Coffee"),
]


def score(a: str, b: str) -> float:
    return similarity(profile(a), profile(b), FROM)


@pytest.mark.parametrize(("a", "b"), SAME)
def test_other_spellings_are_one_thing(a, b):
    assert score(a, b) >= FROM, (profile(a), profile(b))


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_look_alikes_are_not_one_thing(a, b):
    assert score(a, b) < FROM


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_the_same_name_is_one_thing_however_short(a, b):
    assert score(a, b) == 1.0, (profile(a), profile(b))


@pytest.mark.parametrize(("a", "b"), [("Lindor choc", "Lindor chocolate"), ("catalog 7", "catalogue 7")])
def test_other_spellings_of_a_word_are_less_similar_than_the_likenesss(a, b):
    assert REVIEW <= score(a, b) < 1.0


def test_the_best_spelling_of_a_word_counts():
    assert score("Vale tables", "Vale table tablespace") == score("Vale tables", "Vale tablespace table") > 0.7


def test_the_same_short_names_merge_beside_others_that_begin_with_them():
    names = ["ALTER TABLE", "ALTER TABLESPACE", "ALTER TABLE", "ALTER TABLESPACE"]
    sources = {
        number: Source(number, "ab"[number // 2], "page", str(number), "", 1.0, 1.0, 0, f'{{"title": "{name}"}}', False)
        for number, name in enumerate(names)
    }
    compared = Comparison(MergeRule())
    for one in sources.values():
        compared.add(one)
    links = compared.links([(0, 2), (0, 3), (1, 2), (1, 3)])
    found = clusters(Evidence(sources=sources, groups={}, links=links, decisions=()), MergeRule(), compared.score)
    assert found == [[0, 2], [1, 3]]


def test_a_number_that_only_one_side_has_is_for_review():
    assert REVIEW <= score("Acme trail running shoes summit 42", "Acme trail running shoes summit") < FROM


def test_a_bare_number_is_that_of_a_unit():
    assert score("Nexora Neo phone 128GB silver", "Nexora Neo phone 128 silver") >= FROM


def test_the_brand_may_stand_beside_the_name():
    names = MergeRule().text
    beside, was_cut = text_of({"name": "Trail boots 42", "brand": "Vale", "price": 3}, names)
    assert not was_cut
    assert score(beside, "Vale trail boots 42") == 1.0
    assert text_of({"price": 3, "title": "  "}, names) == ("", False)


@pytest.mark.parametrize(
    ("fields", "length", "was_cut"),
    [
        ({"title": "x" * LONGEST_FIELD}, LONGEST_FIELD, False),
        ({"title": "x" * (LONGEST_FIELD + 1)}, LONGEST_FIELD, True),
        ({"title": "x", "brand": "y" * (LONGEST_FIELD + 1)}, LONGEST_FIELD + 4, True),
        ({"title": "x", **dict.fromkeys(BESIDE_THE_NAME, "y" * LONGEST_FIELD)}, LONGEST_TEXT, True),
    ],
)
def test_what_is_longer_than_what_is_compared_is_known(fields, length, was_cut):
    text, cut = text_of(fields, MergeRule().text)
    assert (len(text), cut) == (length, was_cut)


def test_spellings_of_many_different_words_are_not_compared():
    """Each with each of the others, for every pair of long texts: minutes for some hundred records."""
    shared = " ".join(f"word{letter}" for letter in "abcdefghij")
    one, other = (profile(f"{shared} {_words(start, MOST_OTHER_WORDS + 1)}") for start in "pq")
    before = _likeness.cache_info()
    assert similarity(one, other, FROM) < REVIEW
    assert _likeness.cache_info() == before
    assert are_unlike(one, other)
    assert not are_unlike(one, profile(shared))
    one, other = (profile(f"{shared} {_words(start, MOST_OTHER_WORDS)}") for start in "pq")
    assert not are_unlike(one, other)
    assert similarity(one, other, FROM) > REVIEW, "one letter is a typing error"


def _words(start, number):
    return " ".join(start + chr(97 + place) * 8 for place in range(number))


_TEXT = st.text(alphabet=st.sampled_from("abc xyz019.,-#\"'éß×½ ㎏"), max_size=40) | st.lists(
    st.sampled_from(["table", "tables", "tablespace", "tabel", "tab", "tbl", "space", "spaces"]), max_size=5
).map(" ".join)


@given(_TEXT, _TEXT)
def test_similarity_is_symmetric_and_between_0_and_1(a, b):
    one, other = profile(a), profile(b)
    assert similarity(one, other, FROM) == similarity(other, one, FROM)
    assert 0.0 <= similarity(one, other, FROM) <= 1.0


@given(st.text(max_size=200))
def test_any_text_can_be_taken_apart_and_is_itself(text):
    found = profile(text)
    assert isinstance(found, Profile)
    assert similarity(found, found, FROM) in (0.0, 1.0)
    assert list(shingles(found.words)) or not found.words
