"""Every parser of foreign text, with input that is as hostile as its size limit allows."""

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

from yarl import URL

from trotline.adapters.http.cookies import Jar
from trotline.adapters.http.limited_connection import Watchdog, WatchedConnection
from trotline.model.answer import Answer
from trotline.model.limits import MIB, Limits
from trotline.model.task import Task
from trotline.rules import redaction, sitemaps
from trotline.rules.challenge_pages import challenge
from trotline.rules.charset import decode
from trotline.rules.charset_prescan import named_in
from trotline.rules.child_output import ChildOutput
from trotline.rules.conditional_requests import validator_of
from trotline.rules.robots import Prefilter, for_agent
from trotline.rules.traps import TrapDetector
from trotline.rules.urls import Address, read, resolve
from trotline.rules.verdicts import retry_after
from trotline.spider.embedded_json import assigned, json_ld

Hostile = Callable[[int], Any]


def repeat(part: str, before: str = "", after: str = "") -> Hostile:
    return lambda size: before + part * (size // len(part)) + after


def raw(part: bytes, before: bytes = b"", after: bytes = b"") -> Hostile:
    return lambda size: before + part * (size // len(part)) + after


def numbered(line: str, before: str = "") -> Hostile:
    """Lines that differ: a set or a dictionary must not turn them into one."""
    return lambda size: before + "".join(line.format(number) for number in range(size // len(line)))


def robots(text: str) -> None:
    Prefilter(text)
    from protego import Protego

    rules = Protego.parse(for_agent(text, "trotline/1.0"))
    rules.can_fetch("https://a.example/" + "a" * 1000, "trotline/1.0")


def agents_and_rules(size: int) -> str:
    return numbered("user-agent:a{0}\n")(size // 2) + numbered("allow:/{0}\n")(size // 2)


def declared_attributes(size: int) -> bytes:
    """Every <url> has all of them."""
    declared = b" ".join(b'a%d CDATA "x"' % number for number in range(size // 34))
    return b"<!DOCTYPE urlset [<!ATTLIST url " + declared + b">]><urlset>" + b"<url/>" * (size // 12)


def head_in_bytes(size: int) -> None:
    async def receive() -> None:
        connection = WatchedConnection(asyncio.get_running_loop(), LIMITS, Watchdog(LIMITS))
        connection.set_response_params(max_line_size=HEADER, max_field_size=HEADER)
        connection.data_received(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(size):
            connection.data_received(b"a")

    asyncio.run(receive())


def url_of(text: str) -> None:
    address = read(text)
    if isinstance(address, Address):
        TrapDetector().why(address, 2e9)


def page(status: int = 200, body: bytes = b"", **headers: str) -> Answer:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(url="https://a.example/", status=status, headers=pairs, body=body)


async def jar() -> Jar:
    return Jar()


def cookies(header: str) -> None:
    asyncio.run(jar()).update_cookies_from_headers([header], URL("https://a.example/"))


def print_all(text: bytes) -> None:
    printed = ChildOutput(0.0)
    for at in range(0, len(text), 65536):
        printed.feed(text[at : at + 65536], float(at))
    printed.end(0.0)


def read_seed(text: str) -> object:
    from trotline.model.task_json import _in_seed_names

    return _in_seed_names(text)


def recipe_number(text: str) -> object:
    from trotline.spider.recipe_values import number

    return number(text)


LIMITS = Limits()
HEADER = LIMITS.header_bytes
ABOUT = Task(url="https://a.example/?token=canary-canary", route="r", headers=(("x-key", "canary-2"),))

PARSERS: dict[str, tuple[Callable[[Any], object], int, list[Hostile]]] = {
    "recipe numbers": (
        recipe_number,
        MIB,
        [repeat("-"), repeat("1 "), repeat("1.", after="x"), repeat(",", "1"), repeat("0", "0.")],
    ),
    "robots": (
        robots,
        LIMITS.robots,
        [
            repeat(" ", "user-agent"),
            repeat("user-agent "),
            repeat("\t", "user agent:", "x"),
            repeat("*a", "User-agent: *\nDisallow: /"),
            repeat("$", "User-agent: *\nDisallow: /"),
            numbered("user-agent:a{0}\n"),
            numbered("disallow:/{0}*$\n", "user-agent:*\n"),
            numbered("sitemap:/{0}\n"),
            agents_and_rules,
        ],
    ),
    "sitemaps": (
        lambda body: sitemaps.parse(body, LIMITS),
        4 * MIB,
        [
            raw(b" ", b"<urlset><loc>"),
            raw(b"<loc>", b"<urlset>"),
            raw(b"<loc> ", b"<urlset>&"),
            raw(b"<url><loc>http://a.example/&amp;</loc></url>", b"<urlset>"),
            raw(b"<a>", b"<urlset>"),
            raw(b"&", b"<urlset>"),
            raw(b"a", b"<urlset a='"),
            raw(b"http://a.example/\n"),
            raw(b"\xff\xfe"),
            declared_attributes,
        ],
    ),
    "a head in single bytes": (
        head_in_bytes,
        HEADER - 100,
        [lambda size: size],
    ),
    "prescan": (
        named_in,
        MIB,
        [
            raw(b"<meta ", b"<meta charset "),
            raw(b" charset", b"<meta "),
            raw(b"<meta charset=x>"),
            raw(b"a=' ", b"<meta charset "),
            raw(b"<!--", b"charset"),
            raw(b"<a/", b"charset"),
            raw(b"/ ", b"<meta charset"),
        ],
    ),
    "charset": (
        lambda body: decode(body, None),
        4 * MIB,
        [
            raw(b"\xff"),
            raw(b"\xe2\x82"),
            raw(b"<meta charset="),
            raw(b"\x1b$B"),
            raw(b"\x8f\xa1", b"<meta charset=euc-jp>"),
        ],
    ),
    "charset in a header": (
        lambda value: decode(b"\xff", value),
        HEADER,
        [repeat(" ", "text/html; charset"), repeat("charset="), repeat('charset="'), repeat("charset ")],
    ),
    "content types": (
        lambda value: importlib.import_module("trotline.rules.content_types").unwanted(
            value, ("text/html", "application/*+xml")
        ),
        HEADER,
        [repeat("+", "application/"), repeat("+xm", "application/"), repeat(" "), repeat("a"), repeat("a/")],
    ),
    "redaction": (
        lambda text: redaction.text(text, about=ABOUT),
        MIB,
        [
            repeat("redis://", after="@"),
            repeat("redis://"),
            repeat("redis+", after="://@"),
            repeat("a+", after="@"),
            repeat("https://", after="@"),
            repeat("https://a@ "),
            repeat("amqps://a@ "),
            repeat("://a@"),
            repeat("@", "://"),
            repeat("?token=a"),
            repeat("?a%3Ftoken%3Da="),
            repeat("%25", "?u=http%3A//a?token="),
            repeat("&a"),
            repeat("a[", "?"),
            repeat("x", "http://a?a=@"),
        ],
    ),
    "printed lines": (
        print_all,
        4 * MIB,
        [raw(b"redis://@"), raw(b"\n"), raw(b"\x1b["), raw(b"x" * 70_000 + b"\n"), raw(b"?token=a ")],
    ),
    "block pages": (
        lambda body: (challenge(page(403, body)), challenge(page(200, body))),
        4 * MIB,
        [raw(b"<title>"), raw(b"captcha"), raw(b"<title>captcha</title>"), raw(b"a")],
    ),
    "Retry-After": (
        lambda value: retry_after(value, 0.0),
        HEADER,
        [
            repeat("9"),
            repeat("9e9"),
            repeat("Mon, "),
            repeat(":", "Mon, 1 Jan 2030 "),
            repeat(" "),
            repeat("("),
            repeat("-"),
        ],
    ),
    "validators": (
        lambda value: validator_of(page(etag=value, last_modified=value)),
        HEADER,
        [repeat('"'), repeat("a"), repeat(" 1"), repeat("W/")],
    ),
    "cookies": (
        cookies,
        2 * 4096,
        [
            repeat("\\", 'a="', '"'),
            repeat("\\0", 'a="', '"'),
            repeat('"', "a="),
            repeat(";", "a=b"),
            repeat("; a=b"),
            repeat(" ", "a=b;"),
            repeat("a.", "a=b; Domain="),
            repeat("0", "a=b; Max-Age="),
            repeat(":", "a=b; Expires="),
        ],
    ),
    "URLs": (
        url_of,
        LIMITS.seed_url,
        [
            repeat("/a", "http://a.example"),
            repeat("/..", "http://a.example"),
            repeat("%2e/", "http://a.example/"),
            repeat("%25", "http://a.example/"),
            repeat("&year=", "http://a.example/?year=2031"),
            repeat("/2031", "http://a.example"),
            repeat(";jsessionid=", "http://a.example/"),
            repeat("&sid=", "http://a.example/?sid=1"),
            repeat("a.", "http://"),
            repeat("@", "http://"),
            repeat("é", "http://"),
            repeat("\ud800", "http://a.example/"),
            repeat("?", "http://a.example/"),
        ],
    ),
    "links": (
        lambda href: resolve("https://a.example/a/b/c?d", href),
        LIMITS.seed_url * 16,
        [repeat("../"), repeat("/"), repeat("a:"), repeat("a"), repeat(" "), repeat("\n"), repeat("#"), repeat("\\")],
    ),
    "embedded JSON": (
        lambda script: (json_ld([script]), assigned("state", [script])),
        MIB,
        [
            repeat("state "),
            repeat(" ", "state"),
            repeat("state="),
            repeat("state = JSON.parse("),
            repeat(" ", "state=JSON.parse("),
            repeat("["),
            repeat('{"a":'),
            repeat("[", "state="),
            repeat("{"),
            repeat("9", "state="),
            repeat('\\"', 'state="'),
            repeat("\n", "[", "x"),
            repeat("<![CDATA["),
        ],
    ),
    "seeds": (read_seed, 1 << 16, [repeat("$."), repeat("field `"), repeat("a", "$."), repeat("$.a")]),
}
