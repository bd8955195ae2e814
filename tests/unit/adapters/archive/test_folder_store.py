"""A folder that has more in it than files."""

import asyncio
import contextlib
import errno
import os
import socket

import pytest

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.errors import ArchiveFileFails
from trotline.testing.archive_contract import capture, read


def pipe(path):
    os.mkfifo(path)


def loop(path):
    path.symlink_to(path.name)


def device(path):
    path.symlink_to("/dev/zero")


def listener(path):
    # Its address may have about a hundred characters.
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


@pytest.mark.parametrize(
    "place", ["open/w/0.warc.gz", "warc/20260101/20260101T000000-20260101T000000-w_1.cdxj", ".x.part"]
)
@pytest.mark.parametrize("make", [pipe, loop, device, listener])
async def test_what_is_no_file_is_left_out_and_named(tmp_path, caplog, make, place):
    archive = ObjectArchive(FolderStore(tmp_path), "w")
    await archive.write([capture(1)])
    odd = tmp_path / place
    odd.parent.mkdir(parents=True, exist_ok=True)
    make(odd)
    async with asyncio.timeout(20):
        await archive.open()
        assert len(await read(archive)) == 1
        assert len(await read(archive)) == 1
        await archive.check()
        await archive.close()
        with pytest.raises((KeyError, ArchiveFileFails)):
            await FolderStore(tmp_path).get(place)
    if not place.startswith("."):
        assert caplog.text.count(f"archive.not_a_file {odd} ") == 1


async def test_a_folder_that_is_named_like_an_abandoned_file_stays(tmp_path):
    odd = tmp_path / "open" / ".x.part"
    odd.mkdir(parents=True)
    os.utime(odd, (0, 0))
    await FolderStore(tmp_path).check()
    assert odd.is_dir()


async def test_a_link_to_a_file_is_a_file(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"data")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    store = FolderStore(tmp_path)
    assert [(one.name, one.size) for one in await store.listed("")] == [("elsewhere", 4), ("link", 4)]
    assert await store.get("link", 1, 2) == b"at"


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "Make room"), (errno.EACCES, "user of this process"), (errno.EIO, "Look at it")]
)
async def test_an_error_names_the_file_and_what_helps(tmp_path, monkeypatch, number, hint):
    store = FolderStore(tmp_path)

    def fail(name, start, length):
        raise OSError(number, os.strerror(number), str(tmp_path / name))

    monkeypatch.setattr(store, "_get", fail)
    with pytest.raises(ArchiveFileFails) as failed:
        await store.get("warc/x")
    assert "warc/x" in failed.value.what and os.strerror(number) in failed.value.what
    assert hint in failed.value.hint


async def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "warc").mkdir()
    scan = os.scandir

    def refusing(path):
        if os.fspath(path).endswith("warc"):
            # Root may read everything, so no mode of the folder does it.
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(ArchiveFileFails, match=r"warc: Permission denied"):
        await FolderStore(tmp_path).listed("")


async def test_another_folder_in_its_place_gets_nothing(tmp_path):
    """The place where its disk was mounted is an empty folder of another disk."""
    folder = tmp_path / "pages"
    store = FolderStore(folder)
    await store.put("open/me/1", b"one")
    folder.rename(tmp_path / "unmounted")
    folder.mkdir()
    with pytest.raises(ArchiveFileFails, match="is another folder than before"):
        await store.put("open/me/2", b"two")
    assert list(folder.iterdir()) == []
    folder.rmdir()
    (tmp_path / "unmounted").rename(folder)
    await store.put("open/me/2", b"two")
    assert [one.name for one in await store.listed("")] == ["open/me/1", "open/me/2"]
