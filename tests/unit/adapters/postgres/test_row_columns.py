"""Records as columns: hosts, order, and what cannot be stored."""

import pytest

from trotline.adapters.postgres.row_columns import columns_of_rows, host_of, pieces, placed, signed
from trotline.testing.sink_contract import product


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://shop.example/p/1", "shop.example"),
        ("http://shop.example", "shop.example"),
        ("http://a/b", "a"),
        ("https://Shop.Example:8443/p?x=//y", "shop.example"),
        ("https://user:word@shop.example/p", "shop.example"),
        ("https://shop.example?x=1/2", "shop.example"),
        ("https://shop.example#a/b@c", "shop.example"),
        ("http://[2001:DB8::1]:80/p", "2001:db8::1"),
        ("", ""),
        ("shop.example/p", ""),
    ],
)
def test_the_host_of_a_url(url, host):
    assert host_of(url) == host


def test_rows_come_sorted_by_identity_and_know_their_place():
    rows, rejected = placed(
        [product("T2"), product("T1"), product("T3", what=object()), product("T1", seen_at=2_000.0)]
    )

    assert [(each.position, each.row.key) for each in rows] == [(3, "T1"), (0, "T2")]
    assert rejected.keys() == {2}
    assert columns_of_rows(rows)[2] == ["T1", "T2"]


@pytest.mark.parametrize(
    ("number", "kept"), [(0, 0), (-1, -1), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (2**64 - 1, -1)]
)
def test_fingerprints_fit_a_signed_number(number, kept):
    assert signed(number) == kept


def test_large_rows_go_in_pieces_and_none_is_lost():
    rows, _ = placed(
        [product(f"T{n}", text="x" * size) for n, size in enumerate([10, 3_000_000, 3_000_000, 9_000_000, 10])]
    )

    assert [len(part) for part in pieces(rows)] == [2, 1, 1, 1]
    assert [each for part in pieces(rows) for each in part] == rows
    assert pieces([]) == []
