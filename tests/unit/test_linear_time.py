"""Whatever meets foreign text takes time in proportion to its size. A pattern that backtracks holds the GIL: no timeout
of ours would end it, and only the supervisor could, with a kill.

The parser of HTML is not among them: it is not ours, and takes quadratic time over elements inside each other and over
the attributes of one tag. It runs only where the supervisor knows the page, and the parse budget ends it
(tests/e2e/test_bomb_pages.py)."""

import asyncio
import importlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from yarl import URL

from tests.unit.cost_growth import SOURCE, against, growth, patterns, pumps
from trotline.adapters.http.cookies import Jar
from trotline.adapters.http.watched_connection import Watchdog, WatchedConnection
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

AUTHOR = "author"
"""Meets only what the author, the operator or we ourselves wrote."""

PATTERNS = {
    "adapters/files/table_cells.py:_FORMULA": "match",
    "adapters/files/table_cells.py:_NUMBER": "fullmatch",
    "adapters/browser/errors.py:_BODY_REASON": "search",
    "adapters/browser/errors.py:_HTTP2_REASON": "search",
    "adapters/browser/errors.py:_PARSER_REASON": "search",
    "adapters/browser/errors.py:_TLS_REASON": "search",
    "adapters/browser/relay.py:_CONNECT": AUTHOR,
    "adapters/browser/shared.py:_HASHED": AUTHOR,
    "adapters/browser/shared.py:_SECURE_ONLY": AUTHOR,
    "adapters/http/cookies.py:_WHOLE": "fullmatch",
    "adapters/http/fast_path.py:_NOT_PLAIN": AUTHOR,
    "adapters/http/failures.py:_UNPRINTABLE": "sub",
    "adapters/http/fetcher.py:_NOT_NORMALISED": "search",
    "adapters/http/request_checks.py:_BREAKS_A_HEADER": "search",
    "adapters/http/request_checks.py:_TOKEN": "fullmatch",
    "adapters/http/http_tunnel.py:_CARRIES_A_PAGE": "search",
    "adapters/http/http_tunnel.py:_STATUS": "match",
    "adapters/http/response_reader.py:_CONTROL": "search",
    "adapters/postgres/frontier/errors.py:_OF_A_JOB": "search",
    "adapters/postgres/frontier/jobs.py:_ID": "fullmatch",
    "adapters/postgres/frontier/session.py:_UNSTORABLE": "sub",
    "adapters/postgres/sink_url.py:_connections": AUTHOR,
    "adapters/postgres/partition_periods.py:_NAME": AUTHOR,
    "adapters/redis/errors.py:_LUA": "sub",
    "adapters/redis/keys.py:_JOB_ID": AUTHOR,
    "adapters/redis/inbox_url.py:NAME": AUTHOR,
    "adapters/redis/outbox.py:_NAME": AUTHOR,
    "adapters/redis/scripts.py:_CAPITALS": AUTHOR,
    "adapters/redis/scripts.py:_EXPORTS": AUTHOR,
    "adapters/redis/scripts.py:_NUMBERS": AUTHOR,
    "adapters/redis/scripts.py:_USES": AUTHOR,
    "adapters/redis/scripts.py:_WORDS": AUTHOR,
    "config/alert_settings.py:_ADDRESS": AUTHOR,
    "config/alert_settings.py:_NAME": AUTHOR,
    "config/proxy_lines.py:REGION": "fullmatch",
    "rules/log_lines.py:EVENT": "fullmatch",
    "config/proxy_lines.py:_BARE": "fullmatch",
    "config/spider_loader.py:_MODULE": AUTHOR,
    "config/spider_loader.py:_NAME": AUTHOR,
    "adapters/redis/__init__.py:_OUTBOX": AUTHOR,
    "adapters/sqlite/__init__.py:_look": AUTHOR,
    "config/urls.py:_PASSWORD": AUTHOR,
    "rules/backend_urls.py:_SCHEME": AUTHOR,
    "rules/broker_urls.py:_BOOKS": AUTHOR,
    "adapters/sqs/address.py:_REGION": AUTHOR,
    "adapters/sqs/address.py:_PREFIX": AUTHOR,
    "adapters/sqs/queues.py:_FOREIGN": AUTHOR,
    "adapters/sqs/inbox_url.py:_NAME": AUTHOR,
    "adapters/amqp/inbox_url.py:_NAME": AUTHOR,
    "config/settings.py:bandwidth": AUTHOR,
    "config/settings.py:file_name": AUTHOR,
    "config/settings.py:size": AUTHOR,
    "cli/dead.py:_ID": AUTHOR,
    "cli/export.py:_span": AUTHOR,
    "cli/new.py:_address": AUTHOR,
    "cli/new.py:_variable": AUTHOR,
    "cli/new.py:command": AUTHOR,
    "cli/try_page.py:choose": AUTHOR,
    "model/time.py:seconds": AUTHOR,
    "model/pace.py:_FORM": AUTHOR,
    "model/pace.py:_PER_PROXY": AUTHOR,
    "model/row.py:_LONE_SURROGATE": "sub",
    "model/secret.py:_ESCAPE": AUTHOR,
    "model/secret.py:is_reference": AUTHOR,
    "model/task_json.py:_in_seed_names": "seeds",
    "rules/addresses.py:_ENDS_IN_A_NUMBER": "search",
    "rules/addresses.py:_NAME": AUTHOR,
    "rules/challenge_pages.py:_ASKS_FOR_A_HUMAN": "search",
    "rules/challenge_pages.py:_TITLE": "search",
    "rules/charset.py:_CHARSET": "search",
    "rules/conditional_requests.py:_DATE": "fullmatch",
    "rules/proxy_echo.py:_NOT_ADDRESS": "sub",
    "rules/proxy_echo.py:_REGION": "fullmatch",
    "rules/proxy_errors.py:_NOT_PLAIN": "sub",
    "rules/proxy_errors.py:_PROXY_STATUS_ERROR": "search",
    "rules/proxy_logins.py:_COUNTRY": AUTHOR,
    "rules/proxy_logins.py:_FIELD": AUTHOR,
    "rules/proxy_logins.py:_OPTIONAL": AUTHOR,
    "rules/conditional_requests.py:_ETAG": "fullmatch",
    "rules/task_fields.py:_ADDRESS": "match",
    "rules/task_fields.py:_HALVES": "search",
    "rules/task_fields.py:_METHOD": "fullmatch",
    "rules/task_fields.py:_NOT_IN_A_NAME": "search",
    "rules/content_types.py:_PATTERN": AUTHOR,
    "rules/content_types.py:_TYPE": "match",
    "rules/content_types.py:_any_of": "content types",
    "rules/charset_prescan.py:_ATTRIBUTE": "prescan",
    "rules/charset_prescan.py:_ATTRIBUTES": "match",
    "rules/charset_prescan.py:_CHARSET": "search",
    "rules/charset_prescan.py:_TAG": "search",
    "rules/pool_names.py:NAME": "fullmatch",
    "rules/pool_names.py:ACCOUNT_NAME": "fullmatch",
    "rules/pool_names.py:POOL": "fullmatch",
    "rules/pool_names.py:SERVED": AUTHOR,
    "config/account_table.py:_SECRET_KEY": AUTHOR,
    "config/account_table.py:_USES": AUTHOR,
    "rules/redaction.py:_PAIR": "sub",
    "rules/redaction.py:_SCHEME": "search",
    "rules/redaction.py:_SECRET": "search",
    "rules/redaction.py:_USER_INFO": "sub",
    "rules/redaction.py:_WORD": "sub",
    "rules/robots.py:_PRODUCT": "match",
    "rules/robots.py:_SIMPLE": "fullmatch",
    "rules/robots.py:_SIMPLE_PATTERN": "fullmatch",
    "rules/robots.py:_learn": "robots",
    "rules/scope.py:_pattern": AUTHOR,
    "rules/sitemaps.py:_LINE": "search",
    "rules/sitemaps.py:_LOC": "search",
    "rules/sitemaps.py:_LONG_TAG": "search",
    "rules/url_history.py:rule_behind": AUTHOR,
    "rules/traps.py:_CALENDAR_WORD": "search",
    "rules/traps.py:_DATE_PART": "sub",
    "rules/traps.py:_PATH_DATE": "search",
    "rules/traps.py:_QUERY_DATE": "search",
    "rules/session_ids.py:_SESSION": "sub",
    "rules/session_ids.py:_TOKEN": "search",
    "rules/near_duplicates.py:_NUMBER": "sub",
    "rules/near_duplicates.py:_SAYS_NOT_FOUND": "search",
    "rules/urls.py:_ESCAPE": "sub",
    "rules/urls.py:_PATH_SESSION": "sub",
    "rules/urls.py:_SCHEME": "match",
    "rules/urls.py:_SURROGATES": "search",
    "rules/urls.py:_WEB": "match",
    "spider/spider_checks.py:_BREAKS": AUTHOR,
    "spider/spider_checks.py:_HOST": AUTHOR,
    "spider/spider_checks.py:_NAME": AUTHOR,
    "spider/embedded_json.py:_BLANK": "match",
    "spider/embedded_json.py:_OPENING": "search",
    "spider/embedded_json.py:_PARSE_CALL": "match",
    "spider/embedded_json.py:assigned": "embedded JSON",
    "spider/css_query.py:_BREAKS": AUTHOR,
    "spider/css_query.py:_PSEUDO": AUTHOR,
    "spider/records.py:_AT": "match",
    "spider/records.py:_WORD": AUTHOR,
    "spider/seeds.py:_sitemap_task": AUTHOR,
    "spider/selection.py:found": AUTHOR,
    "adapters/objects/archive.py:__init__": AUTHOR,
    "adapters/objects/roll.py:_NAME": "fullmatch",
    "adapters/s3/address.py:_BUCKET": AUTHOR,
    "adapters/s3/address.py:_PREFIX": AUTHOR,
    "adapters/s3/address.py:_REGION": AUTHOR,
    "adapters/s3/store.py:_REASON": "search",
    "adapters/s3/store.py:_SAID": "search",
    "bridges/scrapy/options.py:_NOT_IN_A_NAME": AUTHOR,
    "cli/import_queue.py:_NOT_IN_A_NAME": AUTHOR,
    "config/settings.py:ROUTE": AUTHOR,
    "config/urls.py:_USER": AUTHOR,
    "rules/archive_choice.py:_SHARE": AUTHOR,
    "rules/archive_urls.py:_SIZE": AUTHOR,
    "rules/artifacts.py:_NAME": "fullmatch",
    "rules/artifacts.py:_TYPE": "fullmatch",
    "rules/merge_text.py:_APOSTROPHE": "sub",
    "rules/merge_text.py:_DECIMAL_COMMA": "sub",
    "rules/merge_text.py:_INCHES": "sub",
    "rules/merge_text.py:_PACK_OF": "sub",
    "rules/merge_text.py:_QUANTITY": "sub",
    "rules/merge_text.py:_THOUSANDS": "sub",
    "rules/merge_text.py:_TIMES": "sub",
    "rules/merge_text.py:_TOKEN": "search",
    "spider/page_facts.py:_BLANKS": "sub",
    "spider/recipe.py:_RANGE": AUTHOR,
    "spider/recipe.py:_check_rule": AUTHOR,
    "spider/recipe_values.py:found": AUTHOR,
    "spider/recipe_values.py:number": "recipe numbers",
    "spider/xpath_tree.py:_XML": "match",
    "spider/xpath_tree.py:_DECLARATION": "sub",
    "worker/sitemaps.py:_wants": AUTHOR,
}
"""How each pattern is used, or the parser below that covers it, or AUTHOR."""

