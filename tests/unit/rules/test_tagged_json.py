"""Values as tagged JSON: they come back as they were, or an error names them."""

import math
from collections import OrderedDict, defaultdict
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.tagged_json import TAG, BadData, NotData, TaggedJson

CODEC = TaggedJson()

_KEYS = st.text(max_size=5) | st.integers() | st.just(TAG) | st.tuples(st.text(max_size=2), st.integers())
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(exclude_categories=()), max_size=8)
    | st.binary(max_size=8)
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.frozensets(st.integers(), max_size=3)
    | st.sets(st.text(max_size=3), max_size=3)
)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


def there_and_back(value: Any) -> Any:
    return CODEC.decode(CODEC.encode({"value": value}))["value"]


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(VALUES)
def test_a_value_comes_back_with_its_types(value: Any) -> None:
    assert same(there_and_back(value), value)


def test_what_json_has_no_number_for_comes_back() -> None:
    assert math.isnan(there_and_back(math.nan))
    assert there_and_back(-math.inf) == -math.inf
    assert there_and_back(2**200) == 2**200


def test_subclasses_of_text_and_ordered_dicts_become_plain() -> None:
    class Found(str):
        pass

    assert type(there_and_back(Found("x"))) is str
    assert there_and_back(OrderedDict(b=1, a=2)) == {"b": 1, "a": 2}


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize("value", [object(), defaultdict(list), Colour.RED, lambda: None, type("Own", (dict,), {})()])
def test_what_has_no_form_is_named_with_its_place_and_type(value: Any) -> None:
    with pytest.raises(NotData, match=r"meta\['pages'\]\[1\] is an object of the type ") as error:
        CODEC.encode({"meta": {"pages": [1, value]}})
    assert type(value).__name__ in str(error.value)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotData, match="nested more than"):
        CODEC.encode({"meta": loop})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b'{"~": 1}',
        b'{"~": ["bytes", 1]}',
        b'{"~": ["bytes", "***"]}',
        b'{"~": ["os.system", "true"]}',
        b'{"~": ["int", "x"]}',
        b'{"~": ["dict", [[{"a": 1}, 2]]]}',
        b'{"~": ["datetime", ["2026", 7]]}',
        b'{"~": ["timedelta", [1e99]]}',
        b'{"~": ["Decimal", "x"]}',
        b'{"~": ["tuple", 5]}',
        b'{"~": ["UUID", 5]}',
        b'{"~": ["date", {}]}',
        b'{"~": ["bytes", {}]}',
        b'{"~": ["text", [1]]}',
        b'{"~": ["datetime", null]}',
        b'{"~": ["float", "1e"]}',
        b'{"~": ["int", "' + b"9" * 5000 + b'"]}',
        b'{"~": ["int", "1"], "more": 1}',
        b"[" * 5000,
    ],
)
def test_hostile_text_is_an_error_of_its_own(text: bytes) -> None:
    with pytest.raises(BadData):
        CODEC.decode(text)


_TAGS = st.sampled_from(
    [
        "int",
        "float",
        "text",
        "bytes",
        "bytearray",
        "datetime",
        "date",
        "time",
        "timedelta",
        "Decimal",
        "UUID",
        "dict",
        "tuple",
        "set",
        "frozenset",
        "item",
        "PageMethod",
    ]
) | st.text(max_size=5)
_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
MALFORMED = st.recursive(
    _PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.tuples(_TAGS, inner).map(lambda tagged: {TAG: list(tagged)})
        | st.dictionaries(st.just(TAG), st.lists(inner, max_size=3), min_size=1)
    ),
    max_leaves=10,
)
"""JSON with tags whose values are of any type."""


@given(MALFORMED)
def test_malformed_tagged_values_are_read_or_refused(value: Any) -> None:
    try:
        CODEC.restored(value)
    except BadData as error:
        assert str(error)


@pytest.mark.parametrize("tag", ["set", "frozenset", "dict"])
def test_keys_with_one_hash_take_no_time(tag: str) -> None:
    """Each would be compared with all others: minutes for what fits into a request."""
    keys = [{TAG: ["int", str(number * (2**61 - 1))]} for number in range(1, 30_000)]
    values = [[key, 0] for key in keys] if tag == "dict" else keys
    with pytest.raises(BadData, match="the same hash"):
        CODEC.restored({TAG: [tag, values]})
    assert len(CODEC.restored({TAG: ["set", list(range(30_000))]})) == 30_000


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_text_is_read_or_refused(text: bytes) -> None:
    try:
        CODEC.decode(text)
    except BadData as error:
        assert str(error)
