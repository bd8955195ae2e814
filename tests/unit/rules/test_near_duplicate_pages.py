"""Pages that have the same text: reported, and their links within a budget."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules import near_duplicate_pages
from trotline.rules.near_duplicate_pages import (
    ALIKE_FROM,
    ALL_OF_FIRST,
    EVERY,
    NOT_FOUND,
    NUMBERS_TOO,
    SAME,
    SAME_TEXT,
    SOFT_404,
    DuplicateDetector,
    Similarity,
)
from trotline.rules.traps import TrapRules

LONG = b"Events of the month: there are none yet, but do come back and look again. " * 2


def said(watch: DuplicateDetector, text: bytes, number: int = 1, lane: str = "a") -> Similarity | None:
    return watch.compare(lane, f"http://a.example/page/{number}", text)


def test_two_pages_alike_are_nothing_to_talk_about():
    watch = DuplicateDetector()
    assert [said(watch, LONG, number) for number in range(2)] == [None, None]


def test_from_the_third_on_they_are_reported_and_still_followed():
    watch = DuplicateDetector()
    found = [said(watch, LONG, number) for number in range(10)]
    assert [one.tally for one in found[2:]] == [SAME] * 8
    assert {one.room for one in found[2:]} == {TrapRules().same_text, NUMBERS_TOO * TrapRules().same_text}


def test_pages_that_repeat_others_lead_to_a_budget_of_new_links():
    watch = DuplicateDetector(TrapRules(same_text=20))
    rooms = []
    for number in range(30):
        if (found := said(watch, LONG, number)) is not None and found.repeats:
            rooms.append(found.room)
            watch.led_to("a", found, min(3, found.room))
    assert rooms[:8] == [20, 17, 14, 11, 8, 5, 2, 0]
    assert set(rooms[8:]) == {0}
    assert found.trap == SAME_TEXT


def test_pages_whose_numbers_are_data_do_not_repeat_each_other():
    watch = DuplicateDetector()
    found = [said(watch, LONG + f"price {number * 7919 % 1009}".encode(), number) for number in range(100)]
    assert {one.repeats for one in found[2:]} == {False}
    assert found[-1].alike, "but an address that looks like a trap is one on such a page"
    assert not found[ALIKE_FROM - 1].alike


def test_numbers_of_the_own_address_and_their_neighbours_are_no_data():
    watch = DuplicateDetector()
    texts = [LONG + f"page {n}, before {n - 1}, after {n + 1}, 12 in all".encode() for n in range(1000, 1010)]
    found = [said(watch, text, 1000 + place) for place, text in enumerate(texts)]
    assert all(one.repeats for one in found[3:])


def test_pages_whose_pictures_differ_do_not_repeat_each_other():
    watch = DuplicateDetector()
    found = [
        watch.compare("a", f"http://a.example/{number}", LONG, lambda number=number: b"scan %d" % number)
        for number in range(20)
    ]
    assert {one.repeats for one in found[2:]} == {False}


def test_pages_that_say_not_found_are_soft_404s_and_have_a_smaller_budget():
    watch = DuplicateDetector(TrapRules(soft_404=5))
    text = (
        b"<h1>Oops! This page could not be found, it is no longer available here.</h1> Back to the shop and its offers."
    )
    found = [said(watch, text, number) for number in range(8)]
    assert (found[-1].tally, found[-1].trap, found[-1].room) == (SOFT_404, NOT_FOUND, 5)


def test_a_telephone_number_is_no_error():
    watch = DuplicateDetector()
    found = [said(watch, b"Call us: (404) 555-0100. " + LONG, number) for number in range(5)]
    assert found[-1].tally == SAME == "pages alike: same text but for digits"


def test_a_page_that_echoes_its_own_address_is_alike_all_the_same():
    watch = DuplicateDetector()
    paths = ["shoes/red", "caf%C3%A9s/old-town", "a/b/c/d"]
    texts = [
        f"We looked for {path} everywhere, and it is not found. Have a cup of tea and try again later."
        for path in paths
    ]
    found = [
        watch.compare("a", f"http://a.example/{path}", text.encode()) for path, text in zip(paths, texts, strict=True)
    ]
    assert found[-1].tally == SOFT_404


def test_one_different_word_makes_another_page():
    watch = DuplicateDetector(TrapRules(same_text=5))
    words = ["oak", "teak", "birch", "walnut", "beech", "cherry", "maple", "elm", "ash", "pine"]
    assert [said(watch, LONG + word.encode(), number) for number, word in enumerate(words)] == [None] * 10


def test_lanes_are_counted_apart():
    watch = DuplicateDetector(TrapRules(same_text=5))
    assert [said(watch, LONG, lane=f"lane {number}") for number in range(20)] == [None] * 20


def test_pages_of_few_words_are_not_judged():
    watch = DuplicateDetector(TrapRules(same_text=1))
    assert [said(watch, b"Loading, please wait.") for _ in range(20)] == [None] * 20


def test_the_first_pages_of_a_lane_are_all_looked_at_and_then_one_of_some():
    watch = DuplicateDetector()
    weights = [watch.weight("a") for _ in range(ALL_OF_FIRST + 10 * EVERY)]
    assert set(weights[:ALL_OF_FIRST]) == {1}
    assert sum(weights[ALL_OF_FIRST:]) == 10 * EVERY, "the few stand for all"
    assert weights[ALL_OF_FIRST:].count(0) == 10 * (EVERY - 1)


def test_a_lane_with_many_pages_alike_is_looked_at_page_by_page():
    watch = DuplicateDetector()
    for number in range(ALL_OF_FIRST):
        watch.weight("a")
        said(watch, LONG, number)
    assert {watch.weight("a") for _ in range(100)} == {1}


def test_a_trap_deep_in_a_large_lane_is_found_through_the_few_that_are_looked_at():
    watch = DuplicateDetector(TrapRules(same_text=100))
    closed = 0
    for number in range(3_000):
        weight = watch.weight("a")
        text = LONG if number > 1_000 else f"{LONG!r} {'x' * (number % 997)}".encode()
        found = watch.compare("a", f"http://a.example/{number}", text, weight=weight) if weight else None
        if found is not None:
            closed += found.room == 0
            watch.led_to("a", found, 1)
    assert 1_700 <= closed <= 1_900


def test_it_can_be_switched_off():
    assert DuplicateDetector(TrapRules(same_text=0, soft_404=0)).off
    watch = DuplicateDetector(TrapRules(same_text=0))
    found = [said(watch, LONG, number) for number in range(900)]
    assert {one.room for one in found[2:]} == {None}


def test_memory_stays_bounded_whatever_comes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(near_duplicate_pages, "_TEXTS", 500)
    monkeypatch.setattr(near_duplicate_pages, "_LANES", 500)
    watch = DuplicateDetector()
    tracemalloc.start()
    for number in range(5_000):
        watch.weight(f"lane {number}")
        said(watch, LONG + b"x" * (number % 50), number, lane=f"lane {number}")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


@given(st.text(max_size=50), st.binary(max_size=300), st.integers(1, 8))
def test_no_page_upsets_the_watch(path: str, text: bytes, weight: int):
    watch = DuplicateDetector()
    for _ in range(4):
        watch.compare("a", "http://a.example/" + path, text, weight=weight)
