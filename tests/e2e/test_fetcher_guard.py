"""The guard of the fetcher against real sockets: what is never dialled."""

import socket

import pytest
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits

GUARDED = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://127.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://user:secret@127.0.0.1:{port}/",
    "http://example.com\\@127.0.0.1:{port}/",
    "http://①②⑦.0.0.1:{port}/",
]


@pytest.mark.parametrize("url", GUARDED)
async def test_private_addresses_are_never_dialled(url: str) -> None:
    async with site(ok()) as there, fetcher(allow_private=False) as ours:
        outcome = await ours.fetch(task(url.format(port=there.port)))
    assert isinstance(outcome, Failure), outcome
    assert outcome.trouble is FailureKind.GUARD, outcome
    assert there.connections == 0
    assert "secret" not in outcome.why


async def test_an_origin_is_not_judged_by_another_that_is_spelt_nearly_the_same() -> None:
    async with fetcher(Limits(connect=0.2)) as ours:
        near = await ours.fetch(task("http://127.0.0.1:229"))
        blocked = await ours.fetch(task("http://127.0.0.1:22"))
    assert isinstance(near, Failure)
    assert isinstance(blocked, Failure)
    assert (near.trouble, blocked.trouble) == (FailureKind.CONNECT, FailureKind.GUARD)


async def test_the_guard_says_how_to_open_it() -> None:
    async with fetcher(allow_private=False) as ours:
        outcome = await ours.fetch(task("http://localhost:8000/"))
    assert isinstance(outcome, Failure)
    assert "--allow-private" in outcome.why


async def test_one_private_address_refuses_the_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed(*_args: object, **_options: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)) for host in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", mixed)
    async with fetcher(allow_private=False) as ours:
        outcome = await ours.fetch(task("http://mixed.example/"))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.GUARD
    assert "10.0.0.1" in outcome.why


async def test_an_allowed_host_may_be_private_and_only_by_its_name() -> None:
    async with site(ok()) as there, fetcher(allow_private=False, allow=["localhost"]) as ours:
        by_name = await ours.fetch(task(there.url(host="localhost")))
        by_number = await ours.fetch(task(there.url()))
    assert isinstance(by_name, Answer), by_name
    assert isinstance(by_number, Failure)
    assert by_number.trouble is FailureKind.GUARD


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://127.0.0.1:22/",
        "http://127.0.0.1:6379/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/a\r\nX-Evil: 1",
        "http://[evil.example]/",
        "",
    ],
)
async def test_what_is_not_a_web_address_is_never_dialled(url: str) -> None:
    async with fetcher() as ours:
        outcome = await ours.fetch(task(url))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.GUARD, outcome
