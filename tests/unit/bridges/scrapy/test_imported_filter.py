"""The filter of scrapy-redis in memory."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from trotline.bridges.scrapy.imported_filter import ImportedFilter

_NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(_NUMBERS), _NUMBERS)
def test_it_has_what_was_put_into_it(numbers: list[int], other: int) -> None:
    seen = ImportedFilter(array("q", numbers))
    assert all(number in seen for number in numbers)
    assert (other in seen) == (other in numbers)
    assert len(seen) == len(numbers)
