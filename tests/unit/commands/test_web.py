"""Where `trotline web` may listen, and which tokens it takes."""

from pathlib import Path

import pytest

from trotline.commands.web import WebPlan, address, checked, is_loopback, token
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.model.secret import Secret

EVERYWHERE = "0.0.0.0"  # noqa: S104 - never bound
TOKEN = "t" * 40


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:8321", ("127.0.0.1", 8321)),
        ("8321", ("127.0.0.1", 8321)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
        (":80", (EVERYWHERE, 80)),
        ("crawl.example:65535", ("crawl.example", 65535)),
    ],
)
def test_addresses(text: str, place: tuple[str, int]) -> None:
    assert place == address(text)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.0.0.1:", "x:65536", "x:99999999", "[::1:80", "a:b:80", "x:-1", "x:١"]
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--listen"):
        address(text)


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), (EVERYWHERE, False), ("::", False), ("10.0.0.1", False)],
)
def test_only_loopback_addresses_need_no_token(host: str, own: bool) -> None:
    assert own is is_loopback(host)
    plan = WebPlan(settings=Settings(), host=host)
    if own:
        assert checked(plan) is plan
    else:
        with pytest.raises(SettingsError, match="a token is needed"):
            checked(plan)
        checked(WebPlan(settings=Settings(), host=host, view=Secret(TOKEN)))


def test_a_name_that_does_not_resolve_is_not_loopback() -> None:
    assert not is_loopback("no-such-host.invalid")


def test_each_role_has_a_token_of_its_own() -> None:
    with pytest.raises(SettingsError, match="the same token"):
        checked(WebPlan(settings=Settings(), view=Secret(TOKEN), operate=Secret(TOKEN)))


def test_tokens_come_by_reference_and_are_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert token("--token-view", None) is None
    for text, fits in ((TOKEN, True), ("t" * 31, False), ("t" * 32 + " x", False), ("é" * 40, False)):
        monkeypatch.setenv("WEB_TOKEN", text)
        if fits:
            found = token("--token-view", "env:WEB_TOKEN")
            assert found is not None and found.reveal() == text
        else:
            with pytest.raises(SettingsError) as refused:
                token("--token-view", "env:WEB_TOKEN")
            assert text not in str(refused.value)
    with pytest.raises(SettingsError, match="is not file:PATH or env:NAME"):
        token("--token-view", TOKEN)
