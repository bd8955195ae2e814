"""docs/explain/proxy-policy.md shows what the simulator says."""

import re

import pytest

from tests.docs.pages import DOCS, blocks
from trotline.commands.proxies_simulate import compare, svg
from trotline.config.proxy_scenario import KEYS, read
from trotline.rules.proxy_simulation import POLICIES, PRESETS

PAGE = DOCS / "explain" / "proxy-policy.md"
ROW = re.compile(r"^\| (?:`(.*?)`)? ?\|.*?\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def rows() -> dict[tuple[str, str], tuple[str, ...]]:
    """(preset, policy) -> good pages a minute, bans, refused."""
    found, preset = {}, ""
    for name, policy, *numbers in ROW.findall(PAGE.read_text()):
        preset = name or preset
        found[preset, policy] = tuple(numbers)
    return found


def test_every_preset_and_policy_has_a_row() -> None:
    assert {(preset, policy) for preset in PRESETS for policy in POLICIES} == set(rows())


@pytest.mark.slow("simulates two hours")
@pytest.mark.parametrize("preset", ["seed-3x10", "seed-10x50"])
def test_the_figures_and_the_picture_are_those_of_the_simulator(preset: str) -> None:
    courses = compare(PRESETS[preset])

    for course in courses:
        shown = (f"{course.good_per_minute:,.1f}", f"{course.total('bans'):,}", f"{course.total('refused'):,}")
        assert shown == rows()[preset, course.policy]
    if preset == "seed-10x50":
        assert (PAGE.parent / "proxy-policy.svg").read_text() == svg(courses)


def test_the_example_is_read_and_every_key_is_explained(tmp_path) -> None:
    [example] = blocks(PAGE, "toml")
    (tmp_path / "shop.toml").write_text(example.text)
    assert read(str(tmp_path / "shop.toml")).proxies == 50
    text = PAGE.read_text()
    assert [key for part, keys in KEYS.items() for key in keys if f"`{part}.{key}`" not in text] == []
