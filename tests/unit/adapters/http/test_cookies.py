"""Cookies that the author gave stay, whatever sites put into the jar."""

import pytest
from yarl import URL

from trotline.adapters.http.cookies import MOST, Jar
from trotline.model.account import StoredCookie

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


async def test_a_restored_jar_sends_the_same_cookies_as_the_one_they_came_from():
    first, second = Jar(), Jar()
    first.restore((), now=1000.0)
    first.update_cookies_from_headers(["sid=1; Path=/; HttpOnly", "deep=2; Path=/shop", "host=3"], SHOP)
    first.update_cookies_from_headers(["wide=4; Domain=shop.example; Path=/"], URL("https://www.shop.example/"))

    second.restore(first.stored(), now=1000.0)

    for url in (SHOP, URL("https://shop.example/shop/a"), URL("https://www.shop.example/"), URL("https://b.example/")):
        assert sent(second, url) == sent(first, url)
    assert sent(second) == {"sid": "1", "host": "3", "wide": "4"}


async def test_a_cookie_that_is_deleted_or_replaced_is_not_restored():
    jar = Jar()
    jar.restore((), now=1000.0)
    jar.update_cookies_from_headers(["sid=1; Path=/", "gone=1; Path=/"], SHOP)
    jar.update_cookies_from_headers(["sid=2; Path=/", "gone=; Path=/; Max-Age=0"], SHOP)

    assert [cookie.header for cookie in jar.stored()] == ["sid=2; Path=/"]


async def test_the_age_of_a_cookie_counts_while_it_is_stored():
    jar = Jar()
    cookies = [
        StoredCookie(str(SHOP), "short=1; Max-Age=60", 1000.0),
        StoredCookie(str(SHOP), "long=1; Max-Age=600", 1000.0),
    ]

    jar.restore(cookies, now=1100.0)

    assert sent(jar) == {"long": "1"}


async def test_restoring_replaces_what_the_jar_had_and_keeps_the_authors_cookies(jar: Jar):
    jar.update_cookies_from_headers(["of=another; Path=/"], SHOP)

    jar.restore([StoredCookie(str(SHOP), "sid=1; Path=/", 1.0)], now=1000.0)

    assert sent(jar) == {"session": "mine", "sid": "1"}


async def test_a_stored_cookie_that_its_host_must_not_set_is_not_restored():
    jar = Jar()

    jar.restore(
        [StoredCookie(str(SHOP), "sid=1; Domain=example", 1.0), StoredCookie("http://x/", "a=\x00b", 1.0)], now=9.0
    )

    assert sent(jar) == {}
    assert jar.stored() == ()


@pytest.mark.parametrize("domain", ['"co.uk"', '"\\143o.uk"', '"example"'])
async def test_a_public_suffix_in_quotes_is_one_too(domain: str):
    jar = Jar()
    jar.update_cookies_from_headers([f"sid=FIXED; Domain={domain}; Path=/"], URL("https://evil.co.uk/"))

    assert sent(jar, URL("https://victim.co.uk/")) == {}


@pytest.mark.parametrize("age", ["--5", "-", "5-5", "1e9", "\u0665"])
async def test_an_age_that_is_no_number_is_ignored(age: str):
    jar = Jar()
    jar.restore((), now=1000.0)
    jar.update_cookies_from_headers([f"sid=1; Path=/; Max-Age={age}"], SHOP)

    assert len(jar.stored()) <= 1


async def test_damaged_cookies_are_not_restored():
    jar = Jar()
    jar.restore([StoredCookie("http://[::1", "a=1", 1.0), StoredCookie(str(SHOP), "b=1; Path=/", 1.0)], now=9.0)

    assert sent(jar) == {"b": "1"}
