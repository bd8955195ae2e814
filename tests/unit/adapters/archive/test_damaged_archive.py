"""An archive with damage: what is not damaged is read, and what is skipped is named."""

import errno
import gzip
import os

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.errors import ArchiveDamaged
from trotline.model.archive import ArchiveQuery, ArchiveTidied
from trotline.testing.archive_contract import ALL, NOON, capture, found, read


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path)


async def rolled(store, tmp_path, *numbers, writer="w"):
    """The file of a writer that has ended."""
    archive = ObjectArchive(store, writer)
    await archive.write([capture(number) for number in numbers])
    await archive.close()
    return max(tmp_path.glob(f"warc/*/*-{writer}_*.warc.gz"))


async def pages(store, **more):
    """URLs of what is read, and what is skipped."""
    skipped = []
    urls = {page.entry.url async for page in ObjectArchive(store).pages(ALL, skipped=skipped.append, **more)}
    return urls, skipped


async def entries(store):
    skipped = []
    urls = {entry.url async for entry in ObjectArchive(store).entries(ALL, skipped=skipped.append)}
    return urls, skipped


def urls(*numbers):
    return {capture(number).url for number in numbers}


async def test_of_a_cut_file_the_rest_is_read_and_each_capture_that_is_gone_is_named(store, tmp_path):
    await rolled(store, tmp_path, 1, 2, writer="whole")
    file = await rolled(store, tmp_path, 3, 4, 5, writer="cut")
    last = max(await found(ObjectArchive(store), ArchiveQuery(url=capture(5).url)), key=lambda one: one.offset)
    file.write_bytes(file.read_bytes()[: last.offset + 10])
    got, skipped = await pages(store)
    assert got == urls(1, 2, 3, 4)
    assert [(one.url, one.offset) for one in skipped] == [(capture(5).url, last.offset)]
    assert skipped[0].file == file.relative_to(tmp_path).as_posix()
    assert "ends in the middle" in skipped[0].what
    with pytest.raises(ArchiveDamaged):
        await read(ObjectArchive(store))


async def test_readers_that_share_the_work_name_each_damage_once(store, tmp_path):
    file = await rolled(store, tmp_path, *range(10))
    file.write_bytes(b"")
    found = [await pages(store, part=part, parts=3) for part in range(3)]
    assert sum(len(skipped) for _, skipped in found) == 10
    [index] = tmp_path.glob("warc/*/*.cdxj")
    index.write_text("nonsense\n")
    found = [await pages(store, part=part, parts=3) for part in range(3)]
    assert [len(skipped) for _, skipped in found] == [1, 0, 0]


async def test_a_file_that_is_not_ours_is_named_and_the_others_are_read(store, tmp_path):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(1)])
    (tmp_path / "open" / "x").mkdir()
    (tmp_path / "open" / "x" / "foreign.warc.gz").write_bytes(gzip.compress(b"not a record"))
    undated = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Date: now\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    (tmp_path / "open" / "y.warc.gz").write_bytes(gzip.compress(undated))
    for got, skipped in (await pages(store), await entries(store)):
        assert got == urls(1)
        assert sorted(one.file for one in skipped) == ["open/x/foreign.warc.gz", "open/y.warc.gz"]
    assert {damage.file for damage in (await archive.check()).damages} == {"open/x/foreign.warc.gz", "open/y.warc.gz"}


