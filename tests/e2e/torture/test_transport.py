"""B21 to B30: what goes wrong between the sockets and the body."""

import pytest
from tests.e2e.torture.conftest import Rack

from trotline.model.answer import FailureKind
from trotline.model.limits import MIB, Limits
from trotline.model.verdict import Kind


@pytest.mark.parametrize(
    "name", ["none", "http-0.9", "http-9.9", "http-2", "ssh", "binary", "unfinished", "no-end", "no-colon"]
)
async def test_b21_what_is_not_http_is_a_protocol_failure_that_may_be_tried_again(rack: Rack, name: str) -> None:
    seen = await rack.visit(f"/head/{name}")
    seen.failed(FailureKind.PROTOCOL, Kind.BROKEN)
    assert not seen.verdict.final


@pytest.mark.parametrize("name", ["status-000", "status-99", "status-1000", "status-word"])
async def test_b21_a_status_that_is_none_is_a_protocol_failure(rack: Rack, name: str) -> None:
    (await rack.visit(f"/head/{name}")).failed(FailureKind.PROTOCOL, Kind.BROKEN)


async def test_b21_another_protocol_is_not_a_page(rack: Rack) -> None:
    assert (await rack.visit("/head/switch")).verdict.kind is Kind.GONE


@pytest.mark.parametrize(
    "path",
    [
        "/head/giant",
        "/head/many",
        "/head/together",
        "/head/wide-status",
        "/head/endless",
        "/head/endless-line",
        "/chunk/huge-trailers",
        "/chunk/many-trailers",
        "/chunk/extension",
    ],
)
async def test_b22_headers_and_trailers_without_end_are_cut_at_the_limit(rack: Rack, path: str) -> None:
    seen = await rack.visit(path)
    many = path in ("/head/many", "/head/endless", "/chunk/many-trailers")
    seen.failed(
        FailureKind.TOO_LARGE, Kind.REFUSED, "more than 128 fields" if many else "over the limit of 65536 bytes"
    )
    assert seen.verdict.final


async def test_b23_nul_in_a_header_spoils_the_answer(rack: Rack) -> None:
    (await rack.visit("/head/nul")).failed(FailureKind.PROTOCOL, Kind.BROKEN)
    (await rack.visit("/head/control-name")).failed(FailureKind.PROTOCOL, Kind.BROKEN)


async def test_b23_a_header_with_control_characters_is_dropped_and_noted(rack: Rack) -> None:
    if rack.differs("/head/control"):
        (await rack.visit("/head/control")).failed(FailureKind.PROTOCOL, Kind.BROKEN)
        return
    page = (await rack.visit("/head/control")).page
    assert page.header("x-evil") is None
    assert page.notes == ("header x-evil dropped: control characters",)
    assert page.body == b"hello"


async def test_b23_a_lone_carriage_return_makes_no_second_header(rack: Rack) -> None:
    seen = await rack.visit("/head/injection")
    seen.failed(FailureKind.PROTOCOL, Kind.BROKEN)
    await rack.visit("/body/echo")
    assert rack.server.asked("/body/echo")[0].header("cookie") is None


@pytest.mark.parametrize(
    "path",
    [
        "/length/two",
        "/length/list",
        "/length/and-chunks",
        "/chunk/bad-size",
        "/chunk/negative",
        "/chunk/huge-size",
        "/chunk/no-crlf",
        "/chunk/bad-later",
    ],
)
async def test_b24_two_opinions_about_where_a_body_ends_are_a_protocol_failure(rack: Rack, path: str) -> None:
    if rack.differs(path):
        assert (await rack.visit(path)).page.body == b"hello"
    else:
        (await rack.visit(path)).failed(FailureKind.PROTOCOL, Kind.BROKEN)
    seen = await rack.visit("/body/whole")
    if rack.differs(path) and seen.verdict.once:
        # The server closed the connection after its answer: as a worker does.
        seen = await rack.visit("/body/whole")
    assert seen.verdict.kind is Kind.OK
    assert rack.server.connections == 2


@pytest.mark.parametrize(
    "path", ["/length/too-long", "/length/negative", "/length/huge", "/length/word", "/length/plus"]
)
async def test_b25_a_wrong_length_is_a_protocol_failure(rack: Rack, path: str) -> None:
    (await rack.visit(path)).failed(FailureKind.PROTOCOL, Kind.BROKEN)


async def test_b25_a_short_body_says_how_short(rack: Rack) -> None:
    (await rack.visit("/length/too-long")).failed(
        FailureKind.PROTOCOL, Kind.BROKEN, "incomplete body", "received 5 of 100"
    )


@pytest.mark.parametrize("path", ["/length/too-short", "/chunk/junk-after"])
async def test_b25_bytes_after_the_end_go_with_the_connection(rack: Rack, path: str) -> None:
    assert (await rack.visit(path)).page.body == b"hello"
    assert (await rack.visit("/body/whole")).verdict.kind is Kind.OK
    assert rack.server.connections == 2


