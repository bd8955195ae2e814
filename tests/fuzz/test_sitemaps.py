"""Sitemaps made to hurt: their XML expands nothing, fetches nothing and stays within its caps."""

import gzip
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.strange import STILL_LINEAR, fuzzed, growth, mutated
from trotline.model.limits import Limits
from trotline.rules.sitemaps import named_in_robots, parse

LIMITS = Limits()
ENTRY = "<url><loc>https://a.example/{}</loc></url>"
FILES = [
    b'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="x"><url><loc>https://a.example/1</loc><lastmod>2026'
    b"</lastmod></url><url><loc><![CDATA[https://a.example/2]]></loc></url></urlset>",
    b"<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>",
    gzip.compress(b"https://a.example/1\nhttps://a.example/2\n", mtime=0),
    "<?xml version='1.0' encoding='utf-16'?><urlset><url><loc>https://a.example/ä</loc></url></urlset>".encode(
        "utf-16"
    ),
]


@fuzzed
@given(st.one_of(st.binary(max_size=300), mutated(FILES)))
def test_any_bytes_are_a_sitemap(body: bytes) -> None:
    found = parse(body, LIMITS)
    assert all(url.lower().startswith(("http://", "https://")) for url in found.urls)
    assert len("".join(found.notes)) < 1_000


@fuzzed
@given(st.one_of(st.binary(max_size=300), mutated([b"User-agent: *\nSitemap: /map.xml\nsitemap:https://b.example/\n"])))
def test_any_bytes_may_name_sitemaps(body: bytes) -> None:
    found = named_in_robots(body, "https://a.example/robots.txt", LIMITS)
    assert all(url.startswith(("http://", "https://")) for url in found.children)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
BILLION_LAUGHS = (
    f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]><urlset><url><loc>https://a.example/&l11;</loc></url></urlset>'
)
QUADRATIC = (
    f'<!DOCTYPE x [<!ENTITY a "{"x" * 100_000}">]><urlset>{"<url><loc>https://a/&a;</loc></url>" * 1_000}</urlset>'
)
PARAMETER = '<!DOCTYPE x [<!ENTITY % a SYSTEM "http://127.0.0.1:{port}/x.dtd"> %a;]><urlset/>'
EXTERNAL = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset><url><loc>https://a/&a;</loc></url></urlset>'
DTD = '<!DOCTYPE x SYSTEM "http://127.0.0.1:{port}/x.dtd"><urlset>' + ENTRY.format(1) + "</urlset>"
INCLUDE = '<urlset xmlns:xi="http://www.w3.org/2001/XInclude"><url><loc><xi:include href="file:///etc/passwd" parse="text"/></loc></url></urlset>'  # noqa: E501


@pytest.mark.parametrize("text", [BILLION_LAUGHS, QUADRATIC, PARAMETER, EXTERNAL, DTD, INCLUDE])
def test_b56_nothing_is_expanded_fetched_or_opened(text: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        tracemalloc.start()
        found = parse(text.replace("{port}", str(listener.getsockname()[1])).encode(), LIMITS)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert peak < 10 * len(text) + 1_000_000
    assert not any("root:" in url or len(url) > 100 for url in found.urls)
    assert found.urls in ([], ["https://a.example/1"])


def test_b57_a_million_urls_are_cut_at_the_limit() -> None:
    body = b"<urlset>" + b"<url><loc>https://a.example/</loc></url>" * 1_000_000 + b"</urlset>"
    found = parse(body, LIMITS)
    assert len(found.urls) == LIMITS.sitemap_urls
    assert [cut.count for cut in found.cuts.values()] == [950_000]


@pytest.mark.parametrize(
    "made",
    [
        lambda: b"<urlset><url><loc>https://a.example/" + b"x" * 100_000_000,
        lambda: b"https://a.example/" + b"x" * 100_000_000,
        lambda: gzip.compress(b"x" * 100_000_000, 1),
    ],
    ids=["in-xml", "in-lines", "in-gzip"],
)
def test_b57_a_line_of_100_mb_is_no_url(made: Callable[[], bytes]) -> None:
    found = parse(made(), LIMITS)
    assert found.urls == []
    assert found.notes or found.cuts


# Made by the test: every process that collects the tests would make them at once, and keep them.
FILLING: dict[str, Callable[[], bytes]] = {
    "nested": lambda: gzip.compress(b"<urlset>" + b"<a>" * 17_000_000, 9),
    "attributes": lambda: b"<urlset " + b"".join(b'a%x="" ' % number for number in range(2_000_000)) + b">",
    "names": lambda: b"<urlset>" + b"".join(b"<a%x/>" % number for number in range(2_000_000)) + b"</urlset>",
    "members": lambda: gzip.compress(b"https://a.example/1\n", mtime=0) * 1_000,
}


@pytest.mark.parametrize("name", FILLING)
def test_b57_a_file_made_to_fill_the_memory_does_not(name: str) -> None:
    """51 KB of gzip took 2.4 GB in expat, where Python does not count: the kernel does."""
    limits = ["-c", "import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20));"]
    code = (
        "from trotline.model.limits import Limits; from trotline.rules.sitemaps import parse;"
        "found = parse(sys.stdin.buffer.read(), Limits()); print(len(found.urls), *found.notes, *found.cuts)"
    )
    done = subprocess.run(
        [sys.executable, limits[0], limits[1] + code], input=FILLING[name](), capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert b" sitemap: " in done.stdout


def test_all_members_of_a_gzip_file_are_read() -> None:
    body = b"".join(gzip.compress(f"https://a.example/{number}\n".encode()) for number in range(3))
    assert parse(body, LIMITS).urls == [f"https://a.example/{n}" for n in range(3)]


@pytest.mark.parametrize(
    "piece",
    [
        "<url>",
        "<loc>",
        "<!--",
        "&amp;",
        "&",
        "<a b='",
        "<![CDATA[",
        "<loc>x</loc>",
        "<loc> ",
        "]]>",
        "\n",
        "<x y='1'/>",
    ],
)
def test_b57_reading_grows_with_the_length_and_no_faster(piece: str) -> None:
    def file(n: int) -> bytes:
        return f"<urlset>{piece * n}".encode()

    assert growth(lambda body: parse(body, LIMITS), file, 1_000) < STILL_LINEAR


@pytest.mark.parametrize("fill", [" ", "]", "x ", "<loc> ", "<![CDATA[", "<loc><![CDATA[ ", "&amp;", " ]]>"])
@pytest.mark.parametrize("start", ["<loc>", "<loc>https://a.example/", "<loc><![CDATA["])
def test_b57_searching_broken_xml_grows_with_the_length_and_no_faster(start: str, fill: str) -> None:
    """In 200 blanks after a <loc> that is never closed, a careless pattern looks for an end in every way."""

    def file(n: int) -> bytes:
        return f"<urlset>&{start}{fill * n}".encode()

    assert growth(lambda body: parse(body, LIMITS), file, 1_000) < STILL_LINEAR
