"""What a writer wrote, and somebody removed before it was rolled."""

import shutil

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.errors import ArchiveFileFails
from trotline.testing.archive_contract import NOON, capture, found


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pages"


async def test_captures_that_are_gone_before_they_are_rolled_are_counted(folder, caplog):
    archive = ObjectArchive(FolderStore(folder), "w")
    for number in range(4):
        await archive.write([capture(2 * number), capture(2 * number + 1)])
    [first, second, *_] = sorted(folder.glob("open/*/*.warc.gz"))
    first.unlink()
    second.unlink()
    await archive.close()
    assert archive.lost == 4
    assert "archive.lost 4 captures" in caplog.text
    assert len(await found(ObjectArchive(FolderStore(folder)))) == 4


async def test_what_another_process_rolled_is_not_lost(folder, caplog):
    archive = ObjectArchive(FolderStore(folder), "w")
    await archive.write([capture(1)])
    assert (await ObjectArchive(FolderStore(folder)).tidy(NOON * 2)).files == 1
    await archive.write([capture(2)])
    await archive.close()
    assert archive.lost == 0
    assert "archive.lost" not in caplog.text


async def test_a_folder_that_vanished_is_not_made_again_and_goes_on_when_it_is_back(folder, tmp_path):
    archive = ObjectArchive(FolderStore(folder), "w")
    await archive.write([capture(1)])
    folder.rename(tmp_path / "gone")
    with pytest.raises(ArchiveFileFails, match="is gone"):
        await archive.write([capture(2)])
    assert not folder.exists()
    (tmp_path / "gone").rename(folder)
    await archive.write([capture(2)])
    await archive.close()
    assert archive.lost == 0
    assert len(await found(ObjectArchive(FolderStore(folder)))) == 2


async def test_a_folder_that_is_gone_at_the_end_is_told(folder):
    archive = ObjectArchive(FolderStore(folder), "w")
    await archive.write([capture(1), capture(2)])
    shutil.rmtree(folder)
    await archive.close()
    assert archive.lost == 2


async def test_a_roll_that_fails_is_told(folder, caplog):
    archive = ObjectArchive(FolderStore(folder), "w")
    await archive.write([capture(1)])
    (folder / "warc").write_text("not a folder")
    await archive.close()
    assert "archive.not_rolled" in caplog.text
