"""Whatever parses foreign text takes time in proportion to its size; patterns: test_linear_patterns.py.

The parser of HTML is not among them: it is not ours, and takes quadratic time over elements inside each other and over
the attributes of one tag. It runs only where the supervisor knows the page, and the parse budget ends it
(tests/e2e/test_bomb_pages.py).
"""

import re

import pytest

from tests.unit.cost_growth import against, growth
from tests.unit.linear_parsers import PARSERS


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_takes_linear_time_up_to_its_size_limit(name: str) -> None:
    work, limit, hostile = PARSERS[name]
    for number, make in enumerate(hostile):
        assert not (grown := growth(work, make, limit)), f"input {number}, {make(12)!r:.60}: {grown}"


def test_quadratic_time_is_noticed() -> None:
    """The pattern that froze a supervisor for 24 s."""
    pattern = re.compile(r"\b((?:rediss?(?:\+\w+)?)://)[^\s\"'<>]*@")

    assert "times as much" in against(pattern, "sub", "redis://")
    assert against(re.compile("a+b"), "match", "a") == ""
