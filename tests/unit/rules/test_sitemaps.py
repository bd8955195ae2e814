"""What a sitemap lists."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.limits import Limits
from trotline.rules.sitemaps import SitemapFile, named_in_robots, parse

SPACE = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
)


def read(text: str | bytes, **limits: int) -> SitemapFile:
    return parse(text.encode() if isinstance(text, str) else text, Limits(**limits))


def test_pages_without_what_else_is_said_of_them() -> None:
    found = read(
        f"""<?xml version="1.0" encoding="UTF-8"?>
        <urlset {SPACE}>
          <url><loc> https://a.example/1?x=1&amp;y=2 </loc><lastmod>2026-01-02</lastmod><priority>0.5</priority></url>
          <url><lastmod>2026-01-03T00:00:00Z</lastmod>
               <loc><![CDATA[https://a.example/2]]></loc>
               <image:image><image:loc>https://a.example/picture.png</image:loc></image:image></url>
        </urlset>"""
    )
    assert found.urls == ["https://a.example/1?x=1&y=2", "https://a.example/2"]
    assert (found.children, found.dropped, found.notes) == ([], 0, [])


def test_an_index_lists_children() -> None:
    found = read(f"<sitemapindex {SPACE}><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>")
    assert found.children == ["https://a.example/1.xml"]
    assert found.urls == []


def test_a_prefix_does_not_matter() -> None:
    found = read("<s:urlset xmlns:s='x'><s:url><s:loc>https://a.example/1</s:loc></s:url></s:urlset>")
    assert found.urls == ["https://a.example/1"]


def test_plain_lines_are_a_sitemap_too() -> None:
    found = read("\ufeffhttps://a.example/1\r\n\r\n  https://a.example/2  \nnot a url\n")
    assert found.urls == ["https://a.example/1", "https://a.example/2"]
    assert found.dropped == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_encodings_are_understood(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><urlset><url><loc>https://a.example/ä</loc></url></urlset>'
    assert read(text.encode(encoding)).urls == ["https://a.example/ä"]


def test_gzip_is_known_by_its_first_bytes() -> None:
    assert read(gzip.compress(b"https://a.example/1\n")).urls == ["https://a.example/1"]


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    found = read(gzip.compress(b"<urlset>" + b" " * 3_000_000), sitemap=1_000_000)
    assert list(found.cuts) == ["sitemap: size"]


def test_broken_gzip_is_an_empty_sitemap() -> None:
    found = read(b"\x1f\x8b" + b"junk" * 10)
    assert found.urls == []
    assert "broken gzip" in found.notes[0]


def test_what_comes_after_broken_xml_is_found_all_the_same() -> None:
    found = read(
        "<urlset><url><loc>https://a.example/1</loc></url><url><loc>https://a.example/2?a=1&b=2</loc></url>"
        "<url><loc>https://a.example/3</loc></url>"
    )
    assert found.urls == ["https://a.example/1", "https://a.example/2?a=1&b=2", "https://a.example/3"]
    assert "broken XML" in found.notes[0]


BILLION = """<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<urlset><url><loc>https://a.example/&b;</loc></url></urlset>"""
EXTERNAL = """<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<urlset><url><loc>https://a.example/&a;</loc></url></urlset>"""


@pytest.mark.parametrize("text", [BILLION, EXTERNAL])
def test_entities_are_never_expanded(text: str) -> None:
    found = read(text)
    assert found.urls == []
    assert found.notes == ["entity declarations are refused"]


def test_attributes_that_a_document_type_declares_are_never_added() -> None:
    found = read('<!DOCTYPE x [<!ATTLIST url a CDATA "x">]><urlset><url><loc>https://a.example/1</loc></url></urlset>')
    assert found.urls == []
    assert found.notes == ["attribute declarations are refused"]


def test_a_document_type_alone_does_no_harm() -> None:
    text = '<!DOCTYPE urlset SYSTEM "http://127.0.0.1/x.dtd"><urlset><url><loc>https://a.example/1</loc></url></urlset>'
    assert read(text).urls == ["https://a.example/1"]


@pytest.mark.parametrize("form", ["<url><loc>https://a.example/{}</loc></url>", "https://a.example/{}\n"])
def test_only_so_many_are_read(form: str) -> None:
    text = "".join(form.format(number) for number in range(20))
    found = read(f"<urlset>{text}</urlset>" if form.startswith("<") else text, sitemap_urls=5)
    assert len(found.urls) == 5
    [(what, cut)] = found.cuts.items()
    assert (what, cut.count) == ("sitemap: URLs", 15)
    assert cut.example == "https://a.example/5"


def test_what_is_no_web_address_is_dropped_and_counted() -> None:
    found = read("".join(f"<url><loc>{url}</loc></url>" for url in ("ftp://a/", "/relative", "")).join(("<x>", "</x>")))
    assert (found.urls, found.dropped) == ([], 3)


@given(st.one_of(st.binary(max_size=400), st.text(max_size=200).map(lambda text: f"<urlset>{text}".encode())))
def test_no_bytes_are_too_strange(body: bytes) -> None:
    parse(body, Limits())


def test_a_robots_file_names_sitemaps_relative_or_whole() -> None:
    text = b"\xef\xbb\xbfSitemap: /map.xml\nUser-agent: *\n sitemap :https://b.example/m.xml # of b\nSitemap:\nSitemap: ftp://x/\n"
    found = named_in_robots(text, "https://a.example/robots.txt", Limits())
    assert found.children == ["https://a.example/map.xml", "https://b.example/m.xml"]
