"""The metrics endpoint on a real socket, with polite and other clients."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from trotline.adapters.prometheus import endpoint
from trotline.errors import SettingsError
from trotline.testing.servers import listen

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def free_port() -> int:
    [found] = listen(["127.0.0.1"])
    with found:
        return int(found.getsockname()[1])


@asynccontextmanager
async def serving(text: Callable[[], bytes] = lambda: b"up 1\n", host: str = "127.0.0.1") -> AsyncIterator[int]:
    port = free_port()
    async with endpoint.serving(host, port, text, CONTENT_TYPE):
        yield port


async def ask(port: int, line: str = "GET /metrics HTTP/1.1", host: str = "localhost", more: str = "") -> bytes:
    """The whole response: the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{line}\r\nHost: {host}\r\n{more}\r\n".encode())
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


async def test_metrics_are_served_and_the_connection_is_closed():
    async with serving() as port:
        response = await ask(port, more="Connection: keep-alive\r\n")
    head, _, body = response.partition(b"\r\n\r\n")
    assert status(response) == 200 and body == b"up 1\n"
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert b"connection: close" in head.lower() and b"nosniff" in head


async def test_containers_ask_whether_it_is_well():
    async with serving() as port:
        assert (await ask(port, "GET /healthz HTTP/1.1")).endswith(b"\r\n\r\nok\n")


async def test_a_process_that_cannot_work_is_alive_but_not_ready():
    said = ""
    port = free_port()
    async with endpoint.serving("127.0.0.1", port, bytes, CONTENT_TYPE, lambda: said):
        assert (await ask(port, "GET /readyz HTTP/1.1")).endswith(b"\r\n\r\nok\n")
        said = "frontier is unreachable: redis://user:hunter2@db:6379/0\r\nrefused"
        response = await ask(port, "GET /readyz HTTP/1.1")
        assert status(response) == 503 and b"degraded: frontier is unreachable" in response
        assert b"hunter2" not in response
        assert status(await ask(port, "GET /healthz HTTP/1.1")) == 200


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("GET / HTTP/1.1", 404),
        ("GET /metrics/../etc/passwd HTTP/1.1", 404),
        ("POST /metrics HTTP/1.1", 405),
        ("DELETE /healthz HTTP/1.1", 405),
        ("HEAD /metrics HTTP/1.1", 405),
        ("nonsense", 400),
        ("GET /" + "a" * 20_000 + " HTTP/1.1", 400),
    ],
)
async def test_nothing_else_is_served(line: str, expected: int):
    async with serving() as port:
        assert status(await ask(port, line)) == expected
        assert status(await ask(port)) == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.7", ""])
async def test_on_loopback_a_page_that_rebinds_its_name_gets_nothing(host: str):
    async with serving(lambda: b"secret 1\n") as port:
        response = await ask(port, host=host)
        assert status(response) == 421 and b"secret" not in response


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:99", "[::1]:99", "[::1]"])
async def test_the_names_of_this_machine_are_right(host: str):
    async with serving() as port:
        assert status(await ask(port, host=host)) == 200


async def test_on_another_address_every_name_is_right():
    async with serving(host="0.0.0.0") as port:  # noqa: S104 - what is tested
        assert status(await ask(port, host="worker-3.fleet.example")) == 200


async def test_a_client_that_says_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(endpoint, "LONGEST_CONNECTION", 0.2)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost:")
        assert await asyncio.wait_for(reader.read(), 5) in (b"",)
        writer.close()


async def test_many_clients_at_once_do_not_stop_the_next_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(endpoint, "LONGEST_CONNECTION", 60.0)
    async with serving() as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * endpoint.MOST_CONNECTIONS)]
        try:
            ends = {asyncio.create_task(reader.read()) for reader, _ in idle}
            kept = ends
            while len(kept) > endpoint.MOST_CONNECTIONS:
                _, kept = await asyncio.wait(kept, return_when=asyncio.FIRST_COMPLETED)
            assert len(kept) == endpoint.MOST_CONNECTIONS
        finally:
            for _, writer in idle:
                writer.close()
        await asyncio.gather(*ends)
        # The server may hear of the next one first, and refuse it.
        answer = b""
        while not answer:
            with suppress(ConnectionError):
                answer = await ask(port)
            await asyncio.sleep(0.01)
        assert status(answer) == 200


async def test_a_figure_that_cannot_be_rendered_is_an_error_and_not_the_end(caplog: pytest.LogCaptureFixture):
    def broken() -> bytes:
        raise RuntimeError("a secret detail")

    async with serving(broken) as port:
        response = await ask(port)
        assert status(response) == 500 and b"secret" not in response
        assert status(await ask(port, "GET /healthz HTTP/1.1")) == 200
    assert "metrics.failed" in caplog.text


async def test_a_port_that_is_taken_is_named():
    async with serving() as port:
        with pytest.raises(SettingsError) as refused:
            async with endpoint.serving("127.0.0.1", port, lambda: b"", CONTENT_TYPE):
                raise AssertionError("it is taken")
    assert str(port) in refused.value.what and "--metrics" in refused.value.hint