PREFIXES = {
    "rules/addresses.py:_ENDS_IN_A_NUMBER": (".0x", "."),
    "rules/charset.py:_CHARSET": ('charset="', "charset=", "charset"),
    "rules/charset_prescan.py:_ATTRIBUTES": ('a="', "a=", "a "),
    "rules/charset_prescan.py:_CHARSET": ('charset="', "charset"),
    "rules/redaction.py:_USER_INFO": ("://",),
    "rules/sitemaps.py:_LOC": ("<loc>",),
    "rules/session_ids.py:_TOKEN": ("/1", "/a"),
    "rules/session_ids.py:_SESSION": ("?sid=", "?sessid=1", "/(s("),
    "spider/records.py:_AT": ("x - at `$.",),
}
"""Beginnings that lead a pattern to its repetitions."""

USES = ("match", "fullmatch", "search", "sub")


def test_every_pattern_has_a_growth_case_or_is_marked_as_author_side() -> None:
    found = set(patterns())
    missing, stale = sorted(found - set(PATTERNS)), sorted(set(PATTERNS) - found)

    assert not missing, f"add a growth case or mark as author-side: {missing}"
    assert not stale, f"no longer in {SOURCE}: {stale}"
    assert set(PATTERNS.values()) <= {AUTHOR, *USES, *PARSERS}


