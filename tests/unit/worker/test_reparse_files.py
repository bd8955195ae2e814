"""Equal files are in the archive once, however often its pages are parsed again."""

from pathlib import Path

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.errors import ArchiveUnreachable
from trotline.model.archive import ArchivedPage, ArchiveQuery, CaptureKind
from trotline.rules.artifacts import artifact
from trotline.testing.archive_contract import capture
from trotline.worker.reparse_files import ReparseFiles

FILES = ArchiveQuery(kind=CaptureKind.ARTIFACT)


async def archived(folder: Path) -> tuple[ObjectArchive, ArchivedPage]:
    """An archive with a page and a file that a visit kept."""
    archive = ObjectArchive(FolderStore(folder), "w")
    one = artifact("label.txt", "one", "text/plain")
    kept = capture(2, kind=CaptureKind.ARTIFACT, url=one.address, body=one.data)
    await archive.write([capture(1), kept])
    [page] = [page async for page in archive.pages(ArchiveQuery(kind=CaptureKind.RESPONSE))]
    return archive, page


def written(folder: Path) -> int:
    return len(list(folder.glob("open/*/*.warc.gz")))


async def test_what_is_there_is_not_written_again_and_what_is_new_is_written_once(tmp_path: Path) -> None:
    archive, page = await archived(tmp_path)
    one, two = (artifact("label.txt", text, "text/plain") for text in ("one", "two"))
    files = ReparseFiles()
    await files.write(archive, page, [one])
    await files.write(archive, page, [])
    assert written(tmp_path) == 1
    await files.write(archive, page, [one, two, two])
    await files.write(archive, page, [two])
    assert written(tmp_path) == 2
    await ReparseFiles().write(archive, page, [one, two])
    assert written(tmp_path) == 2
    found = [entry.url async for entry in archive.entries(FILES)]
    assert sorted(found) == sorted([one.address, two.address])


async def test_what_could_not_be_written_is_written_by_the_next_try(tmp_path: Path) -> None:
    archive, page = await archived(tmp_path)
    two = artifact("label.txt", "two", "text/plain")

    class Full:
        entries = archive.entries

        async def write(self, batch: object) -> None:
            raise ArchiveUnreachable("full")

    files = ReparseFiles()
    with pytest.raises(ArchiveUnreachable):
        await files.write(Full(), page, [two])  # type: ignore[arg-type]
    await files.write(archive, page, [two])
    assert written(tmp_path) == 2
