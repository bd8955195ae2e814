"""Texts that PostgreSQL cannot hold are replaced, and nothing else is changed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.adapters.postgres.frontier.storable_text import storable

TEXTS = st.text(st.characters(codec=None, exclude_categories=[]))


@given(st.lists(st.one_of(TEXTS, st.integers(), st.binary(), st.none(), st.lists(TEXTS | st.none()))))
def test_every_text_can_be_stored_and_keeps_its_length(values: list[Any]) -> None:
    for before, after in zip(values, storable(values), strict=True):
        pairs = zip(before, after, strict=True) if isinstance(before, list) else [(before, after)]
        for one, other in pairs:
            if isinstance(one, str):
                assert "\0" not in other and len(other) == len(one)
                assert other.encode().decode() == other
            else:
                assert one == other


@pytest.mark.parametrize("value", ["plain", "größer ☃ 🂡", ["a", "ü"], [1, 2], [b"\0"], ["x", None], b"\0", 7, None, []])
def test_what_can_be_stored_is_not_changed(value: Any) -> None:
    [found] = storable([value])

    assert found == value
