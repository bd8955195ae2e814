"""A job of the Scrapy bridge belongs to one spider."""

from typing import Any, cast

import pytest

from trotline.commands.scrapy_job_owner import join
from trotline.errors import SettingsError
from trotline.model.note import Note
from trotline.rules.scrapy_job_owner import SpiderNote, digests


class Notes:
    def __init__(self) -> None:
        self.note: Note | None = None

    async def read_notes(self, names: Any) -> list[Note | None]:
        return [self.note]

    async def write_note(self, name: str, data: bytes, version: int) -> bool:
        assert version == (self.note.version if self.note is not None else 0)
        self.note = Note(data=data, version=version + 1)
        return True


async def joined(notes: Notes, spider: SpiderNote) -> list[str]:
    return await join(cast(Any, notes), "shop-1", spider)


async def test_another_spider_does_not_join_the_job() -> None:
    notes = Notes()
    assert await joined(notes, SpiderNote("shop.de", {})) == []
    assert await joined(notes, SpiderNote("shop.de", {})) == []
    with pytest.raises(SettingsError, match=r"of the spider 'shop\.de', and not of 'shop-de'") as error:
        await joined(notes, SpiderNote("shop-de", {}))
    assert "TROTLINE_JOB" in error.value.hint


async def test_a_process_with_other_arguments_learns_which() -> None:
    notes = Notes()
    # The import does not know them: the first process of the spider says them.
    assert await joined(notes, SpiderNote("shop")) == []
    assert await joined(notes, SpiderNote("shop", digests({"category": "shoes"}))) == []
    assert await joined(notes, SpiderNote("shop")) == []
    assert await joined(notes, SpiderNote("shop", digests({"category": "hats"}))) == ["category"]
