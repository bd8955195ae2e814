"""Pickles of plain values: read without running anything."""

import collections
import datetime
import fractions
import os
import pickle
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.safe_pickle import LARGEST, NotPlain, read

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


class Bomb:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/trotline-was-here",)


_ZONES = st.none() | st.timedeltas(datetime.timedelta(hours=-23), datetime.timedelta(hours=23)).map(datetime.timezone)


@given(
    st.datetimes(timezones=_ZONES) | st.dates() | st.timedeltas() | st.times(), st.integers(3, pickle.HIGHEST_PROTOCOL)
)
def test_dates_come_back(value: Any, protocol: int) -> None:
    """The add-on stores them in meta, so an import must take them over."""
    found = read(pickle.dumps({"meta": {"when": value}}, protocol=protocol))["meta"]["when"]
    assert (found, type(found)) == (value, type(value))
    # Protocol 3 does not have it.
    assert getattr(found, "fold", 0) == (getattr(value, "fold", 0) if protocol > 3 else 0)
    assert getattr(found, "tzinfo", None) == getattr(value, "tzinfo", None)


@given(st.decimals(allow_nan=False) | st.uuids(), st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_numbers_and_ids_come_back(value: Any, protocol: int) -> None:
    found = read(pickle.dumps({"meta": [value, {value}, value]}, protocol=4 if protocol < 4 else protocol))["meta"]
    assert (found, type(found[0])) == ([value, {value}, value], type(value))
    assert read(pickle.dumps(value, protocol=protocol)) == value


def test_an_ordered_dict_is_a_dict() -> None:
    found = read(pickle.dumps(collections.OrderedDict(b=1, a=collections.OrderedDict())))
    assert type(found) is dict and list(found.items()) == [("b", 1), ("a", {})]


@pytest.mark.parametrize(
    "data",
    [
        b"cdatetime\ndate\nC\x04\x07\xea\x02\xff\x85R.",
        b"cdatetime\ndate\nC\x03\x07\xea\x02\x85R.",
        b"cdatetime\ndate\n)R.",
        b"cdatetime\ndate\n]\x85R.",
        b"cdatetime\ndatetime\nC\x0a\x07\xea\x01\x02\x1f\x04\x05\x00\x00\x06\x85R.",
        b"cdatetime\ndatetime\nC\x0a\x07\xea\x01\x02\x03\x04\x05\x00\x00\x06K\x01\x86R.",
        b"cdatetime\ntimedelta\nK\x00K\x00G\x7f\xf0\x00\x00\x00\x00\x00\x00\x87R.",
        b"cdatetime\ntimezone\nK\x00\x85R.",
        b"cdatetime\ntimezone\ncdatetime\ntimedelta\nK\x09K\x00K\x00\x87R\x85R.",
        b"cdatetime\ndate\n.",
        b"cdatetime\ntime\nC\x06\x19\x00\x00\x00\x00\x00\x85R.",
        b"cdatetime\ntime\n)R.",
        b"cdecimal\nDecimal\n]\x85R.",
        b"cdecimal\nDecimal\nU\x03abc\x85R.",
        b"cdecimal\nDecimal\n)R.",
        b"cuuid\nUUID\nK\x05\x85\x81.",
        b"cuuid\nUUID\n)\x81}U\x03intK\x05sb",
        b"cuuid\nUUID\n)\x81}b.",
        b"cuuid\nUUID\n)\x81}U\x03intU\x01xsb.",
        b"cuuid\nUUID\n)\x81}U\x03int\x8a\x11" + b"\xff" * 16 + b"\x00sb0K\x05Nb.",
        b"cuuid\nUUID\n)\x81}U\x03int\x8a\x12" + b"\xff" * 17 + b"\x00sb.",
        b"}}b.",
        b"ccollections\nOrderedDict\n]\x85R.",
        b"]]\x93.",
    ],
)
def test_a_value_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(NotPlain):
        read(b"\x80\x03" + data)


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


@pytest.mark.parametrize(
    "value", [Bomb(), fractions.Fraction(1, 2), collections.Counter("a"), len, Exception("x"), range(3)]
)
def test_a_pickle_that_names_code_is_refused_with_its_name(value: Any) -> None:
    with pytest.raises(NotPlain, match="it names "):
        read(pickle.dumps({"url": "https://shop.example/", "meta": value}))


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"not a pickle", b"\x80\x05]", b"x" * (LARGEST + 1), b"Pid\n.", b"\x8c\x05ab."]
)
def test_damaged_data_is_an_error_of_its_own(data: bytes) -> None:
    with pytest.raises(NotPlain):
        read(data)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read(data)
    except NotPlain as error:
        assert str(error)


