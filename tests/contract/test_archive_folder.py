"""The archive in a folder, under contract."""

import random
import subprocess

import pytest
from tests.contract.joined_objects import objects_are_joined

from trotline.config import backends
from trotline.errors import ArchiveFileFails
from trotline.testing.archive_contract import ArchiveContract, capture, read


class TestFolderArchive(ArchiveContract):
    @pytest.fixture
    def place(self, tmp_path):
        return lambda: backends.open_archive(f"file:{tmp_path}/pages", "contract")


class TestRolledArchive(ArchiveContract):
    """Every batch is rolled at once."""

    @pytest.fixture
    def place(self, tmp_path):
        from trotline.adapters.archive.archive import ObjectArchive
        from trotline.adapters.archive.folder_store import FolderStore

        return lambda: ObjectArchive(FolderStore(tmp_path), "contract", roll_size=1)


async def test_objects_are_joined_and_a_missing_one_is_named_before_anything_is_put(tmp_path):
    await objects_are_joined(backends.open_archive(f"file:{tmp_path}/pages")._store)
    assert list(tmp_path.rglob(".*.part")) == []


async def test_an_object_that_goes_while_it_is_joined_is_missing(tmp_path, monkeypatch):
    from trotline.adapters.archive.folder_store import FolderStore

    store = FolderStore(tmp_path)
    await store.put("open/1", b"a")
    await store.put("open/2", b"b")
    put_once = store._put_once

    def removed_meanwhile(name, data):
        (tmp_path / "open/2").unlink(missing_ok=True)
        put_once(name, data)

    monkeypatch.setattr(store, "_put_once", removed_meanwhile)
    with pytest.raises(KeyError):
        await store.join("warc/all", ["open/1", "open/2"])
    assert [one.name for one in await store.listed("")] == ["open/1"]
    assert list(tmp_path.rglob(".*.part")) == []


@pytest.fixture
def small_disk(tmp_path):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)], capture_output=True)
    if done.returncode:
        pytest.skip("only root can mount a small disk")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


async def test_a_full_disk_is_said_and_what_is_there_stays(small_disk):
    archive = backends.open_archive(f"file:{small_disk}/pages", "contract")
    written = 0
    with pytest.raises(ArchiveFileFails, match="No space left"):
        for number in range(1, 20):
            await archive.write([capture(number, body=random.Random(number).randbytes(400_000))])
            written = number
    assert written
    assert len(await read(archive)) == written
    assert list(small_disk.rglob(".*.part")) == []
