"""The archive in a folder, under contract."""

import random
import subprocess

import pytest

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
        from trotline.adapters.objects.archive import ObjectArchive
        from trotline.adapters.objects.folder import FolderStore

        return lambda: ObjectArchive(FolderStore(tmp_path), "contract", roll_size=1)


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
