"""Content encodings over real sockets: undone, refused beyond a limit, or noted."""

import gzip
import hashlib
import zlib

import brotli
import pytest
import zstandard
from tests.e2e.fetch_once import answered, failure_of
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.model.answer import FailureKind
from trotline.model.limits import MIB, Limits

PAGE = b"<html>" + b"some text, again and again. " * 500


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def _raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", gzip.compress(PAGE)),
        ("GZIP", gzip.compress(PAGE)),
        ("x-gzip", gzip.compress(PAGE)),
        ("gzip", gzip.compress(PAGE[:100]) + gzip.compress(PAGE[100:])),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", _raw_deflate(PAGE)),
        ("br", brotli.compress(PAGE)),
        ("zstd", _zstd(PAGE)),
        ("zstd", _zstd(PAGE[:100]) + _zstd(PAGE[100:])),
        ("gzip, br", brotli.compress(gzip.compress(PAGE))),
        ("identity", PAGE),
        ("identity, gzip", gzip.compress(PAGE)),
        ("", PAGE),
    ],
)
async def test_encodings_are_undone(name: str, body: bytes) -> None:
    outcome = await answered(ok(body, f"Content-Encoding: {name}"))
    assert (PAGE, len(body), ()) == (outcome.body, outcome.wire_bytes, outcome.notes)


@pytest.mark.parametrize(
    ("header", "body", "is_kept"),
    [
        ("Content-Encoding: gzip", gzip.compress(PAGE), True),
        ("Content-Encoding: gzip\r\nContent-Encoding: gzip", gzip.compress(PAGE), False),
        ("Content-Encoding: x-gzip", gzip.compress(PAGE), False),
        ("Content-Encoding: gzip", gzip.compress(PAGE) + b"more", False),
        ("Content-Encoding: gzip", PAGE, False),
        ("Content-Encoding: br", brotli.compress(PAGE), False),
        ("Content-Encoding: identity, gzip", gzip.compress(PAGE), False),
        ("X-Plain: yes", PAGE, False),
    ],
)
async def test_where_pages_are_archived_a_gzip_coded_body_is_there_as_it_came(header, body, is_kept) -> None:
    async with site(ok(body, header)) as there, fetcher(keeps_wire=True) as keeping:
        # The first one opens the connection, the second one goes the short way.
        for _ in range(2):
            answer = await keeping.fetch(task(there.url()))
            assert (answer.body, answer.wire) == (PAGE, body if is_kept else b"")
        start = await keeping.fetch_start(task(there.url()), 100_000)
        assert (start.body, start.wire) == (PAGE, b"")
    assert (await answered(ok(body, header))).wire == b""


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
async def test_what_is_declared_compressed_but_plain_is_read_with_a_note(name: str) -> None:
    outcome = await answered(ok(PAGE, f"Content-Encoding: {name}"))
    assert (PAGE, (f"declared {name}, was plain",)) == (outcome.body, outcome.notes)


@pytest.mark.parametrize(("name", "body"), [("gzip", b"\1\2\3 not gzip"), ("gzip, gzip", gzip.compress(PAGE))])
async def test_what_is_declared_compressed_but_is_neither_that_nor_plain_is_a_protocol_failure(
    name: str, body: bytes
) -> None:
    failure = await failure_of(ok(body, f"Content-Encoding: {name}"))
    assert (failure.trouble, failure.why) == (FailureKind.PROTOCOL, "declared gzip, but is not gzip")


@pytest.mark.parametrize(
    ("name", "whole"), [("gzip", gzip.compress(PAGE)), ("br", brotli.compress(PAGE)), ("deflate", zlib.compress(PAGE))]
)
async def test_a_compressed_body_cut_short_is_kept_and_noted(name: str, whole: bytes) -> None:
    outcome = await answered(ok(whole[: len(whole) - 5], f"Content-Encoding: {name}"))
    assert PAGE.startswith(outcome.body)
    assert outcome.notes == ("compressed body cut short",)


async def test_a_compressed_body_with_a_wrong_sum_is_a_protocol_failure() -> None:
    damaged = gzip.compress(PAGE)[:-8] + b"\1" * 8
    failure = await failure_of(ok(damaged, "Content-Encoding: gzip"))
    assert failure.trouble is FailureKind.PROTOCOL
    assert "gzip" in failure.why


async def test_an_unknown_encoding_is_left_alone_and_noted() -> None:
    outcome = await answered(ok(PAGE, "Content-Encoding: utf-8"))
    assert outcome.body == PAGE
    assert "unknown content-encoding" in outcome.notes[0]


BOMB = b"\0" * 40 * MIB


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", gzip.compress(BOMB)),
        ("deflate", zlib.compress(BOMB)),
        ("br", brotli.compress(BOMB, quality=3)),
        ("zstd", _zstd(BOMB)),
        ("gzip, gzip", gzip.compress(gzip.compress(BOMB))),
    ],
)
async def test_a_bomb_stops_at_the_limit_that_is_named(name: str, body: bytes) -> None:
    failure = await failure_of(ok(body, f"Content-Encoding: {name}"))
    assert failure.trouble is FailureKind.TOO_LARGE
    assert "100:1" in failure.why
    failure = await failure_of(ok(body, f"Content-Encoding: {name}"), Limits(expansion=10**9, decoded_body=2 * MIB))
    assert failure.why == "decoded body over 2 MiB"


async def test_a_page_that_expands_a_lot_but_stays_small_is_fine() -> None:
    outcome = await answered(ok(gzip.compress(b"\0" * MIB), "Content-Encoding: gzip"))
    assert len(outcome.body) == MIB


async def test_a_long_chain_of_encodings_is_refused() -> None:
    failure = await failure_of(ok(PAGE, "Content-Encoding: gzip, gzip, gzip"))
    assert failure.trouble is FailureKind.TOO_LARGE
    assert "content-encodings: 3" in failure.why


async def test_a_thousand_members_are_refused() -> None:
    failure = await failure_of(ok(gzip.compress(b"x") * 1000, "Content-Encoding: gzip"))
    assert (failure.trouble, failure.why) == (FailureKind.TOO_LARGE, "more than 64 gzip members")


async def test_a_zstd_window_beyond_reason_is_refused() -> None:
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    ).compressobj()
    body = wide.compress(b"abc" * 99_999) + wide.flush()
    failure = await failure_of(ok(body, "Content-Encoding: zstd"))
    assert (failure.trouble, failure.why) == (FailureKind.TOO_LARGE, "zstd window over 8 MiB")


async def test_a_large_body_is_undone_like_a_small_one() -> None:
    page = b"".join(hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(30_000))
    outcome = await answered(ok(gzip.compress(page, 1), "Content-Encoding: gzip"))
    assert outcome.wire_bytes > 256 * 1024
    assert outcome.body == page
