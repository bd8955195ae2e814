"""A proxy that answers in place of a site is told from a site with many equal pages."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules import captive_pages
from trotline.rules.captive_pages import OTHERS, PATHS, SitePages, page_of

HOST = "http://shop.example"
PORTAL = b"<portal>"


def own(path: str) -> bytes:
    """A page that no other path has."""
    return page_of("shop.example", 200, "", f"<p>{path}".encode())


def answers(pages: SitePages, way: str, count: int, start: int = 0) -> None:
    """So many different pages through an honest proxy."""
    for number in range(start, start + count):
        assert pages.captive_since(way, f"{HOST}/p/{number}", own(str(number)), 0.0) is None


def test_the_third_path_with_one_page_is_captive_if_others_got_other_pages() -> None:
    pages = SitePages()
    answers(pages, "good", OTHERS)
    found = [pages.captive_since("bad", f"{HOST}/{number}", PORTAL, 10.0 + number) for number in range(5)]
    assert found == [None, None, 10.0, 10.0, 10.0]
    assert pages.captive_since("good", f"{HOST}/new", own("new"), 20.0) is None


def test_without_others_to_compare_with_nothing_is_captive() -> None:
    pages = SitePages()
    answers(pages, "good", OTHERS - 1)
    assert not any(pages.captive_since("bad", f"{HOST}/{number}", PORTAL, 0.0) for number in range(20))
    alone = SitePages()
    answers(alone, "bad", 20)
    assert not any(alone.captive_since("bad", f"{HOST}/{number}", PORTAL, 0.0) for number in range(20))


def test_a_page_that_two_proxies_get_is_the_sites() -> None:
    pages = SitePages()
    answers(pages, "good", OTHERS)
    pages.captive_since("good", f"{HOST}/gone", PORTAL, 0.0)
    assert not any(pages.captive_since("bad", f"{HOST}/{number}", PORTAL, 0.0) for number in range(20))
    late = SitePages()
    answers(late, "good", OTHERS)
    found = [late.captive_since("bad", f"{HOST}/{number}", PORTAL, 1.0) for number in range(PATHS)]
    assert found[-1] == 1.0
    late.captive_since("good", f"{HOST}/0", PORTAL, 2.0)
    assert late.captive_since("bad", f"{HOST}/0", PORTAL, 3.0) is None, "the other one got it too: it was the site's"


@pytest.mark.parametrize("url", [f"{HOST}/list?page={{}}", f"{HOST}/list"])
def test_one_path_with_many_queries_is_one_path(url: str) -> None:
    pages = SitePages()
    answers(pages, "good", OTHERS)
    assert not any(pages.captive_since("bad", url.format(number), PORTAL, 0.0) for number in range(20))


def test_only_equal_pages_in_a_row_count_and_each_host_for_itself() -> None:
    pages = SitePages()
    answers(pages, "good", 10)
    for number in range(20):
        assert pages.captive_since("bad", f"{HOST}/{number}", PORTAL, 0.0) is None
        assert pages.captive_since("bad", f"{HOST}/other/{number}", own(f"other {number}"), 0.0) is None
        assert pages.captive_since("bad", f"http://h{number}.example/{number}", PORTAL, 0.0) is None
        # What cannot be compared (JSON, an error) ends a row, too.
        assert pages.captive_since("bad", f"{HOST}/{number}", PORTAL, 0.0) is None
        assert pages.captive_since("bad", f"{HOST}/api/{number}", b"", 0.0) is None


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 60), st.integers(0, 3)).map(lambda each: each), max_size=300)
)
def test_an_honest_proxy_is_charged_at_most_once_for_a_page(visits: list[tuple[int, int, int]]) -> None:
    """Any site (it answers a path the same through every proxy; up to four pages for all paths), any order. A page that
    is refused goes out again through another proxy, as in a crawl: then it is known as the site's."""
    pages, charged = SitePages(), dict[bytes, int]()
    for way, path, kind in visits:
        # Kind 0 has a page for each path.
        page = own(str(path)) if kind == 0 else b"<shared %d>" % kind
        url = f"{HOST}/{kind}/{path}"
        if pages.captive_since(str(way), url, page, 0.0) is not None:
            charged[page] = charged.get(page, 0) + 1
            assert pages.captive_since(f"another than {way}", url, page, 0.0) is None
    assert all(number == 1 for number in charged.values())
    assert own("0") not in charged


@pytest.mark.parametrize(("share", "hold"), [(0.05, 1), (0.05, 20), (0.3, 1), (0.3, 20)])
def test_sites_with_equal_pages_cost_nearly_nothing(share: float, hold: int) -> None:
    """2,000 pages of a site that answers a part of them with one page, through ten honest proxies."""
    charged = 0
    for seed in range(20):
        chance, pages = random.Random(seed), SitePages()
        for number in range(2000):
            page = b"<not found>" if chance.random() < share else own(str(number))
            way = str(number // hold % 10)
            if pages.captive_since(way, f"{HOST}/{number}", page, 0.0) is not None:
                charged += 1
                pages.captive_since("another", f"{HOST}/{number}", page, 0.0)
    assert charged <= 20, f"{charged} of 40,000 pages went out a second time"


@given(st.lists(st.tuples(st.integers(), st.integers(), st.binary(max_size=3)), max_size=400))
def test_memory_is_bounded(visits: list[tuple[int, int, bytes]]) -> None:
    pages = SitePages()
    for way, host, page in visits:
        pages.captive_since(way, f"http://h{host}.example/", page, 0.0)
    assert len(pages._hosts) <= captive_pages.HOSTS


def test_what_is_kept_of_a_host_is_bounded() -> None:
    pages = SitePages()
    for number in range(2000):
        pages.captive_since(number, f"{HOST}/{number}", own(str(number)), 0.0)
        pages.captive_since("one", f"http://h{number}.example/", own(str(number)), 0.0)
    [host] = [each for name, each in pages._hosts.items() if name == "shop.example"]
    assert len(pages._hosts) == captive_pages.HOSTS
    assert (len(host.pages), len(host.runs)) == (captive_pages.PAGES, captive_pages.WAYS)


@pytest.mark.parametrize(
    ("status", "location", "body", "found"),
    [
        (200, "", b" \n<html>", True),
        (200, "", b'{"json": 1}', False),
        (200, "", b"", False),
        (404, "", b"<html>", False),
        (302, "http://portal.example/login?from=/a", b"", True),
        (302, "https://PORTAL.example/", b"", True),
        (302, "https://www.shop.example/a", b"", False),
        (302, "http://m.shop.example/a", b"", False),
        (302, "/login", b"", False),
        (302, "", b"", False),
        (302, "http://[bad", b"", False),
        (304, "http://portal.example/", b"", False),
    ],
)
def test_what_can_be_compared(status: int, location: str, body: bytes, found: bool) -> None:
    assert bool(page_of("shop.example", status, location, body)) is found


def test_redirects_to_one_foreign_host_are_equal_wherever_they_lead() -> None:
    one = page_of("shop.example", 302, "http://portal.example/?from=/a", b"")
    assert one == page_of("shop.example", 307, "https://portal.example/?from=/b", b"")
    assert one != page_of("shop.example", 302, "http://other.example/", b"")
