"""Cookies of an account: from Scrapy's jar into the session that all workers share, and back."""

import time

from scrapy import Request
from scrapy.http import Response
from scrapy.http.cookies import CookieJar

from trotline.bridges.scrapy.session_cookies import restore, stored
from trotline.model.account import StoredCookie

NOW = 1_700_000_000.0


def jar_of(url: str, *headers: str) -> CookieJar:
    jar = CookieJar()
    jar.extract_cookies(Response(url, headers={"Set-Cookie": list(headers)}), Request(url))
    return jar


def sent(jar: CookieJar, url: str) -> str:
    request = Request(url)
    jar.add_cookie_header(request)
    return (request.headers.get("Cookie") or b"").decode()


def test_cookies_come_back_for_the_same_hosts_and_paths() -> None:
    far = "Wed, 01 Jan 2098 00:00:00 GMT"
    first = jar_of("https://shop.example/a", "sid=1; Path=/; Secure", f"w=2; Domain=shop.example; Expires={far}", "p=3")

    again = CookieJar()
    restore(again, stored(first, (), NOW), NOW)

    for url in (
        "https://shop.example/a",
        "https://shop.example/",
        "https://www.shop.example/",
        "http://shop.example/a",
    ):
        assert sorted(sent(again, url).split("; ")) == sorted(sent(first, url).split("; ")), url


def test_a_host_without_a_dot_and_an_address_keep_theirs() -> None:
    for url in ("http://localhost:8000/", "http://127.0.0.1:8000/"):
        again = CookieJar()
        restore(again, stored(jar_of(url, "sid=1; Path=/"), (), NOW), NOW)

        assert sent(again, url) == "sid=1", url


def test_a_cookie_that_did_not_change_keeps_its_time_and_others_are_new() -> None:
    before = stored(jar_of("http://shop.example/", "a=1; Path=/"), (), 5.0)
    jar = CookieJar()
    restore(jar, before, NOW)
    url = "http://shop.example/"
    jar.extract_cookies(Response(url, headers={"Set-Cookie": ["b=2; Path=/"]}), Request(url))

    assert [one.at for one in stored(jar, before, NOW)] == [5.0, NOW]


def test_max_age_counts_from_when_the_cookie_came() -> None:
    now = time.time()
    jar = CookieJar()
    restore(
        jar,
        [
            StoredCookie("http://shop.example/", "old=1; Path=/; Max-Age=60", now - 90),
            StoredCookie("http://shop.example/", "new=1; Path=/; Max-Age=60", now - 30),
        ],
        now,
    )

    assert sent(jar, "http://shop.example/") == "new=1"


def test_what_was_in_the_jar_is_gone_and_nonsense_is_left_out() -> None:
    jar = jar_of("http://shop.example/", "other=1; Path=/")

    restore(jar, [StoredCookie("not a url", "a=1", 0.0), StoredCookie("http://shop.example/", "", 0.0)], NOW)

    assert sent(jar, "http://shop.example/") == ""
