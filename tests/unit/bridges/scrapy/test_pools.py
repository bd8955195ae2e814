"""The proxy pools of a Scrapy process."""

from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from trotline.bridges.scrapy.download_handlers import DownloadHandlers
from trotline.bridges.scrapy.pools import Pools
from trotline.errors import SettingsError


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
