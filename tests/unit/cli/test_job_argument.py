"""Which job is meant."""

from pathlib import Path

import pytest

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.cli.job_argument import find
from trotline.cli.resume_hint import go_on, visit_again
from trotline.commands.scrapy_job_owner import join
from trotline.config.backends import open_frontier
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.model.job import LaneRules, Progress
from trotline.model.queue_job import SCRAPY
from trotline.rules.scrapy_job_owner import SpiderNote, job_name
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


async def scrapy_jobs(folder: Path, jobs_of: dict[str, str]) -> Settings:
    """A place with jobs of Scrapy spiders: job -> the name of its spider; empty: it was not noted."""
    place = f"sqlite:{folder / 'frontier.db'}"
    jobs = SqliteJobs(str(folder / "frontier.db"))
    for name, spider in jobs_of.items():
        started = await jobs.start(name, LaneRules(default=BRISK.default, source=SCRAPY))
        opened = await open_frontier(place, started)
        if spider:
            await join(opened.console, started.id, SpiderNote(spider))
        await opened.close()
    await jobs.close()
    return Settings(frontier=place)


@pytest.mark.parametrize("job", [job_name("rules.x"), "monday"])
async def test_a_spider_of_scrapy_is_found_by_its_own_name(tmp_path: Path, job: str) -> None:
    place = await scrapy_jobs(tmp_path, {"older": "rules", job: "rules.x", "newer": ""})
    target = await find(place, "rules.x")
    assert (target.job.spider, target.scrapy, target.name) == (job, "rules.x", "rules.x")
    with pytest.raises(SettingsError, match=r"no job or spider 'rules\.y'"):
        await find(place, "rules.y")


async def test_a_job_of_scrapy_goes_on_with_the_name_of_its_spider(tmp_path: Path) -> None:
    place = await scrapy_jobs(tmp_path, {job_name("rules.x"): "rules.x", "monday": "rules.x", "tuesday": ""})
    left = Progress(waiting=3, leased=0, done=5, dead=0)
    for job, command in (
        (job_name("rules.x"), "scrapy crawl rules.x"),
        ("monday", "scrapy crawl rules.x -s TROTLINE_JOB=monday"),
        ("tuesday", "scrapy crawl tuesday"),
    ):
        target = await find(place, job)
        assert go_on(target, left, 0).endswith(f"continue with: {command}")
        assert visit_again(target, 0, "") == f"Continue with:  {command}"


async def test_a_job_that_has_a_newer_one_is_known_as_such(tmp_path: Path) -> None:
    settings = await spiders(tmp_path, 2)
    jobs = SqliteJobs(str(tmp_path / "frontier.db"))
    await jobs.start("spider-000", BRISK)
    await jobs.close()
    assert (await find(settings, "spider-000-1")).followed
    assert not (await find(settings, "spider-000")).followed
    assert not (await find(settings, "spider-001-2")).followed
