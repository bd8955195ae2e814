from pathlib import Path

import pytest

from trotline.config.prices import read_prices
from trotline.config.setting_types import bandwidth
from trotline.errors import SettingsError

GOOD = """
currency = "EUR"
as_of = "2026-11-01"
[machine.small]
cores = 2
memory = 4
network = 1000
per_hour = 0.02
[proxy.residential]
per_gb = 4.5
[service.redis]
per_hour = 0.03
"""


def test_a_table_is_read(tmp_path: Path):
    (tmp_path / "prices.toml").write_text(GOOD)

    prices = read_prices(tmp_path / "prices.toml")

    assert prices.machine["small"].cores == 2
    assert (prices.currency, prices.proxy["residential"].per_gb, prices.service["redis"].per_hour) == ("EUR", 4.5, 0.03)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("cores = 2", "cores = 0"), "cores"),
        (GOOD.replace("per_hour = 0.02", "per_hour = -1"), "prices"),
        (GOOD.replace("per_hour = 0.02", "per_hour = nan"), "prices"),
        (GOOD.replace("per_gb = 4.5", 'per_gb = "much"'), "per_gb"),
        (GOOD.replace("[machine.small]", "[machines.small]"), "machine"),
        ("[[[", "price table"),
        ("x" * 200_000, "larger"),
    ],
)
def test_what_cannot_be_right_is_refused(tmp_path: Path, text: str, says: str):
    (tmp_path / "prices.toml").write_text(text)

    with pytest.raises(SettingsError, match=says):
        read_prices(tmp_path / "prices.toml")


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"none\.toml"):
        read_prices(tmp_path / "none.toml")


@pytest.mark.parametrize(("text", "found"), [("1Mbit", 125_000.0), ("1.5 Gbit", 187_500_000.0), ("8kbit/s", 1000.0)])
def test_a_bandwidth_is_read_in_powers_of_ten(text: str, found: float):
    assert bandwidth(text) == found


@pytest.mark.parametrize("text", ["", "100", "1MB", "0Mbit", "-1Mbit", "Mbit", "1" * 20 + "Mbit"])
def test_what_is_no_bandwidth_is_refused(text: str):
    with pytest.raises(ValueError, match="bandwidth"):
        bandwidth(text)
