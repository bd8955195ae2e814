"""A gzip member around bytes that are compressed already: any program reads it."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from trotline.rules.gzip_members import around


@given(st.binary(max_size=2000), st.binary(max_size=2000), st.binary(max_size=10))
def test_what_was_packed_comes_out_as_it_went_in(start, packed, end):
    member = around(start, packed, end)
    assert packed in member
    assert zlib.decompress(member, 31) == isal_zlib.decompress(member, 31) == start + packed + end


@pytest.mark.parametrize("size", [0, 1, 65_534, 65_535, 65_536, 131_070, 131_071, 1_000_000])
def test_large_bytes_are_several_blocks(size):
    assert gzip.decompress(around(b"start", b"x" * size, b"end")) == b"start" + b"x" * size + b"end"


def test_it_is_one_member_and_ends_where_it_ends():
    engine = zlib.decompressobj(31)
    engine.decompress(around(b"a" * 1000, b"b" * 1000, b"c") + b"next")
    assert (engine.eof, engine.unused_data) == (True, b"next")
