"""Every character is visible; joiners are kept where they belong to the spelling."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.printable_text import cut, visible

JOINERS = "\u200c\u200d"


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian
        "\u0915\u094d\u200d\u0937",  # Devanagari
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
        "\u2764\ufe0f\u200d\U0001f525",  # a heart on fire
        "\U0001f9d1\U0001f3fd\u200d\U0001f4bb",  # with a skin tone
    ],
)
def test_joiners_of_scripts_and_emoji_are_kept(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u200dpal", "pay\\u200dpal"),
        ("\u200cshop", "\\u200cshop"),
        ("shop\u200d", "shop\\u200d"),
        ("\u0915\u200d\u200d\u0937", "\u0915\\u200d\\u200d\u0937"),
        ("\u0645\u200ca", "\u0645\\u200ca"),
        ("\U0001f525\u200ca", "\U0001f525\\u200ca"),
        ("a\u202eb\u200bc\n", "a\ufffdb\ufffdc\u240a"),
    ],
)
def test_what_would_be_invisible_is_seen(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(max_size=300), st.integers(2, 100))
def test_text_is_one_visible_line_of_bounded_length(text: str, longest: int) -> None:
    shown = cut(text, longest)
    assert len(shown) <= longest
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not {unicodedata.category(char) for char in shown if char not in JOINERS} & hidden
