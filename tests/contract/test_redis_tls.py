"""What goes to a server by rediss:// is never readable on the way; and the wrong scheme is named."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.contract.tls_redis import HANDSHAKE, PASSWORD, Relay, alone, clustered, watched

from trotline.adapters.redis.connect import connect, listener
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.server_calls import Server
from trotline.adapters.redis.wakeups import Wakeups
from trotline.config.backends import open_jobs
from trotline.errors import FrontierUnreachable
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract import BRISK, task
from trotline.testing.redis_server import redis
from trotline.testing.torture.certificates import Authority

PLACES = {"one server": alone, "cluster": clustered, "sentinel": watched}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("redis-tls"))


@pytest.fixture(params=PLACES)
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, authority: Authority
) -> AsyncIterator[tuple[str, list[Relay]]]:
    """What follows the scheme, and the relays before the servers."""
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(PLACES[request.param](tmp_path, authority))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("named", ["by the URL", "by the system"])
async def test_every_connection_begins_with_a_handshake_and_brings_news(
    place: tuple[str, list[Relay]], named: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest, relays = place
    if named == "by the system":
        monkeypatch.setenv("SSL_CERT_FILE", authority.path("ca.pem"))
        url = f"rediss{rest}"
    else:
        url = f"rediss{rest}?ca={authority.path('ca.pem')}"
    jobs = RedisJobs(connect(url))
    job = await jobs.start("tls", BRISK)
    await jobs.close()
    worker, feeder = redis_client(connect(url), job), redis_client(connect(url), job)
    try:
        waiting = asyncio.create_task(worker.lease("w", 1, wait=30.0))
        await worker._wakeups.listen(10.0)
        assert worker._wakeups.listening, "the listener did not get through"
        await feeder.put([task("https://shop.example/1")])
        assert len(await waiting) == 1
    finally:
        await worker.close()
        await feeder.close()

    for relay in relays:
        assert relay.sent, "nobody came by"
        assert {sent[0] for sent in relay.sent if sent} == {HANDSHAKE}
        assert not any(PASSWORD.encode() in sent for sent in relay.sent)


async def test_a_listener_hears_what_is_published(place: tuple[str, list[Relay]], authority: Authority) -> None:
    client = connect(f"rediss{place[0]}?ca={authority.path('ca.pem')}")
    news = Wakeups(lambda: listener(client), ["trotline:news"])
    try:
        await client.initialize()
        await news.listen(10.0)
        assert news.listening
        await client.execute_command("PUBLISH", "trotline:news", "")
        async with asyncio.timeout(10.0):
            await news.wait(10.0)
    finally:
        await news.close()
        await Server(client).close()


async def test_a_port_without_tls_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Such a server waits for the rest of what it takes for a command.
    monkeypatch.setitem(connect.__globals__, "_CONNECT", 0.3)
    with redis() as plain, pytest.raises(FrontierUnreachable) as refused:
        await open_jobs(f"rediss://127.0.0.1:{plain.port}/0")
    assert "TLS" in refused.value.what
    assert "redis://" in str(refused.value.hint)


async def test_a_port_that_wants_tls_is_named(tmp_path: Path, authority: Authority) -> None:
    async with alone(tmp_path, authority) as (rest, _):
        with pytest.raises(FrontierUnreachable) as refused:
            await open_jobs(f"redis{rest}")
    assert "TLS" in str(refused.value.hint)
    assert "rediss://" in str(refused.value.hint)
    assert PASSWORD not in str(refused.value)


async def test_a_certificate_that_nobody_vouches_for_is_named(tmp_path: Path, authority: Authority) -> None:
    async with alone(tmp_path, authority) as (rest, _):
        with pytest.raises(FrontierUnreachable) as refused:
            await open_jobs(f"rediss{rest}")
    assert "certificate" in refused.value.what
    assert "?ca=FILE" in str(refused.value.hint)
