"""The table of guarantees is that of the contract suites as they are now."""

from scripts.guarantees import PAGE, page, promises, suites


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run: python -m scripts.guarantees"


def test_promises_and_frontiers_are_found_at_all() -> None:
    assert {"f1", "f20", "c7", "n4", "r11", "a6"} <= set(promises())
    assert len(suites()) >= 6
