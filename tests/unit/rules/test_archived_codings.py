"""Which bodies are archived as they came."""

import gzip

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
    assert not is_one_member(b"", 0)
