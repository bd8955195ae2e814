"""Promises of redaction: what no output may show is not in it."""

import logging
import re
import sys
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.cli.main import call
from trotline.config.backend_urls import frontier_url, public, sink_url
from trotline.model.secret import HIDDEN, Secret
from trotline.model.task import Task
from trotline.rules import redaction
from trotline.rules.redaction import KEYS, is_secret_header

CANARY = "canary-5c1d"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://shop.example/p?page=2&token=abc", "https://shop.example/p?page=2&token=(hidden)"),
        ("https://shop.example/p?TOKEN=abc#x", "https://shop.example/p?TOKEN=(hidden)#x"),
        ("https://shop.example/p?%74oken=abc", "https://shop.example/p?%74oken=(hidden)"),
        ("https://shop.example/p?user[token]=abc", "https://shop.example/p?user[token]=(hidden)"),
        ("https://shop.example/p;jsessionid=abc?a=1", "https://shop.example/p;jsessionid=(hidden)"),
        ("https://shop.example/cb#access_token=abc&state=1", "https://shop.example/cb#access_token=(hidden)&state=1"),
        ("https://anna:pw@shop.example/", "https://shop.example/"),
        ("https://anna:p@w@shop.example/", "https://shop.example/"),
        ("https://anna@shop.example", "https://shop.example"),
        ("redis://:pw@db:6379/0", "redis://db:6379/0"),
        ("redis+sentinel://:p/w#x@db:26379/main", "redis+sentinel://db:26379/main"),
        ("postgresql://anna:p?w/x@db/scrapes", "postgresql://db/scrapes"),
        ("clickhouse://anna:p/w#x@db:9000/scrapes", "clickhouse://db:9000/scrapes"),
        ("clickhouse+http://anna:p/w?x@db/scrapes", "clickhouse+http://db/scrapes"),
        ("MongoDB+srv://anna:p/w@db/scrapes", "MongoDB+srv://db/scrapes"),
        ("amqp://anna:p@w/x@mq//", "amqp://mq//"),
        ("https://shop.example/@anna", "https://shop.example/@anna"),
        ("HTTP://shop.example/@anna", "HTTP://shop.example/@anna"),
        ("https://archive.example/https://shop.example/@anna", "https://archive.example/https://shop.example/@anna"),
        ("file:///srv/anna@home/shop.py", "file:///srv/anna@home/shop.py"),
        ("https://shop.example/?q=a@b", "https://shop.example/?q=a@b"),
        ("https://shop.example/?monkey=1&keys=2&tokens=3", "https://shop.example/?monkey=1&keys=2&tokens=3"),
        ("https://shop.example/?token=", "https://shop.example/?token="),
        ("sqlite:.trotline/shop.frontier.db", "sqlite:.trotline/shop.frontier.db"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert redaction.url(url) == shown


MISTYPED = [
    "redis//anna:{}@db/0",
    "anna:{}@db:6379",
    "a:{}@db:6379",
    "redis:anna:{}@db",
    "redis:/anna:{}@db/0",
    "postgres//anna:{}@db/scrapes",
    "redis:// anna:{}@db/0",
    "ftp://anna:{}@db/0",
    "redis://anna:x {}@db/0",
    "redis://anna:x'{}@db/0",
    "redis://anna:x@{}@db/0",
]


@pytest.mark.parametrize("written", MISTYPED)
@pytest.mark.parametrize("name", ["frontier", "sink"])
def test_a_mistyped_place_is_quoted_without_its_password(written: str, name: str) -> None:
    place = written.format(CANARY)
    assert CANARY not in public(place) or "://" not in place
    try:
        {"frontier": frontier_url, "sink": sink_url}[name](place)
    except ValueError as error:
        assert CANARY not in "".join(traceback.format_exception(error))
        assert "db" in str(error)
    else:
        assert place.startswith("redis://")


FORMS = [
    quote,
    partial(quote, safe=""),
    quote_plus,
    lambda value: re.sub("%..", lambda escape: escape[0].lower(), quote(value, safe="")),
    lambda value: b64encode(value.encode()).decode(),
    lambda value: quote(b64encode(value.encode()).decode(), safe=""),
    lambda value: b64encode(value.encode()).decode().rstrip("="),
    lambda value: urlsafe_b64encode(value.encode()).decode(),
    lambda value: b64encode(f"anna:{value}".encode()).decode(),
    lambda value: b64encode(f"x{value}y".encode()).decode(),
    lambda value: urlsafe_b64encode(f"xy{value}".encode()).decode(),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", ["Bearer k/9+Zz?~>>>é canary-77", "k/9+Zz?~>>>canary", "plaincanary9"])
def test_a_known_secret_is_hidden_in_the_forms_of_urls(form: Callable[[str], str], value: str) -> None:
    Secret(value)
    said = form(value)
    for shown in (redaction.url(f"https://a.example/x/{said}?a={said}#{said}"), redaction.text(f"to {said}.")):
        assert HIDDEN in shown
        left = shown.replace(HIDDEN, "")
        assert not any(said[start : start + 7] in left for start in range(4, len(said) - 10)), shown


def test_a_url_inside_a_url_is_looked_into() -> None:
    inner = quote(f"https://anna:{CANARY}@shop.example/?token={CANARY}", safe="")
    twice = quote(f"https://login.example/?next={inner}", safe="")
    assert CANARY not in redaction.url(f"https://login.example/?next={inner}")
    assert CANARY not in redaction.url(f"https://login.example/?next={twice}")


def test_the_spiders_own_keys_are_hidden_too() -> None:
    assert redaction.url("https://a.example/?ticket=1") == "https://a.example/?ticket=1"
    assert redaction.url("https://a.example/?ticket=1", ("ticket",)) == "https://a.example/?ticket=(hidden)"


def test_urls_in_a_text_are_shown_without_their_secrets() -> None:
    told = redaction.text(f'no "https://u:{CANARY}@a.example/x?token={CANARY}", see <https://b.example/?key={CANARY}>')
    assert told == 'no "https://a.example/x?token=(hidden)", see <https://b.example/?key=(hidden)>'


@pytest.mark.parametrize("scheme", ["redis", "clickhouse", "clickhouse+native", "x-store.v2", "nats", "s3"])
@pytest.mark.parametrize("password", ["p/{}", "p#{}", "p?{}", "p@/{}", "{}/#?@x"])
def test_a_password_in_the_url_of_any_server_is_hidden_in_a_text(scheme: str, password: str) -> None:
    told = redaction.text(f"cannot reach {scheme}://anna:{password.format(CANARY)}@db:9000/scrapes: refused")
    assert told == f"cannot reach {scheme}://db:9000/scrapes: refused"


def test_dots_before_a_web_address_are_not_taken_for_its_scheme() -> None:
    assert redaction.text("see ...https://shop.example/@anna") == "see ...https://shop.example/@anna"


def test_what_is_said_about_a_task_does_not_quote_its_secrets() -> None:
    task = Task(
        url="https://a.example/?token=canary%2Furl", route="r", headers=(("X-Api-Key", CANARY), ("accept", "text/html"))
    )
    told = redaction.text(f"ValueError: canary/url and canary%2Furl and {CANARY} for text/html", about=task)
    assert told == "ValueError: (hidden) and (hidden) and (hidden) for text/html"


@pytest.mark.parametrize(
    "name", ["Authorization", "Cookie", "X-API-Key", "X-Auth-Token", "Proxy-Authorization", "apikey", "Shop-Key", "key"]
)
def test_headers_that_open_doors_are_known_by_their_names(name: str) -> None:
    assert is_secret_header(name)


@pytest.mark.parametrize(
    "name", ["Accept", "Accept-Language", "User-Agent", "Referer", "Content-Type", "ETag", "X-Page"]
)
def test_others_are_not(name: str) -> None:
    assert not is_secret_header(name)


def test_what_is_logged_and_handled_by_nobody_is_shown_without_secrets() -> None:
    call(["status", "--help"])
    assert logging.lastResort is not None
    try:
        raise ValueError(f"https://u:{CANARY}@a.example/")
    except ValueError:
        record = logging.LogRecord(
            "x", logging.ERROR, "x.py", 1, "broke on %s", (f"https://a.example/?key={CANARY}",), sys.exc_info()
        )
    told = logging.lastResort.format(record)
    assert "broke on https://a.example/?key=(hidden)" in told
    assert CANARY not in told


_WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=10)


@given(st.sampled_from(sorted(KEYS)), st.lists(st.tuples(_WORDS, _WORDS), max_size=4), st.integers(0, 4), _WORDS)
def test_a_secret_in_a_telling_key_is_never_shown(
    key: str, others: list[tuple[str, str]], place: int, user: str
) -> None:
    pairs = [*others[:place], (key, CANARY), *others[place:]]
    query = "&".join(f"{name}={value}" for name, value in pairs)
    url = f"https://{user}:{CANARY}@shop.example/p?{query}"
    assert CANARY not in redaction.url(url)
    assert CANARY not in redaction.text(f"it broke on {url!r}: {url}")


@given(st.text())
def test_any_text_is_read_to_its_end_and_reading_twice_changes_nothing(text: str) -> None:
    once = redaction.text(text)
    assert redaction.text(once) == once


def test_a_page_that_is_named_often_is_hidden_as_soon_as_its_key_is():
    page = "https://shop.example/?later_hidden=canary"
    assert redaction.parent(page) == page

    redaction.hide_keys(["later_hidden"])
    try:
        assert redaction.parent(page) == redaction.url(page) == "https://shop.example/?later_hidden=(hidden)"
    finally:
        redaction._also.discard("later_hidden")
        redaction.parent.cache_clear()
