"""What every store of downloaded files promises (`ports/file_store.py`)."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from trotline.model.stored_file import StoredFile
from trotline.ports.file_store import FileRefused, FileStore

Open = Callable[..., FileStore]


async def kept(store: FileStore, body: bytes, kind: str = "application/pdf", step: int = 65_536) -> StoredFile:
    writer = store.begin()
    for place in range(0, len(body), step):
        writer.write(body[place : place + step])
    return await writer.keep(kind)


class FileStoreContract:
    """A subclass has the fixtures `open_store`, which makes a store with these rules (of `Files`), and `content`: path
    -> bytes, of all that is stored."""

    async def test_fs1_the_same_content_is_one_file(self, open_store: Open, content: Any) -> None:
        body = b"x" * 1000
        one = await kept(open_store(), body)
        again = await kept(open_store(), body)

        assert one == again
        assert await content() == {one.path: body}

    async def test_fs2_what_is_not_kept_is_not_there(self, open_store: Open, content: Any) -> None:
        writer = open_store().begin()
        writer.write(b"half")
        writer.drop()
        writer.drop()

        assert await content() == {}

    async def test_fs2_a_large_file_is_there_whole(self, open_store: Open, content: Any) -> None:
        body = bytes(range(256)) * 80_000
        stored = await kept(open_store(), body)

        assert (stored.size, stored.sha256) == (len(body), hashlib.sha256(body).hexdigest())
        assert await content() == {stored.path: body}

    async def test_fs3_its_name_is_made_of_its_content_and_type(self, open_store: Open) -> None:
        digest = hashlib.sha256(b"x").hexdigest()

        assert (await kept(open_store(), b"x", "Application/PDF; x=../../y")).path == f"{digest[:2]}/{digest}.pdf"
        assert (await kept(open_store(), b"x", "weird/../type")).path == f"{digest[:2]}/{digest}.bin"

    async def test_what_is_no_image_is_refused_and_not_stored(self, open_store: Open, content: Any) -> None:
        with pytest.raises(FileRefused, match="not an image"):
            await kept(open_store(images=True), b"<html>captcha</html>", "image/png")

        assert await content() == {}
