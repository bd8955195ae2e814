"""Messages about alerts against real servers that fail, hang, redirect and refuse; and with several senders."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.contract.conftest import SqliteFileBench
from tests.contract.redis_servers import RedisBench
from tests.e2e.alert_receivers import HttpReceiver, MailReceiver, http_receiver, mail_receiver
from tests.e2e.alert_rigs import Rig

from trotline.adapters.alerts import http_post
from trotline.adapters.alerts.mail import Mail
from trotline.adapters.alerts.slack import Slack
from trotline.adapters.alerts.webhook import Webhook
from trotline.errors import AlertNotDelivered
from trotline.model.alert import Alert, AlertMessage, AlertState, Severity
from trotline.model.secret import Secret
from trotline.testing.torture.certificates import Authority

MINUTE = 60.0


@pytest.fixture
async def http() -> AsyncIterator[HttpReceiver]:
    async with http_receiver() as receiver:
        yield receiver


@pytest.fixture(params=[SqliteFileBench, RedisBench], ids=["sqlite", "redis"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    made = request.param()
    yield made
    await made.close()


@pytest.fixture
async def file_bench() -> AsyncIterator[SqliteFileBench]:
    made = SqliteFileBench()
    yield made
    await made.close()


def hook(http: HttpReceiver, bench: Any, name: str = "ops") -> Webhook:
    return Webhook(name, Secret(f"{http.url}/hook"), clock=bench.now)


async def stalled(rig: Rig) -> None:
    """A job in which nothing ends: with the next look, five minutes after the first, the alert fires and is sent."""
    await rig.put(10)
    await rig.after(5 * MINUTE)


def message(**more: Any) -> AlertMessage:
    alert = Alert(
        rule="coverage",
        object="<!channel> & co",
        state=AlertState.FIRING,
        severity=Severity.CRITICAL,
        text="price <b>fell</b>",
        next="trotline status shop-1",
        since=1_750_000_000.0,
        fired_at=1_750_000_000.0,
    )
    return AlertMessage(id="shop-1.1.1", job="shop-1", spider="shop", at=1_750_000_000.0, alerts=(alert,), **more)


async def test_several_coordinators_send_each_message_once(bench: Any, http: HttpReceiver) -> None:
    rig = Rig(bench, (hook(http, bench),))
    await rig.open(watchers=3)
    await stalled(rig)
    await rig.after(2 * MINUTE)
    await rig.visit(3)
    await rig.after(2 * MINUTE)
    await rig.close()

    assert http.seen() == ["stalled firing", "stalled resolved"]
    assert len(set(http.ids())) == 2


async def test_a_new_leader_repeats_nothing_and_reports_the_end(bench: Any, http: HttpReceiver) -> None:
    rig = Rig(bench, (hook(http, bench),))
    await rig.open()
    await stalled(rig)
    await rig.after(2 * MINUTE)
    [first] = rig.watchers
    rig.watchers.clear()
    second = await rig.join()
    await rig.after(5 * MINUTE)
    assert http.seen() == ["stalled firing"]
    assert [event for event, _ in first.events] == ["alert.raised", "alert.sent"]
    assert [event for event, _ in second.events] == ["alert.continues"]
    await rig.visit(3)
    await rig.after(2 * MINUTE)
    await rig.close()

    assert http.seen() == ["stalled firing", "stalled resolved"]


async def test_a_leader_that_dies_in_mid_delivery_is_followed_by_one_with_the_same_id(
    bench: Any, http: HttpReceiver
) -> None:
    rig = Rig(bench, (hook(http, bench),))
    await rig.open()
    await stalled(rig)
    http.held = asyncio.Event()
    await rig.pass_time(30.0)
    [first] = rig.watchers
    await first.look()
    async with asyncio.timeout(10.0):
        while not http.posts:  # noqa: ASYNC110 - it is delivered in the background
            await asyncio.sleep(0.01)
    # It dies with its request under way, and says nothing more.
    await first.watch.close()
    http.held.set()
    http.held = None
    rig.watchers.clear()
    await rig.join()
    await rig.pass_time(20.0)
    await rig.watchers[0].look()
    assert len(http.posts) == 1, "it may still be delivered by the first"
    await rig.pass_time(41.0)
    await rig.watchers[0].look()
    await rig.watchers[0].watch.drain()
    await rig.after(3 * MINUTE)
    await rig.close()

    assert http.seen() == ["stalled firing"] * 2
    assert len(set(http.ids())) == 1, "the receiver knows that it is the same message"


async def test_a_receiver_that_fails_is_tried_five_times_and_then_said_so(
    file_bench: SqliteFileBench, http: HttpReceiver
) -> None:
    http.answers = [lambda: web.Response(status=500)] * 5
    rig = Rig(file_bench, (hook(http, file_bench),))
    await rig.open()
    await rig.put(10)

    async def look() -> None:
        await rig.pass_time(30.0)
        await rig.watchers[0].look()
        await rig.watchers[0].watch.delivered()

    for _ in range(40):
        await look()
    events = rig.watchers[0].events
    await rig.close()

    assert len(http.posts) == 5
    assert len(set(http.ids())) == 1
    assert [event for event, _ in events] == ["alert.raised", "alert.undelivered", "alert.dropped"]
    assert "127.0.0.1 answered 500" in events[-1][1]
    assert "/hook" not in "".join(text for _, text in events), "the path may be a secret"


async def test_retry_after_is_obeyed(file_bench: SqliteFileBench, http: HttpReceiver) -> None:
    http.answers = [lambda: web.Response(status=429, headers={"Retry-After": "300"})]
    rig = Rig(file_bench, (hook(http, file_bench),))
    await rig.open()
    await rig.put(10)
    times = []
    for _ in range(30):
        await rig.pass_time(30.0)
        before = len(http.posts)
        await rig.watchers[0].look()
        await rig.watchers[0].watch.delivered()
        if len(http.posts) > before:
            times.append(file_bench.now())
    await rig.close()

    assert len(times) == 2
    assert times[1] - times[0] == 300.0


async def test_a_slow_receiver_does_not_delay_the_next_look(file_bench: SqliteFileBench, http: HttpReceiver) -> None:
    rig = Rig(file_bench, (hook(http, file_bench),))
    await rig.open()
    await stalled(rig)
    http.held = asyncio.Event()
    await rig.pass_time(30.0)
    async with asyncio.timeout(5.0):
        await rig.watchers[0].look()
        await rig.watchers[0].look()
    http.held.set()
    await rig.watchers[0].watch.drain()
    await rig.close()
    assert http.seen() == ["stalled firing"]


async def test_a_job_that_ends_sends_what_is_to_be_said_at_once(
    file_bench: SqliteFileBench, http: HttpReceiver
) -> None:
    rig = Rig(file_bench, (hook(http, file_bench),))
    await rig.open()
    await stalled(rig)
    await rig.after(MINUTE)
    await rig.visit(10, links_known=1)
    await rig.client.seal()
    await rig.client.lease("w", 1)
    await rig.after(5.0)
    await rig.close()
    assert http.seen() == ["stalled firing", "stalled resolved", "empty firing"]


async def test_a_redirect_is_not_followed(http: HttpReceiver) -> None:
    http.answers = [lambda: web.Response(status=302, headers={"Location": "/elsewhere"})]
    with pytest.raises(AlertNotDelivered, match="answered with a redirect"):
        await Webhook("ops", Secret(f"{http.url}/hook")).send(message())
    assert [post.path for post in http.posts] == ["/hook"]


async def test_a_receiver_that_hangs_is_given_up(http: HttpReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_post, "TIMEOUT", 0.2)
    http.held = asyncio.Event()
    with pytest.raises(AlertNotDelivered, match="did not answer within"):
        await Webhook("ops", Secret(f"{http.url}/hook")).send(message())
    http.held.set()


async def test_nobody_listening_is_said_without_the_address() -> None:
    with pytest.raises(AlertNotDelivered) as failed:
        await Webhook("ops", Secret("http://127.0.0.1:9/hook/with-a-secret-token")).send(message())
    assert "with-a-secret-token" not in str(failed.value)


async def test_a_webhook_is_signed(http: HttpReceiver) -> None:
    key = "0123456789abcdef-key"
    await Webhook("ops", Secret(f"{http.url}/hook"), key=Secret(key), clock=lambda: 1_750_000_123.9).send(message())
    [post] = http.posts
    at, signed = (part.partition("=")[2] for part in post.headers["Trotline-Signature"].split(","))
    assert at == "1750000123"
    assert signed == hmac.new(key.encode(), f"{at}.".encode() + post.body, hashlib.sha256).hexdigest()
    assert post.json["version"] == "4"
    assert post.json["messageId"] == post.headers["Trotline-Message-Id"] == "shop-1.1.1"
    [alert] = post.json["alerts"]
    assert alert["labels"] == {
        "alertname": "field coverage fell",
        "rule": "coverage",
        "crawl": "shop-1",
        "spider": "shop",
        "severity": "critical",
        "object": "<!channel> & co",
    }
    assert (alert["startsAt"], alert["endsAt"]) == ("2025-06-15T15:06:40.000Z", "0001-01-01T00:00:00Z")


async def test_slack_gets_no_commands_out_of_a_page(http: HttpReceiver) -> None:
    await Slack("chat", Secret(f"{http.url}/slack")).send(message(more=3))
    [post] = http.posts
    said = post.body.decode()
    assert "<!channel>" not in said
    assert "&lt;!channel&gt; &amp; co" in said
    assert post.json["text"] == "shop-1: field coverage fell (critical), and 3 more"
    assert [block["type"] for block in post.json["blocks"]] == ["section"] * 3


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def mail(receiver: MailReceiver, authority: Authority | None = None, **more: Any) -> Mail:
    context = None if authority is None else authority.trust()
    server = f"smtp://localhost:{receiver.port}"
    return Mail("post", server, ["a@example.org", "b@example.org"], "t@example.org", context=context, **more)


async def test_mail_goes_through_starttls_with_a_login(authority: Authority) -> None:
    receiver = MailReceiver()
    options = {"tls_context": authority.server(), "require_starttls": True, "authenticator": receiver.authenticate}
    async with mail_receiver(receiver, auth_required=True, **options):
        password = Secret("right password")
        await mail(receiver, authority, user="trotline", password=password).send(message())
        with pytest.raises(AlertNotDelivered, match="535"):
            await mail(receiver, authority, user="trotline", password=Secret("wrong password")).send(message())
    [got] = receiver.mails
    assert got["To"] == "a@example.org, b@example.org"
    assert got["Subject"] == "shop-1: field coverage fell (critical)"
    assert got.get_content_type() == "text/plain"
    assert {(b"trotline", b"right password"), (b"trotline", b"wrong password")} == set(receiver.logins)


async def test_a_certificate_that_nobody_vouches_for_is_refused(authority: Authority) -> None:
    async with mail_receiver(tls_context=authority.server(), require_starttls=True) as receiver:
        with pytest.raises(AlertNotDelivered, match="CERTIFICATE_VERIFY_FAILED"):
            await mail(receiver).send(message())
    assert receiver.mails == []


async def test_a_mail_server_that_refuses_is_quoted(tmp_path: Path) -> None:
    async with mail_receiver() as receiver:
        receiver.refuse = "452 too many mails"
        with pytest.raises(AlertNotDelivered, match="452 too many mails"):
            await mail(receiver).send(message())
