"""The file of the simulator: what it means, and what is refused."""

from pathlib import Path

import pytest

from trotline.config.proxy_scenario import read
from trotline.errors import SettingsError

LEAST = """
[fleet]
workers = 3

[pool]
proxies = 10
pace = "1/s"

[site]
limit = "60/m"
"""


def scenario(tmp_path: Path, text: str) -> str:
    path = tmp_path / "shop.toml"
    path.write_text(text)
    return str(path)


def test_the_least_file_has_the_defaults(tmp_path: Path) -> None:
    found = read(scenario(tmp_path, LEAST))

    assert (found.workers, found.slots, found.proxies, found.interval) == (3, 16, 10, 1.0)
    assert (found.site.limit, found.site.ban, found.site.latency, found.site.jitter) == (60.0, 600.0, 0.3, 0.15)
    assert (found.minutes, found.seed, found.dead, found.rules.rest) == (60, 1, 0.0, 1800.0)


def test_every_key_is_used(tmp_path: Path) -> None:
    text = """
seed = 7
minutes = 5
fleet = {workers = 2, slots = 4}
pool = {proxies = 5, pace = "40/m", rest = "2d", hold = 20, dead = 0.2, captive = 0.4, page_bytes = 10, \
refusal_bytes = 1, cost_per_gb = 5, cost_per_request = 0.01}
site = {limit = "2/s", burst = 9, ban_after = 1, ban = "1h", renewed = true, latency = "1s", jitter = "0s"}
"""
    found = read(scenario(tmp_path, text))

    assert (found.seed, found.minutes, found.workers, found.slots, found.proxies) == (7, 5, 2, 4, 5)
    assert (found.interval, found.dead, found.captive, found.rules.hold) == (1.5, 0.2, 0.4, 20)
    assert (found.rules.rest, found.rules.longest_rest) == (172800.0, 172800.0)
    assert (found.page_bytes, found.refusal_bytes, found.cost_per_gb, found.cost_per_request) == (10, 1, 5.0, 0.01)
    site = found.site
    assert (site.limit, site.burst, site.ban_after, site.ban, site.renewed) == (120.0, 9.0, 1, 3600.0, True)
    assert (site.latency, site.jitter) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("workers = 3", "", "fleet.workers is missing"),
        ("workers = 3", "workers = 0", "fleet.workers must be an integer from 1"),
        ("workers = 3", "workers = true", "fleet.workers must be an integer"),
        ("workers = 3", "worker = 3", "unknown key 'fleet.worker'"),
        ('pace = "1/s"', "pace = 1", "pool.pace must be text"),
        ('pace = "1/s"', 'pace = "soon"', "pool.pace pace 'soon' is not a rate"),
        ("proxies = 10", "proxies = 10\ndead = 0.7\ncaptive = 0.6", "pool.dead + pool.captive must be at most 1"),
        ("proxies = 10", "proxies = 10\ndead = nan", "pool.dead must be a number from 0 to 1"),
        ('limit = "60/m"', 'limit = "60/m"\njitter = "1s"', "site.jitter must be shorter than latency"),
        ('limit = "60/m"', 'limit = "60/m"\nban = "0s"', "site.ban must be above 0 s"),
        ("[site]", "[sites]", "unknown key 'sites'"),
        ("[fleet]\nworkers = 3", "", "fleet is missing"),
        ("[fleet]", "[fleet", "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert old in LEAST
    with pytest.raises(SettingsError) as refused:
        read(scenario(tmp_path, LEAST.replace(old, new)))
    assert what in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing\.toml"):
        read(str(tmp_path / "nothing.toml"))


@pytest.mark.parametrize("made", [None, "folder", "\xff"])
def test_a_file_that_cannot_be_read_is_answered_with_what_the_simulator_reads(tmp_path: Path, made: str | None) -> None:
    path = tmp_path / "nope.toml"
    if made == "folder":
        path.mkdir()
    elif made:
        path.write_bytes(made.encode("latin-1"))
    with pytest.raises(SettingsError) as refused:
        read(str(path))
    assert refused.value.what.startswith(str(path))
    assert "[fleet], [pool] and [site]" in refused.value.hint
    assert "pools.NAME" not in refused.value.hint
