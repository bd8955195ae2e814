"""Lengths of time as people read them."""

import pytest

from trotline.rules.duration_text import length


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.002, "2 ms"),
        (0.25, "0.25 s"),
        (0.4, "0.4 s"),
        (0.996, "1.0 s"),
        (1.25, "1.3 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (185, "3 min 5 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_a_length_is_rounded_as_people_do(seconds: float, shown: str) -> None:
    assert length(seconds) == shown
