"""The archive in a folder, under contract."""

import pytest

from trotline.config import backends
from trotline.testing.archive_contract import ArchiveContract


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