async def test_a_record_without_an_id_is_damage_and_not_a_second_one_of_another(store, tmp_path):
    record = (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
        b"WARC-Target-URI: https://shop.example/a\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    )
    (tmp_path / "open" / "x").mkdir(parents=True)
    (tmp_path / "open" / "x" / "1.warc.gz").write_bytes(gzip.compress(record) * 2)
    got, skipped = await pages(store)
    assert (got, len(skipped)) == (set(), 2)


@pytest.mark.parametrize("kind", ["open/*/*.gz", "warc/*/*.gz", "warc/*/*.cdxj"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
async def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(store, tmp_path, monkeypatch, kind, number):
    odd = await rolled(store, tmp_path, 1, writer="odd")
    await rolled(store, tmp_path, 2, writer="w")
    if kind.startswith("open"):
        (tmp_path / "open" / "odd").mkdir(parents=True)
        odd = odd.replace(tmp_path / "open" / "odd" / "0.warc.gz")
    odd = odd.with_suffix("").with_suffix(".cdxj") if kind.endswith("cdxj") else odd
    before = os.open

    def refused(path, *more, **named):
        # Root may read everything, so no mode of the file does it.
        if os.fspath(path) == str(odd):
            raise OSError(number, os.strerror(number), str(path))
        return before(path, *more, **named)

    monkeypatch.setattr(os, "open", refused)
    got, skipped = await pages(store)
    assert got == urls(2)
    assert {one.file for one in skipped} >= {odd.relative_to(tmp_path).as_posix()}
    assert os.strerror(number) in str(skipped)
    assert os.strerror(number) in str((await ObjectArchive(store).check()).damages)
    assert (await ObjectArchive(store).tidy(NOON * 2)).files == 0


async def test_an_index_without_its_file_is_damage(store, tmp_path):
    file = await rolled(store, tmp_path, 1, 2)
    file.unlink()
    got, skipped = await pages(store)
    assert got == set()
    assert {one.url for one in skipped} == urls(1, 2)


async def test_a_page_is_found_and_read_beside_damage(store, tmp_path):
    await rolled(store, tmp_path, 1)
    (tmp_path / "open" / "x").mkdir(parents=True)
    (tmp_path / "open" / "x" / "foreign.warc.gz").write_bytes(b"x")
    archive, skipped = ObjectArchive(store), []
    [entry] = [one async for one in archive.entries(ArchiveQuery(url=capture(1).url), skipped=skipped.append)]
    assert (await archive.read(entry)).answer.body == capture(1).body
    assert len(skipped) == 1


async def test_what_a_dead_writer_left_is_rolled_beside_one_that_left_damage(store, tmp_path, caplog):
    for name in ("a", "b"):
        await ObjectArchive(store, name).write([capture(1 if name == "a" else 2)])
    (tmp_path / "open" / "foreign").mkdir()
    (tmp_path / "open" / "foreign" / "1.warc.gz").write_bytes(b"x")
    assert await ObjectArchive(store).tidy(NOON * 2) == ArchiveTidied(files=2, damaged=1)
    assert "open/foreign/1.warc.gz" in caplog.text
    assert (await pages(store))[0] == urls(1, 2)


async def test_a_folder_of_any_name_is_found_after_it_is_rolled(store, tmp_path):
    await ObjectArchive(store, "w").write([capture(1)])
    [folder] = (tmp_path / "open").iterdir()
    folder.rename(tmp_path / "open" / "from backup-2")
    assert (await ObjectArchive(store).tidy(NOON * 2)).files == 1
    assert (await pages(store))[0] == urls(1)
    assert not (await ObjectArchive(store).check()).damages


async def test_an_index_with_an_impossible_date_is_named(store, tmp_path):
    file = await rolled(store, tmp_path, 1)
    odd = file.with_name("99999999T000000-99999999T000000-w_1.cdxj")
    odd.write_text("")
    assert len(await found(ObjectArchive(store))) == 1
    [damage] = (await ObjectArchive(store).check()).damages
    assert damage.file.endswith(odd.name)


async def test_a_file_beside_the_folders_of_the_archive_is_named(store, tmp_path):
    file = await rolled(store, tmp_path, 1)
    (tmp_path / "other.warc.gz").write_bytes(file.read_bytes())
    (tmp_path / "README").write_text("not ours")
    [damage] = (await ObjectArchive(store).check()).damages
    assert damage.file == "other.warc.gz"
    assert "open/" in damage.what
