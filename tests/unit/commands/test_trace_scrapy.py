"""Which tasks of a Scrapy job a URL may be."""

from types import SimpleNamespace
from typing import Any, cast

from trotline.commands.trace import scrapy_numbers
from trotline.model.job import Job, LaneRules
from trotline.model.note import Note
from trotline.model.queue_job import SCRAPY
from trotline.rules.scrapy_redis import read, task

URL = "https://shop.example/p?b=1&a=2"
JOB = Job(id="shop-1", spider="shop", started_at=0.0, rules=LaneRules(source=SCRAPY))


def console(note: Note | None) -> Any:
    async def read_notes(names: Any) -> list[Note | None]:
        return [note]

    return SimpleNamespace(read_notes=read_notes)


async def test_a_url_of_an_imported_job_is_found() -> None:
    """Its tasks have the fingerprints of scrapy-redis."""
    moved = task(read(b'{"url": "%s"}' % URL.encode()), 1, 0.0).fingerprint
    assert moved in await scrapy_numbers(URL, JOB, console(Note(b"shop:dupefilter:imported", 1)))
    assert moved not in await scrapy_numbers(URL, JOB, console(None))


async def test_other_jobs_have_no_such_numbers() -> None:
    assert await scrapy_numbers(URL, Job(id="shop-1", spider="shop", started_at=0.0), cast(Any, None)) == {}
