"""Which content types a spider reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline import Spider
from trotline.errors import SpiderRefused
from trotline.rules import content_types


@pytest.mark.parametrize(
    "header",
    [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        " text/plain ",
        "application/xhtml+xml",
        "application/atom+xml; type=feed",
        "application/json",
        "application/problem+json",
        "",
        "nonsense",
        "<script>; charset=x",
    ],
)
def test_pages_and_answers_that_name_no_type_are_read(header: str) -> None:
    assert content_types.unwanted(header, content_types.PAGES) == ""


@pytest.mark.parametrize(
    "header", ["image/png", "image/svg+xml", "video/mp4", "application/pdf", "application/zip", "Audio/OGG; codecs=x"]
)
def test_what_is_not_a_page_is_named(header: str) -> None:
    assert content_types.unwanted(header, content_types.PAGES) == header.partition(";")[0].lower()


def test_an_author_may_read_something_else() -> None:
    assert content_types.unwanted("application/pdf", Spider("s", types="application/pdf").types) == ""
    assert content_types.unwanted("text/html", Spider("s", types=["application/pdf"]).types) == "text/html"
    assert content_types.unwanted("video/mp4", Spider("s", types="*").types) == ""


@pytest.mark.parametrize("types", [(), "html", ["text/html", 7], 5, "text/html; charset=utf-8", "a/b/c"])
def test_what_is_not_a_content_type_is_refused_with_an_example(types: object) -> None:
    with pytest.raises(SpiderRefused):
        Spider("s", types=types)


@given(st.text())
def test_no_header_is_too_strange(header: str) -> None:
    assert content_types.unwanted(header, content_types.EVERYTHING) == ""
    assert content_types.unwanted(header, content_types.PAGES).isascii()
