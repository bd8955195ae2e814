"""Answers from the archive, while a spider is written."""

import msgspec
import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.model.answer import FROM_ARCHIVE, Answer
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.testing.archive_contract import capture, coded
from trotline.worker.cached_fetcher import CachedFetcher


class Counting:
    def __init__(self):
        self.asked = []

    async def fetch(self, task, way=None):
        self.asked.append(task.url)
        return Answer(url=task.url, status=200, body=b"new")

    async def fetch_start(self, task, most, way=None):
        return await self.fetch(task, way)


@pytest.fixture
def place(tmp_path):
    return lambda: ObjectArchive(FolderStore(tmp_path), "w")


def task(url, **more):
    return Task(url=url, route="page", **more)


async def test_what_the_archive_has_is_not_fetched_again(place):
    archive = place()
    await archive.write([capture(1, body=b"old"), capture(2, status=503)])
    site = Counting()
    fetcher = CachedFetcher(site, archive)
    answer = await fetcher.fetch(task(capture(1).url))
    assert (answer.body, answer.notes, site.asked) == (b"old", (FROM_ARCHIVE,), [])
    for odd in (
        task(capture(2).url),
        task(capture(3).url),
        task(capture(1).url, method="POST", body=b"x"),
        task(capture(1).url, session="s"),
        task(capture(1).url, headers=(("accept", "x"),)),
    ):
        assert (await fetcher.fetch(odd)).body == b"new"
    assert len(site.asked) == 5


async def test_a_page_over_the_limits_is_fetched(place, caplog):
    archive = place()
    await archive.write([capture(1, body=b"x" * 5000), coded(2, b"x" * 5000), capture(3, body=b"x" * 4000)])
    site = Counting()
    fetcher = CachedFetcher(site, archive, limits=Limits(wire_body=100, decoded_body=4000))
    assert [(await fetcher.fetch(task(capture(number).url))).body for number in (1, 2)] == [b"new", b"new"]
    assert caplog.text.count("cache.too_large") == 2
    assert len((await fetcher.fetch(task(capture(3).url))).body) == 4000
    # A sitemap has a limit of its own.
    assert len((await fetcher.fetch_start(task(capture(1).url), 5000)).body) == 5000
    assert (await fetcher.fetch_start(task(capture(1).url), 4999)).body == b"new"


async def test_a_page_that_came_coded_is_answered_decoded_and_would_not_be_archived_so_again(place):
    archive = place()
    await archive.write([coded(1, b"<html> of a page")])
    answer = await CachedFetcher(Counting(), archive).fetch(task(capture(1).url))
    assert (answer.body, answer.wire) == (b"<html> of a page", b"")
    assert answer.header("content-encoding") == "gzip"


async def test_robots_txt_is_kept_for_the_next_run(place):
    site = Counting()
    asked = task("https://shop.example/robots.txt")
    assert (await CachedFetcher(site, place()).fetch_start(asked, 1000)).body == b"new"
    assert (await CachedFetcher(site, place()).fetch_start(asked, 1000)).body == b"new"
    assert len(site.asked) == 1
    secret = msgspec.structs.replace(asked, url="https://shop.example/robots.txt?token=abc")
    for _ in range(2):
        await CachedFetcher(site, place()).fetch_start(secret, 1000)
    assert len(site.asked) == 3
