"""Behind a reverse proxy: whose address counts; and requests for headers only."""

import pytest

from tests.unit.web.conftest import OPERATE, VIEW, Client, Folder, Serving
from trotline.commands.web import proxy_networks
from trotline.errors import SettingsError
from trotline.model.secret import Secret
from trotline.web.forwarded_for import Trusted


@pytest.mark.parametrize(
    ("remote", "headers", "client"),
    [
        ("10.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.7, 10.0.0.9"], "203.0.113.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.7, _hidden"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.7:4711"], "203.0.113.7"),
        ("10.0.0.1", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("::ffff:10.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        ("203.0.113.9", ["127.0.0.1"], "203.0.113.9"),
        ("", ["203.0.113.7"], ""),
    ],
)
def test_only_what_a_trusted_proxy_has_seen_is_believed(remote: str, headers: list[str], client: str) -> None:
    assert Trusted(["10.0.0.0/24"]).client(remote, headers) == client


def test_without_a_trusted_proxy_the_header_is_ignored() -> None:
    assert Trusted().client("127.0.0.1", ["203.0.113.7"]) == "127.0.0.1"


@pytest.mark.parametrize("bad", ["proxy.example", "10.0.0.1/24", "0.0.0.0/0", "::/0", "10.0.0.300"])
def test_a_proxy_that_cannot_be_trusted_is_refused(bad: str) -> None:
    with pytest.raises(SettingsError, match="--trust-proxy"):
        proxy_networks([bad])


async def test_clients_behind_a_trusted_proxy_have_a_limit_of_their_own(serving: Serving, folder: Folder) -> None:
    client = await serving(folder.settings, view=Secret(VIEW), operate=Secret(OPERATE), trust_proxies=("127.0.0.1",))

    async def wrong(address: str) -> int:
        headers = {"X-Forwarded-For": f"198.51.100.1, {address}"}
        return (await client.get("/api/v1/jobs", token="w" * 40, headers=headers)).status

    assert [await wrong("203.0.113.7") for _ in range(6)] == [401] * 5 + [429]
    assert await wrong("203.0.113.8") == 401


async def test_the_header_of_any_other_client_moves_no_limit(guarded: Client) -> None:
    answers = [
        await guarded.get("/api/v1/jobs", token="w" * 40, headers={"X-Forwarded-For": f"203.0.113.{number}"})
        for number in range(6)
    ]
    assert [answer.status for answer in answers] == [401] * 5 + [429]


async def test_a_request_for_headers_is_answered_as_the_page_without_its_body(guarded: Client, folder: Folder) -> None:
    for path in ("/", f"/jobs/{folder.job}", "/api/v1/jobs", f"/api/v1/jobs/{folder.job}/events", "/metrics"):
        head = await guarded.call("HEAD", path, token=VIEW)
        assert (head.status, head.body) == (200, b""), path
        assert "Content-Security-Policy" in head.headers
    page = await guarded.get("/api/v1/jobs", token=VIEW)
    head = await guarded.call("HEAD", "/api/v1/jobs", token=VIEW)
    assert head.headers["Content-Type"] == page.headers["Content-Type"]
    assert (await guarded.call("HEAD", "/api/v1/jobs")).status == 401
    assert (await guarded.call("HEAD", "/jobs/none-1", token=VIEW)).status == 404
    assert (await guarded.call("HEAD", f"/api/v1/jobs/{folder.job}/pause", token=OPERATE)).status == 405
