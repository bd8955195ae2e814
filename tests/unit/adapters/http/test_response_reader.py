"""Bodies that are kept as they came: gzip that was whole, and nothing else."""

import asyncio
import gzip
import zlib

import pytest
from multidict import CIMultiDict

from trotline.adapters.http import response_reader
from trotline.model.limits import MIB, Limits

PAGE = b"<html>" + b"some text, again and again. " * 500
PACKED = gzip.compress(PAGE)


class Arrived:
    """A body in pieces."""

    def __init__(self, data, piece=1000):
        self.left, self.piece = data, piece

    async def readany(self):
        got, self.left = self.left[: self.piece], self.left[self.piece :]
        return got

    def at_eof(self):
        return not self.left


class Answered:
    method, status = "GET", 200

    def __init__(self, body, coding="gzip", **headers):
        self.headers = CIMultiDict({"Content-Encoding": coding, **headers})
        self.content = Arrived(body)

    def close(self):
        self.content.left = b""


def read(body, *, coding="gzip", cut_at=None, limits=None, keeps_gzip=True, **headers):
    async def reading():
        answered = Answered(body, coding, **headers)
        return await response_reader.body(answered, limits or Limits(), cut_at, asyncio.Lock(), keeps_gzip=keeps_gzip)

    return asyncio.run(reading())


def test_a_whole_gzip_body_is_kept_as_it_came_beside_the_page():
    found = read(PACKED)
    assert found == (PAGE, len(PACKED), (), PACKED)


def test_a_large_one_which_is_decoded_in_a_thread_is_kept_too():
    page = b"".join(zlib.crc32(b"%d" % number).to_bytes(4, "big") for number in range(MIB // 4))
    packed = gzip.compress(page, 1)
    assert len(packed) > MIB // 2
    found = read(packed)
    assert (found.plain, found.wire) == (page, packed)


def test_nobody_asked_for_it():
    assert read(PACKED, keeps_gzip=False) == (PAGE, len(PACKED), (), b"")


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        (PAGE, PAGE),
        (PACKED[:-9], None),
        (PACKED + b"more", PAGE),
        (PACKED + b"\0" * 3, PAGE),
        (gzip.compress(PAGE[:100]) + gzip.compress(PAGE[100:]), PAGE),
        (gzip.compress(b""), b""),
        (b"", b""),
    ],
    ids=["plain", "cut", "followed", "padded", "two members", "empty page", "empty"],
)
def test_what_is_odd_is_not_kept(body, plain):
    found = read(body)
    assert found.wire == b""
    assert found.plain == plain if plain is not None else PAGE.startswith(found.plain)


def test_what_was_cut_at_a_limit_is_not_kept():
    assert read(PACKED, cut_at=len(PACKED) - 1).wire == b""
    large = read(gzip.compress(b"x" * 3 * MIB), cut_at=2 * MIB)
    assert large.notes
    assert large.wire == b""


def test_the_body_of_a_redirect_is_not_kept():
    answered = Answered(PACKED, Location="/elsewhere")
    answered.status = 302
    found = asyncio.run(response_reader.body(answered, Limits(), None, asyncio.Lock(), keeps_gzip=True))
    assert (found.plain, found.wire) == (b"", b"")
