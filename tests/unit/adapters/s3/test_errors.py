"""Errors of an S3 server in plain words."""

import asyncio
from datetime import timedelta

import pytest
from obstore.exceptions import GenericError

from trotline.adapters.s3.errors import cause, refusal_hint
from trotline.adapters.s3.object_store import S3Objects
from trotline.adapters.s3.s3_url import address_of
from trotline.config import backends
from trotline.errors import ArchiveDenies, ArchiveUnreachable
from trotline.testing.archive_contract import capture


async def said(endpoint):
    archive = backends.open_archive(f"s3://pages/x?endpoint={endpoint}", "w")
    with pytest.raises(ArchiveUnreachable) as failed:
        await archive.write([capture(1)])
    return failed.value.what


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-the-test")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "the connection was closed"),
        (b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\n\r\n", "HTTP 503"),
        (
            b"HTTP/1.1 500 No\r\ncontent-length: 59\r\n\r\n"
            b"<Error><Code>Full</Code><Message>no room</Message></Error>   ",
            "Full: no room",
        ),
    ],
)
async def test_a_real_server_that_fails(answer, words):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert await said(endpoint) == f"s3://pages/x at {endpoint} is unreachable: {words}"


async def test_credentials_that_a_server_refuses_are_no_outage():
    body = b"<Error><Code>SignatureDoesNotMatch</Code><Message>wrong key</Message></Error>"

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        archive = backends.open_archive(f"s3://pages/x?endpoint={endpoint}", "w")
        with pytest.raises(ArchiveDenies) as failed:
            await archive.write([capture(1)])
    assert failed.value.what == f"s3://pages/x at {endpoint} refuses us: SignatureDoesNotMatch: wrong key"
    assert "AWS_SECRET_ACCESS_KEY" in failed.value.hint


async def test_a_host_that_is_not_there():
    assert await said("http://no-such-host.invalid:9000") == (
        "s3://pages/x at http://no-such-host.invalid:9000 is unreachable: its host name is not known (DNS)"
    )


async def test_missing_credentials_are_not_the_endpoints_fault(monkeypatch):
    said = (
        "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 3.8ms"
        " - Server returned non-2xx status code: 403 Forbidden: denied\n\nDebug source:\nGeneric"
    )

    async def no_role(*_, **__):
        raise GenericError(said)

    monkeypatch.setattr("obstore.put_async", no_role)
    archive = backends.open_archive("s3://pages/x?endpoint=http://127.0.0.1:9", "w")
    with pytest.raises(ArchiveUnreachable) as failed:
        await archive.write([capture(1)])
    assert failed.value.what == "s3://pages/x at http://127.0.0.1:9 was not asked: no credentials were found"
    assert "AWS_ACCESS_KEY_ID" in failed.value.hint and "bucket" not in failed.value.hint


async def test_a_server_that_hangs_is_noticed_soon_for_what_is_small(monkeypatch):
    monkeypatch.setattr("trotline.adapters.s3.object_store._SMALL_REQUEST", timedelta(seconds=0.3))
    monkeypatch.setattr("trotline.adapters.s3.object_store._RETRY", timedelta(seconds=0.1))
    silence = asyncio.Event()

    async def serve(reader, writer):
        await silence.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        objects = S3Objects(address_of(f"s3://pages/x?endpoint={endpoint}"))
        small = [objects.check(), objects.put("a", b"x"), objects.get("a", 0, 10), objects.size_of("a")]
        async with asyncio.timeout(20):
            failed = await asyncio.gather(*small, objects.delete(["a"]), return_exceptions=True)
        silence.set()
    assert {str(error.what) for error in failed} == {f"s3://pages/x at {endpoint} is unreachable: no answer in time"}


def test_an_error_of_another_kind_is_short():
    text = "Generic S3 error: Error performing PUT http://h/x in 2s, after 2 retries  - odd\n\nDebug source:\nx"
    assert cause(text) == "odd"


def test_a_clock_that_is_wrong_is_not_taken_for_wrong_credentials():
    said = "<Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the server's time"
    assert "clock" in refusal_hint(said) and "AWS" not in refusal_hint(said)
    assert "AWS_SECRET_ACCESS_KEY" in refusal_hint("<Code>SignatureDoesNotMatch</Code>")
