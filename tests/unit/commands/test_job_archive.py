"""A job whose pages are archived does not lose its archive unnoticed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trotline import App, Spider
from trotline.commands.job_archive import keep_archiving, unarchived
from trotline.config.backends import open_frontier, open_jobs
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.model.job import LaneRules
from trotline.ports.backend import OpenJob
from trotline.rules import archive_place_note


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[OpenJob]:
    jobs = await open_jobs(f"sqlite:{tmp_path}/f.db")
    job = await jobs.start("shop", LaneRules())
    await jobs.close()
    found = await open_frontier(f"sqlite:{tmp_path}/f.db", job)
    yield found
    await found.close()


async def test_a_command_without_the_archive_of_the_job_is_refused(opened: OpenJob) -> None:
    await keep_archiving(opened, Settings(), dropped=False)
    await keep_archiving(opened, Settings(archive="file:my pages?keep=90d"), dropped=False)
    with pytest.raises(SettingsError) as refused:
        await keep_archiving(opened, Settings(), dropped=False)
    assert "pages of shop-1 are archived in file:my pages?keep=90d, and no archive is set now" in refused.value.what
    assert "--archive 'file:my pages?keep=90d'; or keep no more pages: --archive none" in refused.value.hint


async def test_that_an_archive_is_given_up_is_said_each_time(opened: OpenJob) -> None:
    await keep_archiving(opened, Settings(archive="file:pages"), dropped=False)
    await keep_archiving(opened, Settings(), dropped=True)
    with pytest.raises(SettingsError):
        await keep_archiving(opened, Settings(), dropped=False)


async def test_another_archive_takes_the_place_of_the_first(opened: OpenJob) -> None:
    said = [
        await keep_archiving(opened, Settings(archive=place), dropped=False)
        for place in ("file:pages", "file:pages?keep=90d", "s3://raw/shop?secret=x")
    ]
    assert said[:2] == ["", ""]
    assert said[2].startswith("pages of shop-1 were archived in file:pages?keep=90d until now, and the next ones go to")
    assert "secret=x" not in said[2]
    with pytest.raises(SettingsError) as refused:
        await keep_archiving(opened, Settings(), dropped=False)
    assert "s3://raw/shop" in refused.value.what
    assert "secret=x" not in str(refused.value)


async def test_the_cache_of_development_may_be_left_out(opened: OpenJob) -> None:
    await keep_archiving(opened, Settings(cache=True).of("shop"), dropped=False)
    await keep_archiving(opened, Settings(), dropped=False)


async def test_what_was_crawled_to_its_end_needs_no_archive_to_be_announced(opened: OpenJob) -> None:
    await keep_archiving(opened, Settings(archive="file:pages"), dropped=False)
    await opened.frontier.seal()
    assert await opened.frontier.finished()
    await keep_archiving(opened, Settings(), dropped=False)


async def test_a_note_that_another_program_damaged_refuses_nothing(opened: OpenJob) -> None:
    assert await opened.console.write_note(archive_place_note.NOTE, b"\xff{", 0)
    await keep_archiving(opened, Settings(), dropped=False)


async def test_an_app_says_that_it_keeps_no_pages(opened: OpenJob, tmp_path: Path, caplog) -> None:
    assert await unarchived(opened) == ""
    await keep_archiving(opened, Settings(archive="file:pages"), dropped=False)
    assert await unarchived(opened) == "file:pages"
    async with App(frontier=f"sqlite:{tmp_path}/f.db", sink=f"jsonl:{tmp_path}/rows.jsonl") as app:
        working = asyncio.create_task(app.work(Spider("shop")))
        async with asyncio.timeout(20):
            while "archive.not_kept" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.01)
        await opened.frontier.seal()
        await working
    assert "archive.not_kept pages of shop-1 were archived in file:pages; an App keeps none" in caplog.text
    assert await unarchived(opened) == "", "it is finished"