async def test_b25_an_answer_that_nobody_asked_for_is_never_taken_for_the_next_one(rack: Rack) -> None:
    assert (await rack.visit("/body/twice")).page.body == b"first"
    assert b"second" not in (await rack.visit("/body/whole")).page.body
    assert (await rack.visit("/body/twice-later")).page.body == b"first"
    # The connection is idle now; the second answer arrives on it, and it is hung up.
    await rack.server.quiet()
    assert b"second" not in (await rack.visit("/body/whole")).page.body


@pytest.mark.parametrize("path", ["/body/endless", "/chunk/endless"])
async def test_b26_an_endless_body_is_cut_at_the_limit(rack: Rack, path: str) -> None:
    rack.limits = Limits(wire_body=MIB)
    (await rack.visit(path)).failed(FailureKind.TOO_LARGE, Kind.REFUSED, "body over 1 MiB")


async def test_b26_an_announced_body_over_the_limit_is_not_read(rack: Rack) -> None:
    (await rack.visit("/length/big")).failed(FailureKind.TOO_LARGE, Kind.REFUSED, "10 MiB (announced)")


@pytest.mark.parametrize(("path", "what"), [("/head/drip/0.02", "head"), ("/body/drip/0.02", "body")])
async def test_b27_a_drip_is_cut_by_the_minimum_rate(rack: Rack, path: str, what: str) -> None:
    seen = await rack.visit(path)
    if rack.differs(path.rpartition("/")[0]):
        seen.failed(FailureKind.TIMEOUT, Kind.UNREACHABLE, f"no answer within {rack.limits.first_byte:g} s")
    else:
        seen.failed(FailureKind.TOO_SLOW, Kind.UNREACHABLE, f"{what} under 1024 bytes a second")
    assert not seen.verdict.final
    assert seen.answer.timing.total < rack.limits.total / 2


async def test_b27_a_body_that_came_fast_and_then_stalls_is_cut_too(rack: Rack) -> None:
    seen = await rack.visit("/body/stall/512")
    seen.failed(FailureKind.TOO_SLOW, Kind.UNREACHABLE, "body under")
    assert seen.answer.timing.total < rack.limits.total / 2


async def test_b27_a_page_that_takes_long_but_comes_whole_is_a_page(rack: Rack) -> None:
    assert (await rack.visit("/line/late/0.05")).verdict.kind is Kind.OK
    assert (await rack.visit("/chunk/one-byte")).page.body == b"x" * 2000


@pytest.mark.parametrize("name", ["interim", "early-hints-flood"])
async def test_b28_interim_answers_without_end_are_cut_after_ten(rack: Rack, name: str) -> None:
    seen = await rack.visit(f"/head/{name}")
    if rack.differs(f"/head/{name}"):
        seen.failed(FailureKind.TIMEOUT, Kind.UNREACHABLE, f"no answer within {rack.limits.first_byte:g} s")
    else:
        seen.failed(FailureKind.PROTOCOL, Kind.BROKEN, "more than 10 interim answers")


async def test_b28_a_few_interim_answers_are_fine(rack: Rack) -> None:
    assert (await rack.visit("/head/early-hints")).page.body == b"hello"


async def test_b28_an_answer_after_an_interim_one_counts_whatever_follows_it(rack: Rack) -> None:
    assert (await rack.visit("/head/hints-and-nonsense")).page.body == b"hello"
    assert len(rack.server.requests) == 1


@pytest.mark.parametrize(("name", "kind"), [("no-content", Kind.OK), ("not-modified", Kind.UNCHANGED)])
async def test_b29_a_body_where_none_may_be_is_ignored_with_its_connection(rack: Rack, name: str, kind: Kind) -> None:
    seen = await rack.visit(rack.task(f"/body/{name}", headers=(("If-None-Match", '"v1"'),)))
    assert (seen.verdict.kind, seen.page.body) == (kind, b"")
    assert b"hello" not in (await rack.visit("/body/whole")).page.body
    assert rack.server.connections == 2


async def test_b29_a_304_that_nobody_asked_for_is_no_page(rack: Rack) -> None:
    verdict = (await rack.visit("/body/not-modified")).verdict
    assert (verdict.kind, verdict.final) == (Kind.BROKEN, False)


async def test_b29_a_head_request_with_a_body_is_ignored_with_its_connection(rack: Rack) -> None:
    seen = await rack.visit(rack.task("/body/whole", method="HEAD"))
    assert (seen.page.status, seen.page.body) == (200, b"")
    assert (await rack.visit("/body/nul")).page.body == b"<p>a\0b</p>"
    assert rack.server.connections == 2


@pytest.mark.parametrize("path", ["/body/reset", "/body/closed", "/chunk/unfinished", "/chunk/no-end"])
async def test_b30_a_line_that_breaks_in_the_body_is_half_a_page_and_tried_again(rack: Rack, path: str) -> None:
    seen = await rack.visit(path)
    seen.failed(FailureKind.PROTOCOL, Kind.BROKEN, *([] if rack.differs(path) else ["incomplete body"]))
    assert not seen.verdict.final


@pytest.mark.parametrize("name", ["dropped", "reset"])
async def test_b30_a_line_that_breaks_before_a_word_is_tried_again(rack: Rack, name: str) -> None:
    seen = await rack.visit(f"/line/{name}")
    assert seen.verdict.kind in (Kind.BROKEN, Kind.UNREACHABLE)
    assert not seen.verdict.final
