"""The index of a WARC file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.archive import ArchiveEntry, CaptureKind
from trotline.rules import cdxj


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.shop.example/P/17?b=2&a=1", "example,shop)/p/17?a=1&b=2"),
        ("http://shop.example", "example,shop)/"),
        ("http://127.0.0.1:8010/a b", "127.0.0.1:8010)/a%20b"),
        ("https://[::1]/", "::1)/"),
        ("archive:sha256-1/label%20a.pdf", "archive:sha256-1/label%20a.pdf"),
        ("https://h:port/", "https://h:port/"),
    ],
)
def test_the_key_of_a_url(url, key):
    assert cdxj.key_of(url) == key


_host = st.from_regex(r"[a-z0-9.-]{1,12}(:[0-9]{1,6})?", fullmatch=True)
_rest = st.text("aZ0/?&=#;%[] ~\t:@é", max_size=20)


@given(st.sampled_from(("http", "https")), _host, st.sampled_from(("", "/", "?", "#")), _rest)
def test_the_short_way_to_a_key_is_right(scheme, host, mark, rest):
    url = f"{scheme}://{host}{mark}{rest}"
    assert cdxj.key_of(url) == cdxj._slowly(url)


@given(
    url=st.text(st.characters(exclude_categories=("Cs",)), max_size=50),
    at=st.floats(0, 4e9),
    status=st.integers(0, 599),
    revisit=st.booleans(),
    kind=st.sampled_from(CaptureKind),
)
def test_a_line_is_read_as_it_was_written(url, at, status, revisit, kind):
    entry = ArchiveEntry(
        id="a" * 32, url=url, at=at, status=status, kind=kind, is_revisit=revisit, mime="text/html", digest="sha256:A",
        job="shop-1", route="product", file="warc/x.warc.gz", offset=7, length=3,
    )  # fmt: skip
    line = cdxj.line(entry, "x.warc.gz")
    assert len(line.decode().splitlines()) == 1
    assert list(cdxj.read(line, entry.file)) == [entry]


def test_lines_are_sorted():
    entries = [ArchiveEntry(id=f"{n:032x}", url=f"http://h.test/{n}", at=1.0, length=1) for n in (3, 1, 2)]
    assert [int(one.id) for one in cdxj.read(cdxj.written(entries, "warc/x.warc.gz"), "")] == [1, 2, 3]


@pytest.mark.parametrize("line", [b"x", b"a 2026 {}", b'a 2026 {"url": 1}', b"a 2026 [1]", b"{" * 2000])
def test_an_odd_line_is_an_error(line):
    with pytest.raises(ValueError, match="cannot be read"):
        list(cdxj.read(line, ""))
