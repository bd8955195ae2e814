"""Which characters bytes mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.charset import decode, encoding_of

HTML = "text/html"


@pytest.mark.parametrize(
    ("body", "content_type", "name", "text"),
    [
        # a byte order mark beats everything
        ("\ufeffä".encode(), "text/html; charset=iso-8859-1", "utf-8", "ä"),
        (b"\xff\xfe" + "ä".encode("utf-16-le"), "text/html; charset=utf-8", "utf-16le", "ä"),
        (b"\xfe\xff" + "ä".encode("utf-16-be"), None, "utf-16be", "ä"),
        # the header beats the page
        ("ä".encode("latin-1"), "text/html; charset=ISO-8859-1", "windows-1252", "ä"),
        ("€".encode("cp1252"), 'text/html; charset="latin1"', "windows-1252", "€"),
        (
            "<meta charset=utf-8>я".encode("cp1251"),
            "text/html;charset=windows-1251",
            "windows-1251",
            "<meta charset=utf-8>я",
        ),
        ("日本".encode("shift_jis"), "text/html; Charset = 'Shift_JIS' ; x=y", "shift_jis", "日本"),
        # the page, when the header is silent or unknown
        ("<meta charset=windows-1251>я".encode("cp1251"), HTML, "windows-1251", "<meta charset=windows-1251>я"),
        (
            "<META/CHARSET='koi8-r'>я".encode("koi8-r"),
            "text/html; charset=klingon",
            "koi8-r",
            "<META/CHARSET='koi8-r'>я",
        ),
        # utf-16 in a page that reads as ASCII means utf-8
        ("<meta charset=utf-16>ä".encode(), HTML, "utf-8", "<meta charset=utf-16>ä"),
        # nobody says anything
        ("ä".encode(), HTML, "utf-8", "ä"),
        ("ä".encode("latin-1"), HTML, "windows-1252", "ä"),
        (b"", None, "utf-8", ""),
        # never UTF-7
        (b"+ADw-script+AD4-", "text/html; charset=utf-7", "utf-8", "+ADw-script+AD4-"),
        (b"<meta charset=utf-7>+ADw-", None, "utf-8", "<meta charset=utf-7>+ADw-"),
        # encodings that only attacks use
        (b"anything", "text/html; charset=iso-2022-kr", "replacement", "\ufffd"),
        # what browsers read and Python's codecs of that name do not
        (b"\x81\x8d", "text/html; charset=windows-1252", "windows-1252", "\x81\x8d"),
        (b"\xae\xbe", "text/html; charset=koi8-u", "koi8-u", "ўЎ"),
        ("\u3400".encode("gb18030"), "text/html; charset=gbk", "gbk", "\u3400"),
        (b"\x1b(I1\x1b(B", "text/html; charset=iso-2022-jp", "iso-2022-jp", "ｱ"),
        (b"\xad\xea\xad\xa1\xa1\xc1\xff", "text/html; charset=euc-jp", "euc-jp", "㈱①～\ufffd"),
        # wrong bytes become replacement characters
        (b"a\xffb", "text/html; charset=utf-8", "utf-8", "a\ufffdb"),
    ],
)
def test_the_order_of_browsers(body: bytes, content_type: str | None, name: str, text: str) -> None:
    assert (text, name) == decode(body, content_type)
    assert name == encoding_of(body, content_type)


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', "koi8-r"),
        ("<meta content='text/html;charset=koi8-r' http-equiv=content-type>", "koi8-r"),
        ('<meta name="x" content="charset=koi8-r"><meta charset=gbk>', "gbk"),
        ("<!-- <meta charset=koi8-r> --><meta charset=gbk>", "gbk"),
        ("<!-- never closed <meta charset=koi8-r>", "utf-8"),
        ("<meta charset=nonsense><meta charset=gbk>", "gbk"),
        ("<meta charset=x-user-defined>", "windows-1252"),
        ("<metadata charset=koi8-r>", "utf-8"),
        (" " * 1024 + "<meta charset=koi8-r>", "utf-8"),
        ("<meta charset", "utf-8"),
        ("<meta charset=koi8-r", "utf-8"),
        ("<p title='<meta charset=koi8-r>'><meta charset=gbk>", "gbk"),
        ('<p title="<meta charset=koi8-r>', "utf-8"),
        ("<!--><meta charset=gbk>", "gbk"),
        ("</p title='<meta charset=koi8-r>'><?x <meta charset=gbk>", "utf-8"),
    ],
)
def test_the_page_is_scanned_as_browsers_scan_it(page: str, name: str) -> None:
    assert name == encoding_of(page.encode(), HTML)


def test_a_late_meta_counts_when_something_has_to_be_assumed() -> None:
    page = "<!-- " + "x" * 5_000 + " --><meta charset=windows-1251><p>чай"
    assert encoding_of(page.encode("cp1251"), HTML) == "windows-1251"
    assert encoding_of(page.encode(), HTML) == "utf-8"


def test_bytes_that_are_no_japanese_are_not_looked_up_one_by_one() -> None:
    assert decode(b"\xff" * 1_000_000, "text/html; charset=euc-jp")[0] == "\ufffd" * 1_000_000


@given(
    st.binary(max_size=300),
    st.one_of(st.none(), st.text(max_size=40), st.sampled_from(["x; charset=utf-16", "charset=big5"])),
)
def test_no_body_is_too_strange(body: bytes, content_type: str | None) -> None:
    text, name = decode(body, content_type)
    assert isinstance(text, str)
    assert name == encoding_of(body, content_type)


@given(st.text())
def test_utf8_text_comes_back_as_it_was(text: str) -> None:
    assert (text.removeprefix("\ufeff"), "utf-8") == decode(text.encode(), "text/html; charset=utf-8")
