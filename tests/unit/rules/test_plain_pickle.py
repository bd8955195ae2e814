"""Pickles of plain values: read without running anything."""

import datetime
import os
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.plain_pickle import LARGEST, NotPlain, read

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


class Bomb:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/trotline-was-here",)


@given(_PLAIN, st.integers(3, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    assert read(pickle.dumps(value, protocol=protocol)) == value


def test_text_of_an_html_parser_is_text() -> None:
    """Every request of a CrawlSpider has it: `meta["link_text"]`."""
    (text,) = pytest.importorskip("lxml.html").fromstring("<a>codeop \u2014 Compile</a>").xpath("//text()")
    assert type(text) is not str
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        found = read(pickle.dumps({"link_text": text}, protocol=protocol))["link_text"]
        assert (found, type(found)) == ("codeop \u2014 Compile", str)


def test_its_class_makes_text_of_text_only() -> None:
    """Text of a list that has itself many times over would fill the memory."""
    with pytest.raises(NotPlain, match="is no text"):
        read(b"\x80\x02clxml.etree\n_ElementUnicodeResult\n]\x85\x81.")


@pytest.mark.parametrize("value", [Bomb(), datetime.date(2026, 1, 1), len, Exception("x"), range(3)])
def test_a_pickle_that_names_code_is_refused_with_its_name(value: Any) -> None:
    with pytest.raises(NotPlain, match="it names "):
        read(pickle.dumps({"url": "https://shop.example/", "meta": value}))


@pytest.mark.parametrize("data", [b"", b"\x80", b"not a pickle", b"\x80\x05]", b"x" * (LARGEST + 1), b"Pid\n."])
def test_damaged_data_is_an_error_of_its_own(data: bytes) -> None:
    with pytest.raises(NotPlain):
        read(data)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read(data)
    except NotPlain as error:
        assert str(error)
