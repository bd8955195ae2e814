"""API gateways: the page is the target's, what concerns key and plan is the gateway's, and the key is seen nowhere."""

import logging

import pytest
from tests.e2e.raw_site import ok, site, task
from tests.e2e.ways import KEY, ApiServer, pooled, without_way

from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.secret import Secret
from trotline.rules.secret_scope import SecretScope
from trotline.rules.verdicts import judge
from trotline.testing.ban_site import BanRules, BanSite

FREELY = BanRules(rate=1e6, burst=1e6)


async def test_the_answer_is_the_targets() -> None:
    async with BanSite(FREELY) as shop, ApiServer() as api, pooled() as fetch:
        url = shop.url("/a?b=c&d=%20#")
        answer = await fetch.fetch(task(url), api.way(parameters=(("country_code", "us"),)))
    assert isinstance(answer, Answer), answer
    assert (answer.url, answer.status, answer.body) == (url, 200, b"<h1>/a?b=c&d=%20</h1>")
    assert (answer.proxy, answer.address) == (f"127.0.0.1:{api.port}", "")
    assert api.asked[0][0] == url


@pytest.mark.parametrize("header", ["", "sa-statuscode"])
async def test_a_404_of_the_target_is_a_404(header: str) -> None:
    async with BanSite(FREELY, page=lambda _: None) as shop, ApiServer(status_header=header) as api, pooled() as fetch:
        answer = await fetch.fetch(task(shop.url()), api.way())
    assert isinstance(answer, Answer) and answer.status == 404


async def test_with_a_status_header_a_ban_of_the_target_is_told_from_one_of_the_gateway() -> None:
    async with (
        site(ok(b"no", "Content-Type: text/html", status="403 Forbidden")) as shop,
        ApiServer(status_header="sa-statuscode") as api,
        pooled() as fetch,
    ):
        answer = await fetch.fetch(task(shop.url()), api.way())
        assert isinstance(answer, Answer) and answer.status == 403
        api.own = (200, b"Thanks for being our customer")
        own = await fetch.fetch(task(shop.url()), api.way())
        assert isinstance(own, Failure) and own.trouble is FailureKind.PROXY, "no status header: not the target's"


@pytest.mark.parametrize(
    ("status", "why"),
    [(401, "key or credits refused"), (402, "payment required"), (403, "key or credits refused"),
     (429, "concurrency of the plan reached"), (500, "gave up on the page")],
)  # fmt: skip
async def test_what_the_gateway_says_for_itself_is_its_failure(
    status: int, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with BanSite(FREELY) as shop, ApiServer() as api, pooled() as fetch:
        api.own = (status, f"bad key {KEY}".encode())
        asked = task(shop.url())
        outcomes = [await fetch.fetch(asked, api.way()) for _ in range(2)]
    for outcome in outcomes:
        gave_up = status == 500
        expected = FailureKind.PROXY_REFUSED if gave_up else FailureKind.PROXY
        assert isinstance(outcome, Failure) and outcome.trouble is expected
        assert outcome.why == f"gateway 127.0.0.1:{api.port}: {why} ({status})"
        verdict = judge(asked, outcome, limits=Limits(), now=0.0)
        assert verdict.of_proxy
        assert verdict.free is not gave_up, "a page that it can never fetch must end some time"
        assert KEY not in repr(outcome)
    assert KEY not in caplog.text
    assert sum("proxy.failed" in record.message for record in caplog.records) == 1
    assert shop.connections == 0


async def test_a_wrong_key_is_a_failure_of_the_gateway_and_not_shown() -> None:
    async with BanSite(FREELY) as shop, ApiServer() as api, pooled() as fetch:
        way = api.way(key=Secret("wr0ng-key-of-ours"))
        outcome = await fetch.fetch(task(shop.url()), way)
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY
    assert "wr0ng" not in f"{outcome!r}{way!r}{fetch!r}"
    without_way(way)


async def test_a_gateway_that_hangs_or_is_down_is_its_own_failure() -> None:
    async with BanSite(FREELY) as shop, ApiServer() as api, pooled() as fetch:
        api.own = (0, b"")
        hung = await fetch.fetch(task(shop.url()), api.way(total=0.5))
        down = await fetch.fetch(task(shop.url()), api.way(endpoint="http://127.0.0.1:9/"))
    for outcome in (hung, down):
        assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
        assert outcome.url == shop.url()
        assert KEY not in outcome.why
    assert shop.connections == 0


async def test_private_targets_are_not_passed_to_a_gateway() -> None:
    async with ApiServer() as api, pooled(allow_private=False) as fetch:
        for url in ("http://127.0.0.1/", "http://localhost:8080/", "https://169.254.169.254/", "http://[::1]/",
                    "http://metadata.google.internal/", "ftp://shop.example/", "http://u:p@shop.example/"):  # fmt: skip
            refused = await fetch.fetch(task(url), api.way())
            assert isinstance(refused, Failure) and refused.trouble is FailureKind.GUARD, refused
        missing = await fetch.fetch(task("http://no-such-host.invalid/"), api.way())
        assert isinstance(missing, Failure) and missing.trouble in (FailureKind.NO_SUCH_HOST, FailureKind.DNS)
        assert api.asked == []


async def test_secrets_and_cookies_do_not_reach_the_gateway_unless_it_is_said() -> None:
    secrets, scope = {"X-Token": Secret("t0ken-of-ours")}, SecretScope(frozenset({"127.0.0.1"}))
    async with (
        site(ok(b"x", "Content-Type: text/html", "Set-Cookie: sid=1; Path=/")) as shop,
        ApiServer() as api,
        pooled(secret_headers=secrets, secret_scope=scope, cookies={"own": Secret("c00kie-of-ours")}) as fetch,
    ):
        asked = task(shop.url(), headers=(("X-Own", "1"),), session="anna")
        for options in ({}, {}, {"send_headers": True}):
            assert isinstance(await fetch.fetch(asked, api.way(**options)), Answer)
    first, second, third = (headers for _, headers in api.asked)
    for headers in (first, second):
        assert not {"X-Token", "Cookie", "X-Own"} & set(headers)
    assert (third["X-Own"], third["X-Token"]) == ("1", "t0ken-of-ours")
    assert "Cookie" not in third, "cookies of one site would reach another"


async def test_size_and_type_limits_are_the_pages() -> None:
    async with BanSite(FREELY, page=lambda _: b"x" * 5_000) as shop, ApiServer() as api:
        async with pooled(Limits(wire_body=1_000)) as fetch:
            large = await fetch.fetch(task(shop.url()), api.way())
            start = await fetch.fetch_start(task(shop.url()), 100, api.way())
        async with pooled(types=("application/pdf",)) as fetch:
            unwanted = await fetch.fetch(task(shop.url()), api.way())
    assert isinstance(large, Failure) and large.trouble is FailureKind.TOO_LARGE
    assert isinstance(start, Answer) and len(start.body) == 100
    assert isinstance(unwanted, Failure) and unwanted.trouble is FailureKind.TYPE
