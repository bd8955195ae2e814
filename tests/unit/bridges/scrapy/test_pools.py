"""The proxy pools of a Scrapy process."""

from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from trotline.bridges.scrapy.download_handlers import DownloadHandlers
from trotline.bridges.scrapy.pools import PRIVATE, Pools
from trotline.config.http_proxy_list import FeedResult, ListFeed
from trotline.errors import SettingsError
from trotline.model.lease import Lease
from trotline.model.outcome import Snooze
from trotline.model.proxy import Proxy
from trotline.model.proxy_pool import lane_of
from trotline.model.task import Task


def pools(folder: Path, table: str, **more: Any) -> Pools:
    file = folder / "proxies.toml"
    file.write_text(f"[pools.dc]\n{table}\n")
    file.chmod(0o600)
    return Pools(str(file), Spider("shop"), "dc", DownloadHandlers.of(Settings()), **more)


def test_a_list_at_a_private_address_names_the_setting_of_a_project(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"10\.255\.0\.1 is not a public address: private\n") as error:
        pools(tmp_path, 'url = "https://10.255.0.1/list"')
    assert error.value.hint == 'To allow it, in the settings: TROTLINE_ALLOW = ["10.255.0.1"]'


def test_other_errors_of_the_file_are_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        pools(tmp_path, "size = 3")
    assert "TROTLINE_ALLOW" not in error.value.hint


def listed(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str, **more: Any) -> Pools:
    """A pool of a list over HTTP."""
    monkeypatch.setattr(ListFeed, "first", lambda self: FeedResult(text="\n".join(lines)))
    return pools(folder, 'url = "https://lists.example/proxies"', **more)


def ways(found: Pools) -> list[str]:
    """The hosts of the proxies that are used, and why others are not."""
    book = found._book
    leases = [
        Lease(
            Task(url="http://a.example/", route="parse", lane=lane_of("a.example", "dc")),
            1,
            0.0,
            0.0,
            0.0,
            0.0,
            member=one.id,
        )
        for one in book.pool("dc").members
    ]
    said = map(found.way, leases)
    return sorted(way.host if isinstance(way, Proxy) else way.why for way in said if isinstance(way, Proxy | Snooze))


PUBLIC = "http://93.184.216.34:3128"


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8080", "10.1.2.3:80", "169.254.169.254:80", "localhost:80", "93.184.216.34:6379"]
)
def test_the_author_of_a_list_chooses_no_address_of_this_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    assert ways(listed(tmp_path, monkeypatch, PUBLIC, f"http://{address}")) == ["93.184.216.34", PRIVATE]


def test_private_addresses_of_a_list_can_be_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("http://10.1.2.3:80", "http://localhost:80")
    found = listed(tmp_path, monkeypatch, *lines, allow=("10.1.0.0/16", "localhost"))
    assert ways(found) == ["10.1.2.3", "localhost"]
    with pytest.raises(SettingsError, match="their addresses are not allowed") as error:
        listed(tmp_path, monkeypatch, *lines)
    assert "TROTLINE_ALLOW" in error.value.hint


def test_the_operator_s_own_proxies_may_be_private(tmp_path: Path) -> None:
    assert ways(pools(tmp_path, 'proxies = ["http://127.0.0.1:3128"]')) == ["127.0.0.1"]
