"""Errors of handlers: counted by kind and line, told with their traceback."""

import pytest

from trotline import Page, Spider
from trotline.spider.code_location import traceback_text
from trotline.spider.harvest import HandlerFailed
from trotline.testing import visit

shop = Spider("shop")


def price_of(text: str) -> float:
    return float(text)


@shop.page(seeds=["https://shop.example/"])
def product(page: Page):
    yield {"price": price_of(page.css("p::text").get())}


def failure(body: str) -> HandlerFailed:
    with pytest.raises(HandlerFailed) as raised:
        visit(product, body, url="https://shop.example/p/1")
    return raised.value


def test_pages_that_fail_at_the_same_line_are_one_group() -> None:
    asked, sold = failure("<p>ask us</p>"), failure("<p>sold</p>")

    assert asked.what != sold.what
    assert asked.group == sold.group
    assert asked.group.startswith("ValueError at test_handler_errors.py:")
    assert asked.group.endswith(" in price_of")


def test_the_story_has_the_message_and_every_line_of_the_author_and_none_of_ours() -> None:
    told = failure("<p>ask us</p>").traceback_text

    assert told.splitlines()[0] == "ValueError: could not convert string to float: 'ask us'"
    assert "in product" in told
    assert "in price_of" in told
    assert "return float(text)" in told
    assert "harvest.py" not in told


def test_a_story_has_a_limit_and_keeps_its_end() -> None:
    error = ValueError("x" * 100_000 + " the end")
    told = traceback_text(error)

    assert len(told) < 7_000
    assert told.endswith("the end")


def test_an_error_that_cannot_be_shown_has_a_story_too() -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    try:
        raise Rude
    except Rude as error:
        assert "Rude" in traceback_text(error)


def test_an_error_in_what_is_yielded_is_told_at_the_line_of_the_yield() -> None:
    """The handler waits there; none of its lines is in the traceback."""

    @shop.page
    def listing(page: Page):
        yield {"a": 1}
        yield page.follow("a", to="nope")

    with pytest.raises(HandlerFailed) as raised:
        visit(listing, "<a href=/p/1>x</a>", url="https://shop.example/")
    line = listing.handler.__code__.co_firstlineno + 3
    assert raised.value.group == f"LookupError at test_handler_errors.py:{line} in listing"
    assert raised.value.what.endswith(f" at test_handler_errors.py:{line} in listing")