@pytest.mark.parametrize("place", [place for place, how in PATTERNS.items() if how in USES])
def test_a_pattern_takes_linear_time(place: str) -> None:
    file, _, name = place.partition(":")
    module = importlib.import_module("trotline." + file.removesuffix(".py").replace("/", "."))
    pattern: re.Pattern[Any] = getattr(module, name)
    for prefix in ("", *PREFIXES.get(place, ())):
        for pump in pumps(pattern):
            assert not (grown := against(pattern, PATTERNS[place], pump, prefix)), f"{prefix!r} + {pump!r}: {grown}"


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

    try:
        return number(text)
    except ValueError:
        # More digits than Python turns into an integer: it refuses at once.
        return None


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


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_takes_linear_time_up_to_its_size_limit(name: str) -> None:
    work, limit, hostile = PARSERS[name]
    for number, make in enumerate(hostile):
        assert not (grown := growth(work, make, limit)), f"input {number}, {make(12)!r:.60}: {grown}"


def test_quadratic_time_is_noticed() -> None:
    """The pattern that froze a supervisor for 24 s."""
    pattern = re.compile(r"\b((?:rediss?(?:\+\w+)?)://)[^\s\"'<>]*@")

    assert "times as much" in against(pattern, "sub", "redis://")
    assert against(re.compile("a+b"), "match", "a") == ""


def test_a_pattern_without_a_case_is_noticed(tmp_path: Any) -> None:
    (tmp_path / "new.py").write_text(
        "import re\n\n_A = re.compile('a')\n\ndef f(text):\n    return re.sub('a', '', text)\n"
    )

    assert list(patterns(tmp_path)) == ["new.py:_A", "new.py:f"]
