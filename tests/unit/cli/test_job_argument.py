"""Which job is meant."""

from pathlib import Path

import pytest

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.cli.job_argument import find
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.testing.frontier_contract import BRISK


async def spiders(folder: Path, count: int) -> Settings:
    """A place with jobs of that many spiders."""
    jobs = SqliteJobs(str(folder / "frontier.db"))
    for number in range(count):
        await jobs.start(f"spider-{number:03}", BRISK)
    await jobs.close()
    return Settings(frontier=f"sqlite:{folder / 'frontier.db'}")


async def test_the_newest_job_of_the_spider_is_meant(tmp_path: Path) -> None:
    assert (await find(await spiders(tmp_path, 3), "spider-001")).job.spider == "spider-001"


async def test_a_name_that_is_none_is_answered_with_some_that_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        await find(await spiders(tmp_path, 25), "zzz")

    assert "'zzz'" in refused.value.what
    assert str(refused.value.hint).startswith("Give one of: spider-000, spider-001, ")
    assert "spider-019 and 5 more" in str(refused.value.hint)


async def test_several_spiders_are_answered_with_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        await find(await spiders(tmp_path, 2), None, usage="Write: trotline trace URL SPIDER")

    assert str(refused.value.hint).startswith("Give one of: spider-000, spider-001")
    assert str(refused.value.hint).endswith("Write: trotline trace URL SPIDER")


async def test_a_name_that_is_almost_one_is_answered_with_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        await find(await spiders(tmp_path, 3), "spidr-002")

    assert str(refused.value.hint).startswith("Did you mean spider-002")
