"""Cookies that the author gave stay, whatever sites put into the jar."""

import pytest
from yarl import URL

from trotline.adapters.http.cookies import MOST, Jar

SHOP = URL("https://shop.example/")


def sent(jar: Jar, url: URL = SHOP) -> dict[str, str]:
    return {name: morsel.value for name, morsel in jar.filter_cookies(url).items()}


@pytest.fixture
async def jar() -> Jar:
    made = Jar()
    made.give({"session": "mine"}, ["shop.example"], secure=True)
    return made


async def test_no_number_of_other_cookies_puts_them_out(jar: Jar):
    for host in range(200):
        url = URL(f"https://h{host}.example/")
        jar.update_cookies_from_headers([f"c{n}=v; Path=/" for n in range(MOST)], url)

    assert sent(jar) == {"session": "mine"}


async def test_nor_do_those_of_the_same_host_in_a_full_request(jar: Jar):
    jar.update_cookies_from_headers([f"c{n}={'v' * 3_900}; Path=/" for n in range(MOST)], SHOP)

    assert sent(jar)["session"] == "mine"


async def test_a_newer_value_of_the_site_is_sent_instead(jar: Jar):
    jar.update_cookies_from_headers(["session=theirs; Path=/"], SHOP)

    assert sent(jar) == {"session": "theirs"}


async def test_they_go_where_they_belong_and_nowhere_else(jar: Jar):
    assert sent(jar, URL("https://other.example/")) == {}
    assert sent(jar, URL("http://shop.example/")) == {}
    assert sent(jar, URL("https://www.shop.example/a")) == {"session": "mine"}
    assert len(jar) == 1, "a jar with cookies is not an empty one"
