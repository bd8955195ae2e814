"""Streams: the newest snapshot, one computation for all viewers, limits, and an end for those who do not read."""

import asyncio
import json
import socket
import time

import pytest

from tests.unit.web.conftest import OPERATE, VIEW, Client, Folder, Serving
from trotline.config import backends
from trotline.model.job import State
from trotline.model.secret import Secret
from trotline.web import server_sent_events

EVENTS = "/api/v1/jobs/shop-1/events"


async def snapshots(response, number: int) -> list[dict]:
    """The data of so many events."""
    found = []
    async with asyncio.timeout(20):
        async for line in response.content:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
                if len(found) == number:
                    break
    return found


async def test_a_change_is_seen_within_two_seconds_and_nothing_is_sent_without_one(
    server: Client, folder: Folder
) -> None:
    async with server.session.get(server.url + EVENTS) as response:
        [first] = await snapshots(response, 1)
        assert (5, 1, 1, 1) == tuple(first["job"][name] for name in ("waiting", "leased", "done", "dead"))
        jobs = await backends.open_jobs(folder.settings.frontier)
        [job] = await jobs.all()
        await jobs.close()
        opened = await backends.open_frontier(folder.settings.frontier, job)
        try:
            await opened.console.steer(State.PAUSED)
        finally:
            await opened.close()
        changed = time.monotonic()
        while True:
            [now] = await snapshots(response, 1)
            if now["job"]["state"] == "paused":
                break
        assert time.monotonic() - changed < 3


async def test_many_viewers_cost_one_computation_a_second(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = server.site.snapshots.of

    async def counted(job: str):
        nonlocal looks
        looks += 1
        return await look(job)

    monkeypatch.setattr(server.site.snapshots, "of", counted)
    monkeypatch.setattr(server_sent_events, "EVERY", 0.2)
    responses = [await server.session.get(server.url + EVENTS) for _ in range(30)]
    for response in responses:
        await snapshots(response, 1)
    before, began = looks, time.monotonic()
    await asyncio.sleep(1.0)
    assert looks - before <= (time.monotonic() - began) / 0.2 + 2
    for response in responses:
        response.close()


async def test_streams_are_limited_in_all_and_by_session(
    serving: Serving, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_sent_events, "MOST_STREAMS", 5)
    monkeypatch.setattr(server_sent_events, "FOR_OPERATORS", 1)
    monkeypatch.setattr(server_sent_events, "MOST_OF_A_SESSION", 2)
    client = await serving(folder.settings, view=Secret(VIEW), operate=Secret(OPERATE))
    await client.call("POST", "/login", data={"token": VIEW}, headers={"Origin": client.url})
    open_ = [await client.session.get(client.url + EVENTS) for _ in range(3)]
    assert [200, 200, 429] == [response.status for response in open_]
    token = {"Authorization": f"Bearer {VIEW}"}
    open_ += [await client.session.get(client.url + EVENTS, headers=token) for _ in range(3)]
    assert [200, 200, 503] == [response.status for response in open_[3:]], "one is left for operators"
    token = {"Authorization": f"Bearer {OPERATE}"}
    open_ += [await client.session.get(client.url + EVENTS, headers=token) for _ in range(2)]
    assert [200, 503] == [response.status for response in open_[6:]]
    for response in open_:
        response.close()
    # Places become free when viewers leave.
    async with asyncio.timeout(10):
        status = 0
        while status != 200:
            async with client.session.get(client.url + EVENTS) as response:
                status = response.status


async def test_a_stream_ends_with_its_session(serving: Serving, folder: Folder) -> None:
    client = await serving(folder.settings, view=Secret(VIEW))
    await client.call("POST", "/login", data={"token": VIEW}, headers={"Origin": client.url})
    async with client.session.get(client.url + EVENTS) as response:
        await snapshots(response, 1)
        await client.call("POST", "/logout", headers={"Origin": client.url})
        async with asyncio.timeout(15):
            await response.content.read()


async def test_a_viewer_that_does_not_read_is_dropped(
    server: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And costs the others nothing."""
    monkeypatch.setattr(server_sent_events, "BLOCKED", 0.3)
    monkeypatch.setattr(server_sent_events, "EVERY", 0.02)
    number = 0

    async def large():
        nonlocal number
        number += 1
        return {"number": number, "filler": "x" * 200_000}

    monkeypatch.setattr(server.site.snapshots, "of", None)
    deaf = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server.site.feeds._feeds["jobs"] = server_sent_events._Feed(large)
    deaf.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with server.session.get(server.url + "/api/v1/events") as response:
        await snapshots(response, 20)
        async with asyncio.timeout(10):
            while server.site.feeds.streams > 1:
                await snapshots(response, 1)
    deaf.close()
    assert "Traceback" not in caplog.text


async def test_a_stream_of_an_unknown_job_is_a_404_and_one_that_fails_says_so(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 404 == (await server.get("/api/v1/jobs/nope/events")).status

    async def fail(_: str):
        raise RuntimeError("secret")

    monkeypatch.setattr(server.site.snapshots, "of", fail)
    async with server.session.get(server.url + EVENTS) as response:
        [data] = await snapshots(response, 1)
    assert "unexpected error" in data["what"] and "secret" not in str(data)


async def test_streams_end_at_once_when_the_server_ends(serving: Serving, folder: Folder) -> None:
    client = await serving(folder.settings)
    response = await client.session.get(client.url + EVENTS)
    await snapshots(response, 1)
    began = time.monotonic()
    context, *_ = serving._stack[-1]
    await context.__aexit__(None, None, None)
    assert time.monotonic() - began < 2
    serving._stack.pop()
    await client.session.close()
    await client.site.index.close()
