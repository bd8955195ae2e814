"""Which bodies are archived as they came."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.archived_codings import is_gzip, is_one_member


@pytest.mark.parametrize(
    ("values", "is_one"),
    [
        (["gzip"], True),
        ([], False),
        (["gzip", "gzip"], False),
        (["gzip", "br"], False),
        (["gzip, br"], False),
        # Other programs that read WARC files do not know these names.
        (["x-gzip"], False),
        (["GZIP"], False),
    ],
)
def test_gzip_is_the_only_coding_and_has_its_usual_name(values, is_one):
    headers = [("vary", "gzip"), *(("content-encoding", value) for value in values)]
    assert is_gzip(headers) is is_one


@given(st.binary(min_size=1), st.binary(min_size=1), st.integers(1, 8))
def test_what_is_more_than_one_member_is_seen_by_its_end(body, more, zeros):
    packed = gzip.compress(body)
    assert is_one_member(packed, len(body))
    assert not is_one_member(packed + gzip.compress(more), len(body + more))
    assert not is_one_member(packed + gzip.compress(b""), len(body))
    assert not is_one_member(packed + bytes(zeros), len(body))
    assert not is_one_member(gzip.compress(b"") + packed, len(body))
    assert not is_one_member(b"", 0)


@pytest.mark.parametrize("flag", [0x20, 0x40, 0x80, 0xE0])
def test_a_head_with_reserved_bits_is_not_archived_as_it_came(flag):
    packed = bytearray(gzip.compress(b"page"))
    packed[3] |= flag
    assert not is_one_member(bytes(packed), 4)


def test_a_head_may_have_a_name_a_comment_and_its_own_checksum():
    packed = gzip.compress(b"page")
    head = packed[:3] + b"\x1e" + packed[4:10] + b"\x02\x00ab" + b"name\0" + b"a comment\0"
    checksum = (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    assert is_one_member(head + checksum + packed[10:], 4)
    assert not is_one_member(head + b"\0\0" + packed[10:], 4)
    # Others would read on and on before the page begins.
    long = packed[:3] + b"\x08" + packed[4:10] + b"n" * 70_000 + b"\0"
    assert not is_one_member(long + packed[10:], 4)
