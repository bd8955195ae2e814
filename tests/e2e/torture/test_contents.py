"""B34 and B45 to B52: what is in a body, and what its head says about it."""

import pytest
from tests.e2e.torture.conftest import Rack

from trotline.model.answer import FailureKind
from trotline.model.limits import MIB, Limits
from trotline.model.record_row import whole
from trotline.model.verdict import Kind
from trotline.rules.charset import decode
from trotline.testing.torture.bombs import KINDS


@pytest.mark.parametrize("name", ["cloudflare", "datadome", "imperva", "human", "captcha"])
async def test_b34_a_challenge_page_with_200_is_a_block(rack: Rack, name: str) -> None:
    verdict = (await rack.visit(f"/challenge/{name}")).verdict
    assert (verdict.kind, verdict.final) == (Kind.BLOCKED, False)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "zstd-window"])
async def test_b45_a_bomb_stops_at_a_limit_that_is_named(rack: Rack, kind: str) -> None:
    seen = await rack.visit(f"/bomb/{kind}/200")
    seen.failed(FailureKind.TOO_LARGE, Kind.REFUSED)
    assert "100:1" in seen.answer.why or "members" in seen.answer.why or "frames" in seen.answer.why


@pytest.mark.parametrize("kind", ["gzip", "br", "zstd", "gzip-gzip"])
async def test_b45_ten_gibibytes_stop_at_32_mebibytes(rack: Rack, kind: str) -> None:
    rack.limits = Limits(wire_body=64 * MIB, expansion=10**9)
    (await rack.visit(f"/bomb/{kind}/10240")).failed(FailureKind.TOO_LARGE, Kind.REFUSED, "decoded body over 32 MiB")


async def test_b46_a_chain_of_fifty_encodings_is_refused(rack: Rack) -> None:
    seen = await rack.visit("/packed/chain")
    seen.failed(FailureKind.TOO_LARGE, Kind.REFUSED, "content-encodings: 50, the limit is 2")


async def test_b46_a_thousand_members_are_refused(rack: Rack) -> None:
    (await rack.visit("/packed/members")).failed(FailureKind.TOO_LARGE, Kind.REFUSED, "more than 64 gzip members")


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("plain", "declared gzip, was plain"),
        ("plain-br", "declared br, was plain"),
        ("plain-zstd", "declared zstd, was plain"),
        ("truncated", "compressed body cut short"),
        ("junk", "bytes after the compressed body"),
        ("unknown", "unknown content-encoding 'pack200-gzip': left as it is"),
    ],
)
async def test_b47_an_encoding_that_is_harmlessly_wrong_is_read_with_a_note(rack: Rack, name: str, note: str) -> None:
    page = (await rack.visit(f"/packed/{name}")).page
    assert page.notes == (note,)
    assert page.body.startswith(b"<!doctype html>")


@pytest.mark.parametrize("name", ["bad-crc", "damaged", "other"])
async def test_b47_an_encoding_that_is_broken_is_tried_again(rack: Rack, name: str) -> None:
    seen = await rack.visit(f"/packed/{name}")
    seen.failed(FailureKind.PROTOCOL, Kind.BROKEN, "gzip")
    assert not seen.verdict.final


async def test_b47_gzip_that_nobody_declared_is_left_alone(rack: Rack) -> None:
    assert (await rack.visit("/packed/undeclared")).page.body[:2] == b"\x1f\x8b"


async def test_b48_a_zstd_window_of_8_gib_is_refused(rack: Rack) -> None:
    (await rack.visit("/bomb/zstd-window/1")).failed(FailureKind.TOO_LARGE, Kind.REFUSED, "zstd window over 8 MiB")


async def test_b48_a_zstd_frame_without_a_size_is_read_within_the_limits(rack: Rack) -> None:
    assert (await rack.visit("/bomb/zstd/1")).page.body == b"\0" * MIB


@pytest.mark.parametrize(
    ("name", "encoding", "words"),
    [
        ("header-lies", "windows-1252", "GrÃ¼ÃŸe"),
        ("meta-lies", "utf-8", "Grüße, Ελλάδα"),
        ("bom-wins", "utf-8", "Grüße, Ελλάδα"),
        ("unknown", "utf-8", "Grüße, Ελλάδα"),
        ("utf-7", "utf-8", "+ADw-script+AD4-"),
        ("utf-16", "utf-16le", "Grüße, Ελλάδα"),
        ("iso-2022-kr", "replacement", "\ufffd"),
        ("broken", "utf-8", "a\ufffd\ufffd\ufffd(b"),
        ("codec", "utf-8", "uryyb"),
        ("zip-codec", "utf-8", "<p>x"),
    ],
)
async def test_b49_charsets_are_decided_as_browsers_decide(rack: Rack, name: str, encoding: str, words: str) -> None:
    page = (await rack.visit(f"/charset/{name}")).page
    text, used = decode(page.body, page.header("content-type"))
    assert (used.lower(), words in text) == (encoding, True), (used, text)


async def test_b50_nul_bytes_come_through_and_what_is_stored_is_whole_text(rack: Rack) -> None:
    page = (await rack.visit("/body/nul")).page
    assert page.body == b"<p>a\0b</p>"
    whole(decode(page.body, None)[0] + "\ud800").encode()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("image", "image/png"),
        ("html-as-image", "image/png"),
        ("pdf", "application/pdf"),
        ("zip", "application/zip"),
        ("bytes", "application/octet-stream"),
        ("video", "video/mp4"),
    ],
)
async def test_b51_what_is_not_a_page_is_dropped_before_its_body(rack: Rack, name: str, kind: str) -> None:
    seen = await rack.visit(f"/type/{name}")
    seen.failed(FailureKind.TYPE, Kind.UNWANTED, f"content type '{kind}' is not wanted")
    assert seen.verdict.final


@pytest.mark.parametrize("name", ["none", "nonsense", "json", "feed", "upper", "image-as-html"])
async def test_b51_a_page_and_what_names_no_type_is_read(rack: Rack, name: str) -> None:
    assert (await rack.visit(f"/type/{name}")).verdict.kind is Kind.OK


async def test_b51_a_spider_may_read_something_else(rack: Rack) -> None:
    assert (await rack.visit("/type/pdf", types=("application/pdf",))).page.body.startswith(b"%PDF")
    (await rack.visit("/body/whole", types=("application/pdf",))).failed(FailureKind.TYPE, Kind.UNWANTED, "text/html")


async def test_b52_an_empty_200_is_no_success(rack: Rack) -> None:
    verdict = (await rack.visit("/body/empty")).verdict
    assert (verdict.kind, verdict.why, verdict.final) == (Kind.BROKEN, "200 with an empty body", False)
