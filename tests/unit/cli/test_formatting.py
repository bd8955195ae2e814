"""Promises of what reaches a screen."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.cli.formatting import clock, count, eta, length, rate, safe, safe_url, size
from trotline.rules.eta import Range, Unknown


def test_control_characters_are_shown_as_symbols():
    assert safe("a\x1b[31mb\x07\r\n") == "a␛[31mb␇␍␊"
    assert safe("\x7f\x9b\u202e") == "␡\ufffd\ufffd"


def test_foreign_letters_stay_as_they_are():
    assert safe("Käse 茶 é 🫖") == "Käse 茶 é 🫖"


def test_long_text_is_cut_with_a_mark():
    assert safe("x" * 1000) == "x" * 299 + "…"


@given(st.text())
def test_nothing_that_steers_a_terminal_gets_through(text: str):
    shown = safe(text)
    assert len(shown) <= 300
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in shown)


def test_a_url_is_shown_without_its_password():
    assert safe_url("https://me:secret@shop.example/a") == "https://shop.example/a"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.004, "4 ms"),
        (0.42, "0.42 s"),
        (9.94, "9.9 s"),
        (42, "42 s"),
        (60, "1 min"),
        (185, "3 min 5 s"),
        (7800, "2 h 10 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_lengths_of_time_in_their_two_largest_units(seconds: float, text: str):
    assert length(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(7, "0:07"), (725, "12:05"), (3723, "1:02:03")])
def test_a_running_time_keeps_its_width(seconds: float, text: str):
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Range(4, 9), "4 to 9 s"),
        (Range(102, 169), "2 to 3 min"),
        (Range(40, 400), "1 to 7 min"),
        (Range(7300, 7500), "about 2 h"),
        (Range(0, 0), "0 to 1 s"),
        (Unknown.GROWING, "no estimate yet: still finding new pages"),
    ],
)
def test_an_eta_reads_as_a_range(found: Range | Unknown, text: str):
    assert eta(found) == text


def test_numbers():
    assert (count(1234), count(1, "page"), count(0, "page")) == ("1,234", "1 page", "0 pages")
    assert (rate(0.1), rate(2), rate(1234.5)) == ("6.0 pages/min", "2.0 pages/s", "1,234 pages/s")
    assert rate(None) == "unknown pages/s"
    assert (size(10), size(2048), size(3 * 1024**3)) == ("10 bytes", "2.0 KiB", "3.0 GiB")
