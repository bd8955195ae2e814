"""Commands over an archive."""

import errno
import os
import tracemalloc

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.commands import archive
from trotline.errors import ArchiveFileFails
from trotline.model.archive import ArchiveQuery
from trotline.model.limits import MIB
from trotline.testing.archive_contract import capture

PAGES = 30


@pytest.fixture
async def pages(tmp_path):
    """An archive of files of one page each."""
    folder = tmp_path / "pages"
    for number in range(PAGES):
        writer = ObjectArchive(FolderStore(folder), f"w{number}")
        await writer.write([capture(number, body=os.urandom(MIB))])
        await writer.close()
    return folder


async def test_an_export_needs_the_memory_of_one_file_and_not_of_the_archive(tmp_path, pages):
    out = tmp_path / "all.warc.gz"
    tracemalloc.start()
    try:
        assert (await archive.export(f"file:{pages}", ArchiveQuery(), out))[0] == PAGES
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out.stat().st_size > PAGES * MIB
    assert peak < PAGES * MIB / 2


async def test_an_export_that_fails_leaves_no_file(tmp_path, pages, monkeypatch):
    last = max(pages.glob("warc/*/*.warc.gz"))
    before = os.open

    def fail(path, *more, **named):
        if os.fspath(path) == str(last):
            # Not only this file: its disk was taken away.
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return before(path, *more, **named)

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(ArchiveFileFails):
        await archive.export(f"file:{pages}", ArchiveQuery(), tmp_path / "all.warc.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]
