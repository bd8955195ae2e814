"""Undoing Content-Encoding, whatever the bytes."""

import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from trotline.adapters.http.encodings import BadEncoding, OverLimit, codings, room_for, undo
from trotline.model.limits import MIB, Limits

PACK = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
NAMES = st.sampled_from(sorted(PACK))


@given(st.binary(max_size=2000), st.lists(NAMES, max_size=2))
def test_what_was_packed_comes_out_as_it_went_in(body: bytes, chain: list[str]) -> None:
    packed = body
    for name in reversed(chain):
        packed = PACK[name](packed)
    assert undo(packed, chain, MIB) == (body, ())


@given(st.binary(min_size=1, max_size=300), st.lists(NAMES, min_size=1, max_size=2), st.integers(1, 1000))
def test_no_bytes_are_too_strange(body: bytes, chain: list[str], room: int) -> None:
    try:
        undo(body, chain, room)
    except (OverLimit, BadEncoding) as error:
        assert str(error)


@given(st.binary(min_size=20, max_size=300), NAMES, st.data())
def test_damage_is_noticed_or_harmless(body: bytes, name: str, data: st.DataObject) -> None:
    packed = bytearray(PACK[name](body))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    try:
        undo(bytes(packed), [name], MIB)
    except (OverLimit, BadEncoding) as error:
        assert str(error)


@pytest.mark.parametrize("name", sorted(PACK))
def test_exactly_as_much_as_there_is_room_for_fits(name: str) -> None:
    packed = PACK[name](b"x" * 5000)
    assert undo(packed, [name], 5000) == (b"x" * 5000, ())
    with pytest.raises(OverLimit) as over:
        undo(packed, [name], 4999)
    assert over.value.start(4999) == b"x" * 4999


def test_room_grows_with_what_came_up_to_the_limit() -> None:
    limits = Limits()
    assert room_for(10, limits) == MIB
    assert room_for(MIB // 10, limits) == 100 * (MIB // 10)
    assert room_for(10 * MIB, limits) == 32 * MIB


@pytest.mark.parametrize(
    ("header", "chain"),
    [("gzip", ["gzip"]), (" GZip , BR ", ["br", "gzip"]), ("identity", []), ("", []), ("none, gzip,", ["gzip"])],
)
def test_codings_are_undone_last_one_first(header: str, chain: list[str]) -> None:
    assert codings(header, Limits()) == chain
