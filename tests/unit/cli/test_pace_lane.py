"""`trotline pace` for a host through a proxy pool, typed with or without quotes."""

import pytest

from trotline.cli.pace import _reasons, lane_and_rate
from trotline.commands.pace import wanted
from trotline.errors import SettingsError
from trotline.model.job import LanePace
from trotline.model.pace import Rate


@pytest.mark.parametrize(
    ("host", "words", "lane", "rate"),
    [
        ("shop.example", (), "shop.example", ""),
        ("shop.example", ("2/s",), "shop.example", "2/s"),
        ("shop.example", ("via", "home"), "shop.example via home", ""),
        ("shop.example", ("via", "home", "1/s", "per", "proxy"), "shop.example via home", "1/s per proxy"),
        ("shop.example via home", ("1/s per proxy",), "shop.example via home", "1/s per proxy"),
        ("shop.example via home", ("via", "home", "2/s"), "shop.example via home", "2/s"),
    ],
)
def test_words_are_a_lane_and_a_rate(host: str, words: tuple[str, ...], lane: str, rate: str) -> None:
    assert lane_and_rate(host, words) == (lane, rate)


def test_via_needs_a_pool_and_per_proxy_too() -> None:
    with pytest.raises(SettingsError, match="via which proxy pool"):
        lane_and_rate("shop.example", ("via",))
    with pytest.raises(SettingsError, match="no proxy pool, and the pace is per proxy"):
        wanted("1/s per proxy", "shop.example")
    assert wanted("1/s per proxy", "shop.example via home") == (Rate(1.0), True)
    assert wanted("2/s", "shop.example") == (Rate(2.0), False)


def test_a_capped_lane_names_its_retry_budget() -> None:
    [(_, text)] = _reasons(LanePace(lane="shop.example", interval=1.0, retry_credit=0.4), "shop.example", None)
    assert "capped, as most visits fail" in text
    assert "none may start now" in text
    assert "retries" not in dict(_reasons(LanePace(lane="shop.example", interval=1.0), "shop.example", None))
