"""The archive of whole objects: rolling, its index, damage, and folders that cannot be written."""

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.capture_finder import SMALL_INDEX
from trotline.adapters.archive.folder_store import FolderStore
from trotline.errors import ArchiveDamaged, ArchiveFileFails, ArchiveUnreachable
from trotline.model.archive import ArchiveQuery
from trotline.testing.archive_contract import NOON, capture, found, read


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path)


async def names(store):
    return [one.name for one in [*await store.listed("open"), *await store.listed("warc")]]


async def test_small_objects_are_rolled_by_size_and_by_time(store):
    now = [0.0]
    archive = ObjectArchive(store, "w", roll_size=1 << 30, roll_time=60.0, clock=lambda: now[0])
    await archive.write([capture(1)])
    now[0] = 59.0
    await archive.write([capture(2)])
    assert len(await names(store)) == 2
    now[0] = 61.0
    await archive.write([capture(3)])
    await archive.close()
    file = [name.rpartition(".")[2] for name in await names(store)]
    assert sorted(file) == ["cdxj", "gz"]
    assert len(await found(archive)) == 3


async def test_one_url_is_found_in_a_large_index_without_reading_all_of_it(store):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(number, body=b"%d" % number) for number in range(1, 1500)])
    await archive.close()
    [index] = [one for one in await store.listed("warc") if one.name.endswith(".cdxj")]
    assert index.size > SMALL_INDEX
    asked = []

    class Counting(FolderStore):
        async def get(self, name, start=0, length=None):
            data = await super().get(name, start, length)
            asked.append(len(data))
            return data

    reader = ObjectArchive(Counting(store._folder), "r")
    for number in (1, 2, 777, 1498, 1499):
        assert [one.url for one in await found(reader, ArchiveQuery(url=capture(number).url))] == [capture(number).url]
    assert await found(reader, ArchiveQuery(url="https://shop.example/p/777x")) == []
    assert max(asked) < SMALL_INDEX


async def test_a_roll_that_fails_loses_nothing(store):
    class Failing(FolderStore):
        async def put(self, name, data):
            if name.startswith("warc/"):
                raise ArchiveUnreachable("away")
            await super().put(name, data)

    archive = ObjectArchive(Failing(store._folder), "w", roll_size=1)
    await archive.write([capture(1)])
    await archive.write([capture(2)])
    await archive.close()
    assert len(await found(ObjectArchive(store))) == 2
    assert (await ObjectArchive(store).tidy(NOON * 2)).files == 1
    assert len(await read(ObjectArchive(store))) == 2


async def test_a_writer_that_was_taken_for_dead_goes_on(store):
    alive = ObjectArchive(store, "w")
    await alive.write([capture(1)])
    assert (await ObjectArchive(store).tidy(NOON * 2)).files == 1
    await alive.write([capture(2)])
    await alive.close()
    assert len(await found(ObjectArchive(store))) == 2
    assert not (await alive.check()).damages


async def test_damage_is_found_and_named(store, tmp_path):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(1), capture(2)])
    await archive.close()
    [file] = tmp_path.glob("warc/*/*.warc.gz")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))
    assert (await archive.check()).damages
    with pytest.raises(ArchiveDamaged, match=r"damaged|digest"):
        await read(archive)
    [index] = tmp_path.glob("warc/*/*.cdxj")
    index.write_text("nonsense\n")
    with pytest.raises(ArchiveDamaged, match="index"):
        await found(archive)
    index.unlink()
    assert await found(archive) == []


async def test_a_page_beyond_the_end_of_a_cut_file_is_damaged(store, tmp_path):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(1), capture(2)])
    await archive.close()
    last = max(await found(archive), key=lambda entry: entry.offset)
    [file] = tmp_path.glob("warc/*/*.warc.gz")
    file.write_bytes(file.read_bytes()[: last.offset])
    with pytest.raises(ArchiveDamaged, match="is damaged at"):
        await archive.read(last)


async def test_a_file_whose_index_is_lost_is_named_and_read_again_from_the_open_ones(store, tmp_path):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(1), capture(2)])
    await archive.close()
    [index], [file] = tmp_path.glob("warc/*/*.cdxj"), tmp_path.glob("warc/*/*.warc.gz")
    index.unlink()
    [damage] = (await archive.check()).damages
    assert "its index is missing, so 2 captures are not found" in damage.what
    (tmp_path / "open" / "again").mkdir()
    file.rename(tmp_path / "open" / "again" / file.name)
    assert not (await archive.check()).damages
    assert len(await read(archive)) == 2


async def test_a_file_that_was_not_indexed_yet_is_no_damage_while_its_captures_are_elsewhere(store, tmp_path):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(1)])
    [small] = tmp_path.glob("open/*/*.warc.gz")
    (tmp_path / "warc" / "20260101").mkdir(parents=True)
    (tmp_path / "warc" / "20260101" / "20260101T000000-20260101T000000-w_1.warc.gz").write_bytes(small.read_bytes())
    assert not (await archive.check()).damages


async def test_a_folder_that_cannot_be_written_is_waited_for(tmp_path):
    (tmp_path / "file").write_text("")
    archive = ObjectArchive(FolderStore(tmp_path / "file"), "w")
    with pytest.raises(ArchiveFileFails, match="cannot be used"):
        await archive.open()
    with pytest.raises(ArchiveFileFails):
        await archive.write([capture(1)])


async def test_names_do_not_leave_the_folder(store):
    with pytest.raises(KeyError):
        await store.get("../secret")
    with pytest.raises(KeyError):
        await store.get("/etc/hostname")


async def test_an_index_that_names_another_place_is_damage(store, tmp_path):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(1), capture(2)])
    await archive.close()
    [index] = tmp_path.glob("warc/*/*.cdxj")
    one, two = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(one.replace(capture(1).id.encode(), capture(2).id.encode()) + two)
    with pytest.raises(ArchiveDamaged, match="another place"):
        await read(archive)


async def test_files_without_a_page_that_fits_are_not_fetched(store):
    archive = ObjectArchive(store, "w")
    await archive.write([capture(1)])
    await archive.close()

    class OnlyIndexes(FolderStore):
        async def get(self, name, start=0, length=None):
            assert name.endswith(".cdxj")
            return await super().get(name, start, length)

    assert await read(ObjectArchive(OnlyIndexes(store._folder)), ArchiveQuery(route="other")) == []
