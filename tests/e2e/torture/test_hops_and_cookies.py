"""B36 to B44: redirects, cookies and headers of strangers."""

import pytest
from tests.e2e.torture.conftest import Rack

from trotline.model.answer import FailureKind
from trotline.model.verdict import Kind

SECRETS = (("Authorization", "Bearer canary"), ("Cookie", "sid=canary"))


@pytest.mark.parametrize("name", ["self", "loop", "hops/12", "grow"])
async def test_b36_redirects_end_after_ten_hops(rack: Rack, name: str) -> None:
    _, seen = await rack.follow(f"/redirect/{name}")
    assert (seen.verdict.kind, seen.verdict.why, seen.verdict.final) == (Kind.REFUSED, "more than 10 redirects", True)
    assert len(rack.server.requests) == 11


async def test_b36_ten_hops_are_followed(rack: Rack) -> None:
    last, seen = await rack.follow("/redirect/hops/10")
    assert (last.hops, seen.verdict.kind) == (10, Kind.OK)


@pytest.mark.parametrize("name", ["empty", "spaces", "none"])
async def test_b36_a_redirect_to_nowhere_is_gone(rack: Rack, name: str) -> None:
    verdict = (await rack.visit(f"/redirect/{name}")).verdict
    assert (verdict.kind, verdict.final) == (Kind.GONE, True)


@pytest.mark.parametrize("name", ["utf-8", "latin-1"])
async def test_b36_a_location_of_odd_bytes_is_encoded_once(rack: Rack, name: str) -> None:
    last, seen = await rack.follow(f"/redirect/{name}")
    assert seen.verdict.kind is Kind.OK
    assert last.url.endswith("/body/whole?q=%C3%A4")


async def test_b36_of_two_locations_the_first_counts(rack: Rack) -> None:
    assert (await rack.visit("/redirect/two")).verdict.location.endswith("/body/whole")


@pytest.mark.parametrize("name", ["refresh", "meta"])
async def test_b36_a_refresh_is_not_followed(rack: Rack, name: str) -> None:
    _, seen = await rack.follow(f"/redirect/{name}")
    assert seen.verdict.kind is Kind.OK
    assert len(rack.server.requests) == 1


async def test_b36_a_location_over_the_limit_is_refused(rack: Rack) -> None:
    verdict = (await rack.visit("/redirect/long")).verdict
    assert (verdict.kind, verdict.why) == (Kind.REFUSED, "redirect to a URL over 2083 characters (302)")


async def test_b37_credentials_stay_with_their_origin(rack: Rack) -> None:
    last, seen = await rack.follow(rack.task("/redirect/elsewhere/body/echo", headers=(*SECRETS, ("X-Plain", "yes"))))
    assert seen.verdict.kind is Kind.OK
    assert "127.0.0.2" in last.url
    [told] = rack.server.asked("/body/echo")
    assert b"canary" not in told.head
    assert told.header("x-plain") == "yes"
    assert b"canary" in rack.server.requests[0].head


async def test_b37_within_an_origin_they_travel_on(rack: Rack) -> None:
    await rack.follow(rack.task("/redirect/here/body/echo", headers=SECRETS))
    assert b"Bearer canary" in rack.server.asked("/body/echo")[0].head


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (301, "PUT", "PUT"),
    ],
)
async def test_b38_a_redirected_method_is_that_of_the_fetch_standard(
    rack: Rack, status: int, method: str, becomes: str
) -> None:
    await rack.follow(rack.task(f"/redirect/here/body/echo?status={status}", method=method, body=b"a=1"))
    [told] = rack.server.asked("/body/echo")
    assert (told.method, told.body) == (becomes, b"" if becomes == "GET" else b"a=1")


@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_b38_a_body_never_crosses_origins_on_301_to_303(rack: Rack, status: int, method: str) -> None:
    await rack.follow(rack.task(f"/redirect/elsewhere/body/echo?status={status}", method=method, body=b"a=canary"))
    [told] = rack.server.asked("/body/echo")
    assert (told.method, told.body) == ("GET", b"")


