"""What the fetcher says to servers that speak TLS, and to those that speak HTTP/2."""

import asyncio
import shutil
import ssl
import subprocess

import pytest
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.model.answer import Answer, Failure, FailureKind
from trotline.testing.servers import missing


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server's side of TLS with a certificate that nobody vouches for."""
    folder = tmp_path_factory.mktemp("tls")
    if shutil.which("openssl") is None:
        missing("openssl is not there. Try: apt-get install openssl")
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            *made,
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


async def test_a_certificate_that_nobody_vouches_for_is_refused(self_signed: ssl.SSLContext) -> None:
    async with site(ok(), tls=self_signed) as there, fetcher() as ours:
        outcome = await ours.fetch(task(there.url(host="localhost").replace("http:", "https:")))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.TLS
    assert "self-signed" in outcome.why.replace("self signed", "self-signed")
    assert there.requests == []


PREFACE = b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00\x03\x7f\xff\xff\xff" * 3
"""What a server of HTTP/2 says first: its settings."""


@pytest.mark.parametrize(
    "frames",
    [PREFACE, PREFACE + b"\x00\x00\x08\x07" + b"\x00" * 13, PREFACE + b"\x00\x40\x00\x09\x00\x00\x00\x00\x01" * 2000],
    ids=["settings", "goaway", "continuation flood"],
)
async def test_b31_http_2_is_not_spoken_and_its_frames_are_no_answer(frames: bytes):
    async with site(frames) as server, fetcher() as client:
        answer = await client.fetch(task(server.url()))

    assert isinstance(answer, Failure)
    assert answer.trouble is FailureKind.PROTOCOL


async def test_b31_http_2_is_not_offered(self_signed: ssl.SSLContext):
    """Rapid resets, floods and tables that grow need a connection that speaks it."""
    spoken: list[str | None] = []

    async def note(_request: bytes, writer: asyncio.StreamWriter) -> None:
        spoken.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.write(ok())

    self_signed.set_alpn_protocols(["h2", "http/1.1"])
    async with site(note, tls=self_signed) as server, fetcher(insecure_hosts=["localhost"]) as client:
        answer = await client.fetch(task(f"https://localhost:{server.port}/"))

    assert isinstance(answer, Answer), answer
    assert spoken == ["http/1.1"]
