"""Scrapy's fingerprints as numbers of ours."""

from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.scrapy_identity import START, filtered, of_url, unfiltered


@given(st.binary(min_size=8, max_size=20))
def test_a_number_fits_into_64_bits_and_is_never_zero(fingerprint: bytes) -> None:
    assert filtered(fingerprint) != 0
    assert -(2**63) <= filtered(fingerprint) < 2**63


def test_a_request_that_is_not_filtered_is_new_for_each_page_and_each_time() -> None:
    one = unfiltered(1, 0, "GET", "https://shop.example/", b"")
    others = [
        unfiltered(2, 0, "GET", "https://shop.example/", b""),
        unfiltered(1, 1, "GET", "https://shop.example/", b""),
        unfiltered(1, 0, "POST", "https://shop.example/", b""),
        unfiltered(1, 0, "GET", "https://shop.example/", b"x"),
    ]
    assert len({one, *others}) == 5
    assert unfiltered(1, 0, "GET", "https://shop.example/", b"") == one


def test_a_url_has_the_numbers_that_scrapy_gives_its_request() -> None:
    from scrapy import Request
    from scrapy.utils.request import fingerprint

    url = "https://shop.example/a b?z=1&a=2#top"
    request = Request(url)
    numbers = of_url(url)
    assert numbers[filtered(fingerprint(request))] == ""
    assert numbers[unfiltered(START, 0, "GET", request.url, b"")] == "start"