@pytest.mark.parametrize("status", [307, 308])
async def test_b38_a_redirect_that_would_send_the_body_elsewhere_is_refused(rack: Rack, status: int) -> None:
    task = rack.task(f"/redirect/elsewhere/body/echo?status={status}", method="POST", body=b"a=canary")
    _, seen = await rack.follow(task)
    assert (seen.verdict.kind, seen.verdict.final) == (Kind.REFUSED, True)
    assert rack.server.asked("/body/echo") == []


@pytest.mark.parametrize("name", ["file", "data", "javascript", "ftp", "no-host"])
async def test_b39_a_redirect_to_what_is_not_the_web_is_refused(rack: Rack, name: str) -> None:
    verdict = (await rack.visit(f"/redirect/{name}")).verdict
    assert (verdict.kind, verdict.final) == (Kind.REFUSED, True)
    assert "not http(s)" in verdict.why


async def test_b39_a_redirect_to_another_services_port_is_refused(rack: Rack) -> None:
    _, seen = await rack.follow("/redirect/ssh-port")
    seen.failed(FailureKind.GUARD, Kind.REFUSED, "22")


async def test_b40_the_body_of_a_redirect_is_not_undone(rack: Rack) -> None:
    page = (await rack.visit("/redirect/bomb")).page
    assert (page.status, page.body) == (302, b"")
    assert page.wire_bytes <= 128 * 1024


async def test_b40_nor_read_to_its_end(rack: Rack) -> None:
    page = (await rack.visit("/redirect/endless")).page
    assert (page.status, page.body) == (302, b"")


@pytest.mark.parametrize("name", ["top-level", "public-suffix", "other-domain", "prefixes", "largish", "odd"])
async def test_b41_cookies_that_reach_too_far_or_make_no_sense_are_ignored(rack: Rack, name: str) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert (await rack.visit(rack.task(f"/cookie/{name}", host))).page.body == b"set"
        await rack.visit(rack.task("/body/echo", host))
    for told in rack.server.asked("/body/echo"):
        assert "evil=1" not in (told.header("cookie") or "")
        assert "xxx" not in (told.header("cookie") or "")


@pytest.mark.parametrize("name", ["large", "ten-thousand"])
async def test_b41_an_answer_that_is_all_cookies_is_refused(rack: Rack, name: str) -> None:
    (await rack.visit(f"/cookie/{name}")).failed(FailureKind.TOO_LARGE, Kind.REFUSED, "head ")


async def test_b41_fifty_cookies_of_a_host_are_kept(rack: Rack) -> None:
    await rack.visit("/cookie/good")
    for number in range(3):
        await rack.visit(f"/cookie/more/{number}")
    await rack.visit("/cookie/good")
    await rack.visit("/body/echo")
    sent = rack.server.asked("/body/echo")[0].header("cookie") or ""
    assert len(sent.split(";")) == 50
    assert "good=1" in sent


async def test_b42_two_sites_and_two_sessions_have_nothing_in_common(rack: Rack) -> None:
    await rack.visit(rack.task("/cookie/good", session="anna"))
    for host, session in (("127.0.0.1", "anna"), ("127.0.0.2", "anna"), ("127.0.0.1", "bert"), ("127.0.0.1", "")):
        await rack.visit(rack.task("/body/echo", host, session=session))
    assert [told.header("cookie") for told in rack.server.asked("/body/echo")] == ["good=1", None, None, None]


async def test_b43_headers_with_hostile_values_are_data(rack: Rack) -> None:
    _, seen = await rack.follow("/head/hostile")
    assert seen.page.header("referrer-policy") == "os.system"
    assert seen.page.header("content-disposition") == "attachment; filename=../../etc/cron.d/x"
    assert len(rack.server.requests) == 1


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\0", "a\ud800", "\udfff"])
async def test_b44_a_line_break_in_a_header_is_refused_before_anything_is_sent(rack: Rack, value: str) -> None:
    seen = await rack.visit(rack.task("/body/echo", headers=(("X-Scraped", value),)))
    seen.failed(FailureKind.GUARD, Kind.REFUSED, "X-Scraped")
    assert rack.server.requests == []
