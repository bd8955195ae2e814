"""`ca` of a pool: checked when the file is read, for https proxies only, and refused where it has no effect."""

from pathlib import Path

import pytest

from trotline.config.proxy_pools import load
from trotline.errors import SettingsError
from trotline.model.proxy import Proxy
from trotline.testing.torture.certificates import Authority

LANE = "shop.example via home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Authority(tmp_path)
    return tmp_path


def authorities(folder: Path, table: str) -> list[tuple[str, str]]:
    (folder / "proxies.toml").write_text(f"[pools.home]\n{table}\n")
    book = load(str(folder / "proxies.toml"))
    ways = [book.way("home", member.id, LANE) for member in book.pool("home").members]
    return [(way.scheme, way.ca_file) for way in ways if isinstance(way, Proxy)]


def test_https_proxies_of_the_pool_get_the_file_beside_the_toml(folder: Path) -> None:
    path = str(folder / "ca.pem")
    mixed = 'ca = "ca.pem"\nproxies = ["https://10.1.1.1:443", "http://10.1.1.2:80", "https://10.1.1.3:443"]'
    assert authorities(folder, mixed) == [("https", path), ("http", ""), ("https", path)]
    (folder / "list.txt").write_text("https://10.1.1.1:443\n")
    assert authorities(folder, f'ca = "{path}"\nlist = "list.txt"') == [("https", path)]


@pytest.mark.parametrize("more", ["", 'user = "u-{session}"\n', 'provider = "brightdata"\nuser = "u"\n'])
def test_slots_of_an_https_gateway_get_it_too(folder: Path, more: str) -> None:
    gateway = f'ca = "ca.pem"\nendpoint = "https://gate.example:7777"\n{more}slots = 2'
    assert authorities(folder, gateway) == [("https", str(folder / "ca.pem"))] * 2


@pytest.mark.parametrize(
    ("table", "part"),
    [
        ('ca = "none.pem"\nproxies = ["https://10.1.1.1:443"]', "pools.home: ca: "),
        ('ca = "none.pem"\nproxies = ["https://10.1.1.1:443"]', "none.pem cannot be read: No such file"),
        ('ca = "ca.key"\nproxies = ["https://10.1.1.1:443"]', "ca.key has no certificate in PEM format"),
        ('ca = 7\nproxies = ["https://10.1.1.1:443"]', "ca: must be text"),
        ('ca = "ca.pem"\nproxies = ["http://10.1.1.1:80"]', "ca has no effect: the pool has no https:// proxy"),
        ('ca = "ca.pem"\nendpoint = "socks5://10.1.1.1:80"', "ca has no effect: the pool has no https:// proxy"),
        (
            'ca = "ca.pem"\nendpoint = "https://api.example/"\nkey = "k3y-of-api"',
            "ca has no effect with an API gateway",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_named(folder: Path, table: str, part: str) -> None:
    with pytest.raises(SettingsError) as refused:
        authorities(folder, table)
    assert part in refused.value.what


def test_an_authority_that_vanishes_changes_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    authorities(folder, 'ca = "ca.pem"\nproxies = ["https://10.1.1.1:443"]')
    book = load(str(folder / "proxies.toml"))
    (folder / "ca.pem").unlink()
    assert book.reload() == []
    assert book.names == ("home",)
    assert "ca.pem cannot be read" in caplog.text