_DEEP = b"\x80\x04" + b")" + b"\x85" * 1_000_000 + b"."
_DOUBLED = b"\x80\x04)" + b"2\x86" * 60
_TWICE = b"\x80\x02]q\x00" + b"".join(b"]q%c(h%ch%ce" % (i + 1, i, i) for i in range(100)) + b"."
_TEXT = b"\x80\x04X\x00\x00\x10\x00" + b"x" * 2**20
_DIGITS = b"\x80\x04cdecimal\nDecimal\nX\x00\x00\x10\x00" + b"7" * 2**20 + b"\x85R"
_COLLIDING = b"".join(b"\x8a\x14" + ((2**61 - 1) * (2**64 + n)).to_bytes(20, "little") + b"N" for n in range(3_000))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(_TWICE, "too large", id="a list that has each list before it twice"),
        pytest.param(_TEXT + b"\x940(" + b"h\x00" * 99 + b"t.", "too large", id="a text many times"),
        pytest.param(_DIGITS + b"\x940(" + b"h\x00" * 99 + b"t.", "too large", id="a Decimal many times"),
        pytest.param(_DEEP, "more than 1,000,000 instructions", id="deep"),
        pytest.param(b"\x80\x04)" + b"\x85" * 201 + b".", "nested more than 200 deep", id="nested"),
        pytest.param(b"\x80\x04]\x94h\x00a.", "nested more than 200 deep", id="a list in itself"),
        pytest.param(b"\x80\x04}" + _DOUBLED[2:] + b"Ns.", "too large", id="a key that is hashed without end"),
        pytest.param(b"\x80\x04\x8f(" + _DOUBLED[2:] + b"\x90.", "too large", id="a member of a set"),
        pytest.param(b"\x80\x04(" + _DOUBLED[2:] + b"\x91.", "too large", id="a member of a frozenset"),
        pytest.param(b"\x80\x04}" + b")" + b"\x85" * 100_000 + b"Ns.", "nested more than", id="a key too deep to hash"),
        pytest.param(b"\x80\x04}(" + _COLLIDING + b"u.", "neither text nor bytes", id="keys that collide"),
        pytest.param(b"\x80\x02clxml.etree\n_ElementUnicodeResult\n.", "not plain", id="a class alone"),
        pytest.param(b"\x80\x04\x8e" + b"\xff" * 8 + b".", "ends early", id="bytes of any length"),
    ],
)  # fmt: skip
def test_a_small_pickle_of_a_large_value_is_refused_in_short_time(data: bytes, why: str) -> None:
    with pytest.raises(NotPlain, match=why):
        read(data)


def test_places_in_the_memo_cost_no_memory() -> None:
    tracemalloc.start()
    try:
        assert read(b"\x80\x04]r" + (60_000_000).to_bytes(4, "little") + b".") == []
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@given(_PLAIN, st.sets(st.text() | st.binary() | st.tuples(st.integers()), max_size=3), st.integers(2, 5))
def test_it_reads_as_python_does(value: Any, members: set[Any], protocol: int) -> None:
    """Also with values that are there twice. Bytes and sets in protocol 2 are calls, and so are sets in 3."""
    data = pickle.dumps([value, value, members, frozenset(members), bytearray(b"x"), 2**70], protocol=protocol)
    try:
        found = read(data)
    except NotPlain as error:
        assert protocol < 5 and "it names" in str(error)
    else:
        assert found == pickle.loads(data)  # noqa: S301 - our own
