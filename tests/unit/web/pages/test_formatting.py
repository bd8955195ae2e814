"""Numbers, times and foreign text on pages."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.web.job_views import EtaView
from trotline.web.pages import formatting


def test_unknown_is_never_zero() -> None:
    for show in (formatting.count, formatting.size, formatting.rate, formatting.percent, formatting.length):
        assert show(None) == "unknown"  # type: ignore[operator]
        assert show(0) != "unknown"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "0 %"), (0.0004, "< 0.1 %"), (0.9996, "99.9 %"), (1.0, "100 %"), (0.123, "12.3 %")]
)
def test_a_share_is_not_rounded_to_nothing_or_to_all(share: float, shown: str) -> None:
    assert formatting.percent(share) == shown


@given(st.text(max_size=500), st.integers(2, 100))
def test_foreign_text_is_one_visible_line_of_bounded_length(given_text: str, longest: int) -> None:
    shown = formatting.foreign(given_text, longest)
    assert len(shown) <= longest
    seen = {unicodedata.category(char) for char in shown if char not in "\u200c\u200d"}
    assert not seen & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def test_direction_marks_and_characters_without_width_are_shown() -> None:
    assert formatting.foreign("a\u202eb\u200bc\n") == "a\ufffdb\ufffdc␊"
    assert formatting.foreign("שלום") == "שלום"


def test_lines_keep_their_breaks() -> None:
    assert formatting.lines("one\r\ntwo\u2028three\x1b[31m") == "one\ntwo\nthree␛[31m"


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (None, ""),
        (EtaView(unknown="paused"), ""),
        (EtaView(low=50.0, high=58.0), "50 to 58 s"),
        (EtaView(low=7200.0, high=10800.0), "2 to 3 h"),
        (EtaView(low=100.0, high=110.0), "about 2 min"),
    ],
)
def test_an_estimate_is_a_range_in_one_unit(found: EtaView | None, shown: str) -> None:
    assert formatting.eta(found) == shown


def test_a_name_in_a_path_cannot_leave_its_place() -> None:
    assert formatting.part("../a?b#c/d&e") == "..%2Fa%3Fb%23c%2Fd%26e"
