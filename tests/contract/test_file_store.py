"""Stores of downloaded files under contract: a folder, and a real S3 server."""

import asyncio
import contextlib
import hashlib
import sys
import tempfile
from pathlib import Path

import pytest
from tests.contract.s3_servers import own_prefix, s3

from trotline.adapters.s3.object_store import S3Objects
from trotline.adapters.s3.s3_url import address_of
from trotline.config.components import open_file_store
from trotline.errors import SettingsError
from trotline.model.stored_file import Files
from trotline.testing.file_store_contract import FileStoreContract, kept
from trotline.testing.seaweedfs_server import KEY, SECRET

UPLOAD = """
import asyncio, os, sys
from trotline.config.components import open_file_store
from trotline.model.stored_file import Files
writer = open_file_store(Files(folder=sys.argv[1])).begin()
for _ in range(40):
    writer.write(os.urandom(1 << 20))
print("received", flush=True)
asyncio.run(writer.keep("application/pdf"))
"""


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


class TestFolder(FileStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda **rules: open_file_store(Files(folder=str(tmp_path / "files"), **rules))

    @pytest.fixture
    def content(self, tmp_path):
        async def read():
            return _files(tmp_path / "files")

        return read


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class TestS3(FileStoreContract):
    @pytest.fixture
    def place(self):
        return s3().url(own_prefix())

    @pytest.fixture(autouse=True)
    def spool(self, place, monkeypatch, tmp_path):
        """After the server has started: its folder is shared with other tests, and stays."""
        (tmp_path / "spool").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spool"))

    @pytest.fixture
    def open_store(self, place):
        return lambda **rules: open_file_store(Files(folder=place, **rules))

    @pytest.fixture
    def content(self, place):
        objects = S3Objects(address_of(place))

        async def read():
            found = [one.name for number in range(256) for one in await objects.listed(f"{number:02x}")]
            return {name: await objects.get(name) for name in found}

        return read

    async def test_nothing_is_left_on_the_disk(self, open_store, tmp_path):
        await kept(open_store(), b"x" * 100)

        assert list((tmp_path / "spool").iterdir()) == []

    @pytest.mark.slow("uploads large files in processes that are killed")
    async def test_fs2_a_process_that_is_killed_leaves_no_torn_object(self, place, content):
        torn = []
        for after in (0.05, 0.2, 0.4):
            uploading = await asyncio.create_subprocess_exec(
                sys.executable, "-c", UPLOAD, place, stdout=asyncio.subprocess.PIPE
            )
            await uploading.stdout.readline()
            await asyncio.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                # It may have been faster.
                uploading.kill()
            await uploading.wait()
            torn += [name for name, body in (await content()).items() if hashlib.sha256(body).hexdigest() not in name]

        assert torn == []

    async def test_a_server_that_fails_is_an_error_of_the_store_and_leaves_nothing(self, tmp_path):
        # Nothing listens there.
        store = open_file_store(Files(folder="s3://bucket/files?endpoint=http://127.0.0.1:9"))

        with pytest.raises(OSError, match="unreachable"):
            await kept(store, b"x" * 100)
        assert list((tmp_path / "spool").iterdir()) == []


def test_what_is_no_place_is_refused():
    with pytest.raises(SettingsError, match="not the name of a bucket"):
        open_file_store(Files(folder="s3://B/x"))
