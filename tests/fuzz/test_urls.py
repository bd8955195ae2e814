"""URL identity, on anything that calls itself a URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.strange import STILL_LINEAR, fuzzed, growth, mutated
from trotline.rules.urls import Address, UrlRules, join_all, read, resolve

URLS = [
    b"https://user:pw@shop.example:8443/a/../b;jsessionid=1/%7e?utm_source=x&b=2&a=%2f&a=1#top",
    b"http://[::ffff:1.2.3.4]:80/./%2e%2E/x\\y?;&&=&%zz",
    "https://bücher.example./straße/ß?q=日本&&x=%%37e".encode(),
    b"HTTP:\\\\0x7f.1\\a\tb\nc//..//?#",
]
TEXTS = st.one_of(
    st.text(max_size=80),
    mutated(URLS).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.text("htps:/\\.?#@%&=;[]-0123456789xabé\t\n\ud800", max_size=60).map(lambda text: f"https://{text}"),
)
RULES = st.builds(UrlRules, sort_query=st.booleans(), trailing_slash=st.sampled_from(["keep", "strip"]))


@fuzzed
@given(TEXTS, RULES)
def test_what_is_read_is_settled(text: str, rules: UrlRules) -> None:
    """Reading again changes nothing: neither what is fetched nor what is compared."""
    found = read(text, rules)
    if isinstance(found, Address):
        assert read(found.url, rules) == found
        again = read(found.identity, rules)
        assert isinstance(again, Address)
        assert (again.url, again.identity) == (found.identity, found.identity)
        assert again.lane == found.lane
        assert "#" not in found.url
        assert found.url.isascii()
        assert found.url.isprintable()
        assert found.host == found.host.lower()


@fuzzed
@given(TEXTS, TEXTS)
def test_the_quick_way_to_join_leads_where_the_standard_leads(base: str, href: str) -> None:
    page = read(base)
    if not isinstance(page, Address):
        return
    target = resolve(page.url, href)
    joined = join_all(page.url, [href])
    if joined:
        expected = read(target) if target is not None else None
        got = read(joined[0])
        assert got == expected or not isinstance(got, Address)
        assert isinstance(got, Address) == isinstance(expected, Address)
    elif target is not None and isinstance(there := read(target), Address):
        assert there.identity == page.identity


@pytest.mark.parametrize(
    "piece",
    ["%", "%4", "%41", "../", "./", ";jsessionid=", "&", "&a=b", "&utm_source=1", "?", "\t", "//", "é", ";", "#"],
)
def test_the_work_grows_with_the_length_and_no_faster(piece: str) -> None:
    rules = UrlRules(max_length=1 << 20)
    assert growth(lambda url: read(url, rules), lambda n: "https://a.example/?" + piece * n, 1_000) < STILL_LINEAR
    assert growth(lambda url: read(url, rules), lambda n: "https://a.example/" + piece * n, 1_000) < STILL_LINEAR


@pytest.mark.parametrize("piece", ["../", "./", "\t", "a/", "?", "#", ":", "//", " "])
def test_joining_grows_with_the_length_and_no_faster(piece: str) -> None:
    base = "https://a.example/b/c/d?e"
    assert growth(lambda href: join_all(base, [href]), lambda n: piece * n + "x", 2_000) < STILL_LINEAR
