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
    ],
)
def test_the_page_is_scanned_as_browsers_scan_it(page: str, name: str) -> None:
    assert name == encoding_of(page.encode(), HTML)


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
