"""The table of guarantees is that of the contract suites as they are now."""

import re

from scripts.guarantees import PAGE, page, promises, suites

from tests.docs.pages import REFERENCE


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: python -m scripts.guarantees"


def test_no_promise_ends_within_brackets() -> None:
    assert [text for text in promises().values() if text.count("(") != text.count(")")] == []


def test_the_number_of_promises_that_pages_name_is_the_true_one() -> None:
    page = (REFERENCE / "promises.md").read_text()
    assert re.findall(r"contract suite of (\d+) promises", page) == [str(len(promises()))]


def test_promises_and_frontiers_are_found_at_all() -> None:
    assert {"f1", "f20", "c7", "n4", "r11", "a6"} <= set(promises())
    assert len(suites()) >= 6
