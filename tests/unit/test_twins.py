"""Pages that read the same."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules import twins
from trotline.rules.traps import TrapRules
from trotline.rules.twins import ALIKE, ALL_OF_FIRST, EVERY, NOT_FOUND, SAME_TEXT, SOFT_404, TwinWatch

LONG = b"Events of the month: there are none yet, but do come back and look again. " * 2


def said(watch: TwinWatch, text: bytes, number: int = 1, lane: str = "a") -> object:
    return watch.look(lane, f"http://a.example/page/{number}", text)


def test_two_pages_alike_are_nothing_to_talk_about():
    watch = TwinWatch()
    assert [said(watch, LONG, number) for number in range(2)] == [None, None]


def test_from_the_third_on_twins_are_reported_and_still_followed():
    watch = TwinWatch()
    found = [said(watch, LONG, number) for number in range(10)]
    assert [twin.tally for twin in found[2:]] == [ALIKE] * 8
    assert {twin.refused for twin in found[2:]} == {""}


def test_beyond_their_number_their_links_are_not_followed():
    watch = TwinWatch(TrapRules(same_text=20))
    found = [said(watch, LONG, number) for number in range(30)]
    assert [twin.refused for twin in found[2:]] == [""] * 18 + [SAME_TEXT] * 10


def test_pages_that_say_not_found_are_soft_404s_and_have_a_smaller_number():
    watch = TwinWatch(TrapRules(soft_404=5))
    text = (
        b"<h1>Oops! This page could not be found, it is no longer available here.</h1> Back to the shop and its offers."
    )
    found = [said(watch, text, number) for number in range(8)]
    assert [(twin.tally, twin.refused) for twin in found[-1:]] == [(SOFT_404, NOT_FOUND)]
    assert [twin.refused for twin in found[2:5]] == [""] * 3


def test_a_page_that_repeats_its_own_address_is_a_twin_all_the_same():
    watch = TwinWatch()
    paths = ["shoes/red", "caf%C3%A9s/old-town", "a/b/c/d"]
    texts = [
        f"We looked for {path} everywhere, and it is not found. Have a cup of tea and try again later."
        for path in paths
    ]
    found = [
        watch.look("a", f"http://a.example/{path}", text.encode()) for path, text in zip(paths, texts, strict=True)
    ]
    assert found[-1].tally == SOFT_404


def test_one_different_word_makes_another_page():
    watch = TwinWatch(TrapRules(same_text=5))
    words = ["oak", "teak", "birch", "walnut", "beech", "cherry", "maple", "elm", "ash", "pine"]
    assert [said(watch, LONG + word.encode(), number) for number, word in enumerate(words)] == [None] * 10


def test_lanes_do_not_share_their_twins():
    watch = TwinWatch(TrapRules(same_text=5))
    assert [said(watch, LONG, lane=f"lane {number}") for number in range(20)] == [None] * 20


def test_pages_of_few_words_are_not_judged():
    watch = TwinWatch(TrapRules(same_text=1))
    assert [said(watch, b"Loading, please wait.") for _ in range(20)] == [None] * 20


def test_the_first_pages_of_a_lane_are_all_looked_at_and_then_one_of_some():
    watch = TwinWatch()
    weights = [watch.weight("a") for _ in range(ALL_OF_FIRST + 10 * EVERY)]
    assert set(weights[:ALL_OF_FIRST]) == {1}
    assert sum(weights[ALL_OF_FIRST:]) == 10 * EVERY, "the few stand for all"
    assert weights[ALL_OF_FIRST:].count(0) == 10 * (EVERY - 1)


def test_a_lane_with_many_twins_is_looked_at_page_by_page():
    watch = TwinWatch()
    for number in range(ALL_OF_FIRST):
        watch.weight("a")
        said(watch, LONG, number)
    assert {watch.weight("a") for _ in range(100)} == {1}


def test_a_trap_deep_in_a_large_lane_is_found_through_the_few_that_are_looked_at():
    watch = TwinWatch(TrapRules(same_text=100))
    refused = 0
    for number in range(3_000):
        weight = watch.weight("a")
        text = LONG if number > 1_000 else f"{LONG!r} {'x' * (number % 997)}".encode()
        found = watch.look("a", f"http://a.example/{number}", text, weight) if weight else None
        refused += found is not None and found.refused != ""
    assert 1_700 <= refused <= 1_900


def test_it_can_be_switched_off():
    assert TwinWatch(TrapRules(same_text=0, soft_404=0)).off
    watch = TwinWatch(TrapRules(same_text=0))
    found = [said(watch, LONG, number) for number in range(900)]
    assert {twin.refused for twin in found[2:]} == {""}


def test_memory_stays_bounded_whatever_comes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(twins, "_TEXTS", 500)
    monkeypatch.setattr(twins, "_LANES", 500)
    watch = TwinWatch()
    tracemalloc.start()
    for number in range(5_000):
        watch.weight(f"lane {number}")
        said(watch, LONG + b"x" * (number % 50), number, lane=f"lane {number}")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


@given(st.text(max_size=50), st.binary(max_size=300), st.integers(1, 8))
def test_no_page_upsets_the_watch(path: str, text: bytes, weight: int):
    watch = TwinWatch()
    for _ in range(4):
        watch.look("a", "http://a.example/" + path, text, weight)
