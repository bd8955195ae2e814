"""Names of Scrapy lead to ours."""

import pytest

from tests.unit.spider.test_page import page_of
from trotline import Spider


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (page_of("<p>x"), "follow_all", "page.follow("),
        (page_of("<p>x"), "cb_kwargs", "page.meta"),
        (page_of("<p>x").css("p"), "extract_first", "get()"),
        (page_of("<p>x").css("p")[0], "extract", "getall()"),
        (page_of("<p>x").xpath("//p"), "extract_first", "get()"),
        (page_of("<p>x").xpath("//p")[0], "attrib", "attrs"),
        (Spider("s"), "start_urls", "seeds="),
    ],
)
def test_a_name_of_scrapy_says_what_it_is_called_here(owner, name, said):
    with pytest.raises(AttributeError, match="Scrapy's name; here: ") as error:
        getattr(owner, name)
    assert said in str(error.value)


def test_other_names_are_plain_errors_and_copies_work():
    import copy

    with pytest.raises(AttributeError, match=r"^'Page' object has no attribute 'nothing'$"):
        _ = page_of("").nothing
    assert copy.copy(Spider("s")).name == "s"
    assert not hasattr(page_of("").css("p"), "__html__")
